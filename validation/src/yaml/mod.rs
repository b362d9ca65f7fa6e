//! YAML documents as JSON values, with positions.
//!
//! The document must be one that JSON can express. [`parse`] limits the depth and what aliases add, since the text can come from
//! anyone. [`Positions`] is built only to report something.

mod parse;
mod positions;
mod within;

pub use parse::{YamlError, parse};
pub use positions::Positions;
pub(crate) use within::within;
