//! Reads a message that is too large to be held in memory: piece by piece, and only the fields that decide.

mod fields;
mod scan;
mod syntax;
#[cfg(test)]
mod tests;

pub use scan::{ScannedMessage, Scanner};
pub use syntax::SyntaxProblem;
