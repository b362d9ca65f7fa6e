//! Expressions over JSON that are true or false: the [Common Expression Language](https://cel.dev), within bounds.
//!
//! Data flows one way. A text is parsed by the `cel` crate, on a stack of its own, and becomes a small tree in which every
//! name is resolved (`compile`, `node`); the tree is evaluated over JSON values (`evaluate`, `value`). The evaluation is our
//! own, since every step of it is counted: an expression that would take too many is stopped at the same step on every
//! machine, and needs no clock and no thread.
//!
//! This crate knows no cases and no artifacts.
//!
//! ```
//! use counterproof_expression::{Expression, Outcome};
//! use serde_json::json;
//!
//! let expression = Expression::compile("orders.exists(o, o.total > 100)", &["orders"]).unwrap();
//! assert_eq!(expression.evaluate(&[&json!([{"total": 50}, {"total": 120.5}])]), Outcome::True);
//! assert!(Expression::compile("order.size() > 1", &["orders"]).is_err(), "no such variable");
//! ```

mod compile;
mod evaluate;
mod node;
mod value;

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

pub use compile::{CompileError, LONGEST, NESTED_UP_TO};
pub use evaluate::{Outcome, STEPS};

use node::Node;

/// An expression whose names are resolved, ready to be evaluated any number of times.
#[derive(Clone)]
pub struct Expression {
    source: Arc<str>,
    root: Arc<Node>,
}

impl Expression {
    /// Compiles a text in which these variables may stand.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, CompileError> {
        let root = compile::compile(source, variables)?;
        Ok(Self { source: source.into(), root: Arc::new(root) })
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates it over the values of the variables, in the order in which they were given to [`Expression::compile`].
    pub fn evaluate(&self, variables: &[&Value]) -> Outcome {
        evaluate::evaluate(&self.root, variables)
    }
}

/// Two expressions are equal where their texts are.
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
