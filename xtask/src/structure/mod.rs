//! Import cycles: which file imports which, and whether the folders of a crate depend on each other one way.
//!
//! ```text
//! package folder → modules (files, items, imports) → resolve (file → file) → cycles (folder by folder)
//! ```
//!
//! The imports come from the syntax tree, so a cycle is found before anything is compiled. Imports inside
//! `#[cfg(test)]` do not count, and neither do the `pub use` lines of a module that only re-exports.

mod cycles;
mod modules;
mod resolve;

pub(crate) use cycles::check;
pub(crate) use modules::{attributes, is_test_only};
