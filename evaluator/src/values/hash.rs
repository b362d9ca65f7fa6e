//! Hashes of JSON values by meaning: values that are equal by [`same`](super::same) have the same hash.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::equality::number_key;

/// Returns a hash that is equal for values that are equal in meaning, within one process.
///
/// Each process has its own key, so that no agent can construct colliding values.
pub(crate) fn meaning_hash(value: &Value) -> u64 {
    let mut hasher = KEY.build_hasher();
    hash_meaning(value, &mut hasher);
    hasher.finish()
}

/// Hashes a key made of several parts, such as other hashes, with the key of this process.
pub(crate) fn key_of(parts: impl Hash) -> u64 {
    KEY.hash_one(parts)
}

/// Returns the [`meaning_hash`] of a text, without building a value.
pub(crate) fn text_hash(text: &str) -> u64 {
    let mut hasher = KEY.build_hasher();
    hash_text(text, &mut hasher);
    hasher.finish()
}

/// Returns the [`meaning_hash`] of an object, without building a value.
pub(crate) fn object_hash(fields: &Map<String, Value>) -> u64 {
    ObjectMeaning::default().fields(fields).finish()
}

/// Computes the [`meaning_hash`] of an object field by field, without building the object.
#[derive(Debug, Default)]
pub(crate) struct ObjectMeaning {
    /// The sum of the fields' hashes, because their order must not matter.
    sum: u64,
}

impl ObjectMeaning {
    /// Adds a field.
    #[must_use]
    pub(crate) fn field(self, key: &str, meaning: impl FnOnce(&mut DefaultHasher)) -> Self {
        let mut field = KEY.build_hasher();
        key.hash(&mut field);
        meaning(&mut field);
        Self { sum: self.sum.wrapping_add(field.finish()) }
    }

    /// Adds all fields of an object.
    #[must_use]
    pub(crate) fn fields(self, fields: &Map<String, Value>) -> Self {
        fields.iter().fold(self, |all, (key, value)| all.field(key, |hasher| hash_meaning(value, hasher)))
    }

    /// Returns the hash of the object.
    pub(crate) fn finish(self) -> u64 {
        let mut hasher = KEY.build_hasher();
        self.hash_into(&mut hasher);
        hasher.finish()
    }

    fn hash_into(self, hasher: &mut DefaultHasher) {
        // A sum of field hashes, because XOR would let two equal fields cancel out.
        Tag::Object.hash(hasher);
        self.sum.hash(hasher);
    }
}

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The type of a value. It is hashed first, so that values of different types do not collide.
#[derive(Hash)]
enum Tag {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

pub(crate) fn hash_meaning(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => Tag::Null.hash(hasher),
        Value::Bool(flag) => (Tag::Bool, flag).hash(hasher),
        Value::String(text) => hash_text(text, hasher),
        Value::Number(number) => (Tag::Number, number_key(number)).hash(hasher),
        Value::Array(items) => {
            (Tag::Array, items.len()).hash(hasher);
            // The length precedes the items, so that `[[a], b]` and `[[a, b]]` differ.
            for item in items {
                hash_meaning(item, hasher);
            }
        }
        Value::Object(fields) => hash_object(fields, hasher),
    }
}

/// Hashes a text like a JSON string.
pub(crate) fn hash_text(text: &str, hasher: &mut DefaultHasher) {
    (Tag::String, text).hash(hasher);
}

/// Hashes texts like a JSON array of strings.
pub(crate) fn hash_texts<'a>(texts: impl ExactSizeIterator<Item = &'a str>, hasher: &mut DefaultHasher) {
    (Tag::Array, texts.len()).hash(hasher);
    for text in texts {
        hash_text(text, hasher);
    }
}

/// Hashes an object like a JSON object.
pub(crate) fn hash_object(fields: &Map<String, Value>, hasher: &mut DefaultHasher) {
    ObjectMeaning::default().fields(fields).hash_into(hasher);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_order_and_number_form_do_not_matter() {
        let (a, b) = (json!({"x": 50, "y": [1.0]}), json!({"y": [1], "x": 50.0}));
        assert_eq!(meaning_hash(&a), meaning_hash(&b));
        assert_ne!(meaning_hash(&json!([[1], 2])), meaning_hash(&json!([[1, 2]])));
    }

    #[test]
    fn a_hash_computed_field_by_field_equals_the_hash_of_the_object() {
        let (fields, texts) = (json!({"b": [1, "x"], "c": {"d": null}}), ["x", "y"]);
        let meaning = ObjectMeaning::default()
            .field("a", |hasher| hash_text("t", hasher))
            .fields(fields.as_object().unwrap())
            .field("e", |hasher| hash_object(fields.as_object().unwrap(), hasher))
            .field("f", |hasher| hash_texts(texts.into_iter(), hasher));
        let whole = json!({"f": texts, "e": fields, "c": {"d": null}, "b": [1.0, "x"], "a": "t"});
        assert_eq!(meaning.finish(), meaning_hash(&whole));
        assert_eq!(text_hash("t"), meaning_hash(&json!("t")));
    }
}
