//! A compiled expression and its outcome.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use crate::budget::{Budget, EvaluationError, MAX_STEPS, Stop};
use crate::computed::Computed;
use crate::evaluate::Evaluation;
use crate::inspect::{self, NeverBoolean, Path, Read};
use crate::node::Node;
use crate::readings::{Reader, Reading};
use crate::resolve::{self, CompileError};
use crate::values::Value;

/// A compiled expression, which can be evaluated any number of times.
#[derive(Clone)]
pub struct Expression {
    source: Arc<str>,
    // Shared, so that a clone does not copy the tree.
    root: Arc<Node>,
}

impl Expression {
    /// Compiles an expression over these variables.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, CompileError> {
        let root = resolve::compile(source, variables)?;
        Ok(Self { source: source.into(), root: Arc::new(root) })
    }

    /// Returns the text of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates a condition. The values are in the order of the variables of [`Expression::compile`].
    pub fn evaluate(&self, variables: &[&Json]) -> Outcome {
        let mut steps = MAX_STEPS;
        self.evaluate_within(variables, &mut steps)
    }

    /// Evaluates a condition with at most `steps` steps, and subtracts those that it took: several expressions can share a limit.
    /// One evaluation never takes more than [`MAX_STEPS`].
    pub fn evaluate_within(&self, variables: &[&Json], steps: &mut u64) -> Outcome {
        let granted = (*steps).min(MAX_STEPS);
        let mut evaluation = Evaluation::with_budget(variables, Budget::with_steps(granted));
        let value = evaluation.value(&self.root);
        let taken = granted - evaluation.budget().steps();
        *steps -= taken;
        match value {
            Ok(Value::Bool(true)) => Outcome::True,
            Ok(Value::Bool(false)) => Outcome::False,
            Ok(other) => {
                let message = format!("the result is {}; expected a boolean", other.describe());
                Outcome::Failed(EvaluationError { span: self.whole(), message })
            }
            Err(stop) => match self.no_value(stop) {
                NoValue::Failed(error) => Outcome::Failed(error),
                NoValue::TooLong => Outcome::TooLong,
            },
        }
    }

    /// Evaluates an expression of any type. The copy of the value counts towards the limit of steps.
    pub fn compute(&self, variables: &[&Json]) -> Result<Computed, NoValue> {
        let mut evaluation = Evaluation::new(variables);
        // One budget for the evaluation and the copy, so that a large result cannot double the work.
        let value = evaluation.value(&self.root).map_err(|stop| self.no_value(stop))?;
        Computed::copy(evaluation.budget(), &value).map_err(|stop| self.no_value(stop))
    }

    /// Returns the fields of the variables that the expression reads.
    pub fn reads(&self) -> Vec<Read> {
        inspect::reads(&self.root, &self.source)
    }

    /// True if the expression can fail because this field is missing. Guards such as `has(x.name) && …` are considered.
    pub fn fails_without(&self, field: &Path) -> bool {
        inspect::fails_without(&self.root, field)
    }

    /// Returns the parts that must be booleans and never are. The shapes are sample values of the variables: their fields have values
    /// of the types that they always have. Null stands for any type.
    pub fn never_boolean(&self, shapes: &[&Json]) -> Vec<NeverBoolean> {
        inspect::never_boolean(&self.root, shapes)
    }

    /// Returns the first values that the expression compares or tests, at most `most`, to explain its result. All of them
    /// together take at most [`MAX_STEPS`](crate::MAX_STEPS).
    pub fn readings(&self, variables: &[&Json], most: usize) -> Vec<Reading> {
        Reader::new(Evaluation::new(variables), &self.source, most).readings(&self.root)
    }

    fn no_value(&self, stop: Stop) -> NoValue {
        match stop {
            Stop::TooLong => NoValue::TooLong,
            Stop::Failed { message, span } => {
                NoValue::Failed(EvaluationError { span: span.unwrap_or_else(|| self.whole()), message })
            }
            Stop::WrongTypes => {
                // Calls describe their types themselves; this is the text for everything else.
                let message = "the types of the values do not match".to_owned();
                NoValue::Failed(EvaluationError { span: self.whole(), message })
            }
        }
    }

    fn whole(&self) -> std::ops::Range<usize> {
        self.root.span.clone()
    }
}

/// Expressions are equal if their texts are equal.
impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

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
