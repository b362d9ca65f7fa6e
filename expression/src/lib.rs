//! Boolean expressions over JSON: the [Common Expression Language](https://cel.dev), with bounded cost.
//!
//! Data flows one way. A text is parsed to a tree, in which every part has its byte range (`parse`). The tree is resolved:
//! every name becomes an index, and macros become loops (`resolve`, `node`). The resolved tree is evaluated
//! over JSON values (`evaluate`), with `operations` and `functions` on `values`. The evaluation counts its steps
//! (`budget`), so an expensive expression stops at the same step on every machine, without a clock or a thread.
//!
//! `inspect` finds mistakes in a tree without values, such as fields that are read without a guard.
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
//!
//! // A failure has its place in the text.
//! let Outcome::Failed(error) = expression.evaluate(&[&json!([{"sum": 50}])]) else { panic!() };
//! assert_eq!(error.message, "missing field `total`");
//! assert_eq!(&expression.source()[error.span], "o.total");
//! ```

mod budget;
mod computed;
mod evaluate;
mod expression;
mod functions;
mod inspect;
mod node;
mod operations;
mod parse;
mod readings;
mod resolve;
mod values;

pub use budget::{EvaluationError, MAX_STEPS};
pub use computed::Computed;
pub use expression::Expression;
pub use expression::{NoValue, Outcome};
pub use inspect::{NeverBoolean, Path, Read, ReadKind};
pub use parse::{MAX_BYTES, MAX_DEPTH};
pub use readings::Reading;
pub use resolve::CompileError;
