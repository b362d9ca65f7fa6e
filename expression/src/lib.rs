//! Boolean expressions over JSON: the [Common Expression Language](https://cel.dev), with bounded cost.
//!
//! Data flows one way. The `cel` crate parses a text on a thread with a large stack (`parse`). The tree is resolved: every
//! name becomes an index (`resolve`, `node`). The resolved tree is evaluated over JSON values (`evaluate`, `value`). The
//! evaluation counts its steps, so an expensive expression stops at the same step on every machine, without a clock or a
//! thread.
//!
//! This crate does not depend on cases or artifacts.
//!
//! ```
//! use counterproof_expression::{Expression, Outcome};
//! use serde_json::json;
//!
//! let expression = Expression::compile("orders.exists(o, o.total > 100)", &["orders"]).unwrap();
//! assert_eq!(expression.evaluate(&[&json!([{"total": 50}, {"total": 120.5}])]), Outcome::True);
//! assert!(Expression::compile("order.size() > 1", &["orders"]).is_err(), "unknown variable");
//! ```

mod evaluate;
mod node;
mod parse;
mod pattern;
mod resolve;
mod value;

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

pub use evaluate::{MAX_STEPS, Outcome};
pub use parse::{CompileError, MAX_BYTES};
pub use resolve::MAX_DEPTH;

use node::Node;

/// A compiled expression, which can be evaluated any number of times.
#[derive(Clone)]
pub struct Expression {
    source: Arc<str>,
    root: Arc<Node>,
}

impl Expression {
    /// Compiles an expression over these variables.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, CompileError> {
        let root = parse::compile(source, variables)?;
        Ok(Self { source: source.into(), root: Arc::new(root) })
    }

    /// Returns the text of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates the expression. The values are in the order of the variables of [`Expression::compile`].
    pub fn evaluate(&self, variables: &[&Value]) -> Outcome {
        evaluate::evaluate(&self.root, variables)
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
