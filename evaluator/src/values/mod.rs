//! JSON values by meaning: equality, hashes, order, distance, and short text for messages.

pub(crate) mod meaning;
pub(crate) mod stringified;
pub mod text;
pub(crate) mod tokens;

pub use meaning::same;
pub(crate) use meaning::{key_of, meaning_hash, object_hash, same_object, set_key, text_hash, type_name};
