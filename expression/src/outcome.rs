//! The results of an evaluation.

use crate::budget::EvaluationError;

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The expression is true.
    True,
    /// The expression is false.
    False,
    /// The evaluation failed: a field is missing, types do not match, or the result is not a boolean.
    Failed(EvaluationError),
    /// The evaluation needs more steps than [`MAX_STEPS`](crate::MAX_STEPS).
    TooLong,
}

/// The reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoValue {
    #[error(transparent)]
    Failed(#[from] EvaluationError),
    /// The evaluation needs more steps than [`MAX_STEPS`](crate::MAX_STEPS).
    #[error("the evaluation takes more than {} steps", crate::MAX_STEPS)]
    TooLong,
}
