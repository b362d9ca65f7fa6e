//! Locates parts of a JSON text: values by JSON Pointer, duplicate keys, and byte offsets as lines and columns.
//!
//! Used only when something is reported. The text is already parsed: these functions do not validate it. They make one
//! pass over the bytes for any number of pointers, without recursion, so deep nesting cannot overflow the stack.

mod duplicate_keys;
mod position;
mod spans;
mod walk;
mod within;

pub use duplicate_keys::{DuplicateKey, DuplicateKeys, duplicate_keys};
pub(crate) use position::offset;
pub use position::{Position, positions};
pub use spans::spans;
pub(crate) use walk::decode;
pub use within::within;

#[cfg(test)]
mod tests;
