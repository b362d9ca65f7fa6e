//! Evaluation: a tree and JSON values in, a boolean out, within a fixed number of steps.
//!
//! Steps measure work, not time: one for each node, and more for long strings and lists. Values that the evaluation
//! creates cost steps too, so the limit also bounds memory.

mod arithmetic;
mod evaluation;
mod functions;
mod macros;

pub(crate) use evaluation::evaluate;
pub use evaluation::{MAX_STEPS, Outcome};
