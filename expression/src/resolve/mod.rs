//! Resolves a parsed expression: names become indexes, macros become loops, and literal regular expressions are compiled.

mod calls;
mod macros;
mod names;
mod resolver;

pub(crate) use resolver::resolve;
pub use resolver::{CompileError, MAX_DEPTH};
