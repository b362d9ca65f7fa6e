//! Evaluation: a tree and JSON values in, a value out, within a fixed number of steps.
//!
//! Steps measure work, not time: one for each node, and more for long strings and lists. Values that the evaluation
//! creates cost steps too, so the limit also bounds memory.

mod containers;
mod evaluation;

pub(crate) use evaluation::Evaluation;
