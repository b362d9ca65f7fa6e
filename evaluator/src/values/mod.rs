//! JSON values by meaning: equality, hashes, order, distance, and short text for messages.

pub(crate) mod distance;
mod equality;
mod hash;
pub(crate) mod hashed;
pub(crate) mod order;
pub mod text;
pub(crate) mod written;

pub use equality::same;
pub(crate) use equality::{same_object, type_name};
pub(crate) use hash::{
    ObjectMeaning, hash_meaning, hash_object, hash_text, hash_texts, key_of, meaning_hash, object_hash, text_hash,
};
