//! The formats in which a document can be written.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DocumentFormat {
    /// JSON.
    #[default]
    Json,
    /// YAML 1.2, as far as JSON can express it.
    Yaml,
}
