//! JSON values by meaning: equality, hashes, order, distance, and short text for messages.

pub(crate) mod meaning;
pub(crate) mod stringified;
pub mod text;

pub use meaning::same;
pub(crate) use meaning::{
    ObjectMeaning, hash_meaning, hash_object, hash_text, hash_texts, key_of, meaning_hash, object_hash, text_hash,
};
pub(crate) use meaning::{same_object, type_name};
