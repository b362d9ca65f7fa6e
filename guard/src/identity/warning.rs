//! Values of identity variables that cannot be used.

/// A value that cannot be used. The identity has the default instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityWarning {
    /// The value is not a known name.
    #[error("`{variable}` has the unknown value `{value}`; known values: {known}")]
    UnknownName { variable: &'static str, value: String, known: String },
    /// The value is too long, or has control characters.
    #[error("`{variable}` is ignored: an id has at most {limit} bytes and no control characters")]
    InvalidId {
        variable: &'static str,
        /// The largest length in bytes.
        limit: usize,
    },
    /// The value is not JSON.
    #[error("`{variable}` is ignored: not valid JSON at column {column}")]
    InvalidJson {
        variable: &'static str,
        /// The column of the error, from 1.
        column: usize,
    },
    /// The value is JSON, but not an object.
    #[error("`{variable}` is ignored: it must be a JSON object")]
    NotAnObject { variable: &'static str },
    /// A field of the JSON object has the wrong type.
    #[error("field `{field}` of `{variable}` is ignored: it must be {expected}")]
    InvalidField {
        variable: &'static str,
        /// The path of the field, shortened.
        field: String,
        expected: &'static str,
    },
}
