//! Reasons why a tool call cannot be inspected.

use super::StrictError;

/// Why a tool call is ambiguous, or cannot be inspected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolCallProblem {
    /// A key occurs twice.
    #[error("{0}")]
    Strict(#[from] StrictError),
    /// A key differs only by case from one that decides.
    #[error("the key `{key}` can be taken for `{known}`")]
    LookAlike {
        key: String,
        /// The key for which it can be taken.
        known: &'static str,
    },
    /// The name or the arguments have another type than MCP requires.
    #[error("`params.{field}` is not {expected}")]
    Type {
        field: &'static str,
        /// The required type.
        expected: &'static str,
    },
    /// The arguments are JSON with values that not all parsers can represent: lone surrogates, or numbers such as `1e999`. The call
    /// has an agreed meaning, but its arguments cannot be inspected.
    #[error("the arguments cannot be read: {0}")]
    Unreadable(String),
}
