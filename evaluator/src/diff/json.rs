//! Differences of two JSON values, place by place. Key order never matters, and `50` equals `50.0`.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::ops::Deref;
use std::sync::LazyLock;

use counterproof_artifact::pointer;
use serde_json::{Map, Number, Value};

use super::elements::{self, Compared, Matched};
use crate::rules::{Renaming, Scope};

/// Below this, floats that are whole become whole numbers without loss of meaning.
const WHOLE_FLOATS: f64 = 1e36;

/// Most places that are listed: who has read a thousand has seen enough.
const MOST_PLACES: usize = 1_000;

/// Most bytes of pointers: keys are the agent's, and a long one stands in the pointer of everything below it.
const MOST_POINTER_BYTES: usize = 1024 * 1024;

/// The places at which two values differ.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JsonChanges {
    places: Vec<JsonChange>,
    /// Places that differ too, and are not listed.
    pub omitted: usize,
}

impl JsonChanges {
    /// How many places differ.
    pub fn count(&self) -> usize {
        self.places.len() + self.omitted
    }

    /// Puts a pointer of each side in front, so that the places lead into the documents that hold the values.
    #[must_use]
    pub fn below(mut self, baseline: &str, new: &str) -> Self {
        for change in &mut self.places {
            for (place, prefix) in [(&mut change.baseline, baseline), (&mut change.new, new)] {
                if let Some(place) = place {
                    place.pointer.insert_str(0, prefix);
                }
            }
        }
        self
    }
}

impl Deref for JsonChanges {
    type Target = [JsonChange];

    fn deref(&self) -> &[JsonChange] {
        &self.places
    }
}

/// One place at which two values differ.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonChange {
    /// What the baseline has there; `None` where it has no such place.
    pub baseline: Option<Place>,
    /// What new has there; `None` where it has no such place.
    pub new: Option<Place>,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// A JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The value there.
    pub value: Value,
}

/// What happened at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only new has it.
    Added,
    /// Only the baseline has it.
    Removed,
    /// Another value of the same type.
    Changed,
    /// A value of another type.
    TypeChanged,
    /// An array of the same elements in another order.
    Reordered,
}

impl JsonChange {
    /// What happened.
    pub fn kind(&self) -> ChangeKind {
        match (&self.baseline, &self.new) {
            // Arrays that differ in anything else differ in their elements.
            (Some(Place { value: Value::Array(_), .. }), Some(Place { value: Value::Array(_), .. })) => {
                ChangeKind::Reordered
            }
            (Some(baseline), Some(new)) if type_name(&baseline.value) == type_name(&new.value) => ChangeKind::Changed,
            (Some(_), Some(_)) => ChangeKind::TypeChanged,
            (Some(_), None) => ChangeKind::Removed,
            (None, _) => ChangeKind::Added,
        }
    }

    /// The pointer to name it by: new's where there is one.
    pub fn pointer(&self) -> &str {
        self.new.as_ref().or(self.baseline.as_ref()).map_or("", |place| &place.pointer)
    }
}

/// The JSON name of a value's type.
pub const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// True where two values mean the same.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => worth(a) == worth(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => same_object(a, b),
        _ => a == b,
    }
}

/// True where two objects mean the same.
pub fn same_object(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    // Nearly always the keys stand in the same order, and none has to be looked up.
    let is_same = |((key, value), (other_key, other)): ((&String, &Value), (&String, &Value))| {
        let other = if key == other_key { Some(other) } else { b.get(key) };
        other.is_some_and(|other| same(value, other))
    };
    a.len() == b.len() && a.iter().zip(b).all(is_same)
}

/// A number by its value: whole numbers exactly, since a float folds those beyond 2^53 together.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Worth {
    Whole(i128),
    Fraction(u64),
}

pub(super) fn worth(number: &Number) -> Worth {
    if let Some(whole) = number.as_i128() {
        return Worth::Whole(whole);
    }
    let float = number.as_f64().unwrap_or(f64::MAX);
    if float.fract() == 0.0 && float.abs() < WHOLE_FLOATS {
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
        return Worth::Whole(float as i128);
    }
    Worth::Fraction(float.to_bits())
}

/// All places at which two values differ, in the order of the baseline's keys and then of new's.
///
/// Elements of arrays are matched by longest common subsequence; a stretch in which nothing matches is compared element by
/// element. An array whose elements are all there in another order is one place.
pub fn diff(baseline: &Value, new: &Value) -> JsonChanges {
    diff_under(baseline, new, &Scope::default(), &mut Renaming::default())
}

/// All places at which two values differ after the rules of comparison. Where rules act, keys come in their own order, so
/// that it does not matter in which they are written when ids are met.
pub fn diff_under(baseline: &Value, new: &Value, scope: &Scope<'_>, renaming: &mut Renaming) -> JsonChanges {
    let mut walk = Walk::with(renaming);
    walk.values(baseline, new, scope);
    walk.changes
}

/// All places at which two objects differ: see [`diff_under`].
pub fn diff_objects(
    baseline: &Map<String, Value>,
    new: &Map<String, Value>,
    scope: &Scope<'_>,
    renaming: &mut Renaming,
) -> JsonChanges {
    let mut walk = Walk::with(renaming);
    walk.objects(baseline, new, scope);
    walk.changes
}

struct Walk<'w> {
    renaming: &'w mut Renaming,
    changes: JsonChanges,
    pointer_bytes: usize,
    baseline: String,
    new: String,
}

impl<'w> Walk<'w> {
    fn with(renaming: &'w mut Renaming) -> Self {
        let (baseline, new) = (String::new(), String::new());
        Self { renaming, changes: JsonChanges::default(), pointer_bytes: 0, baseline, new }
    }

    fn values(&mut self, baseline: &Value, new: &Value, scope: &Scope<'_>) {
        let here = scope.here();
        match (baseline, new) {
            _ if here.ignore => {}
            (Value::Object(baseline), Value::Object(new)) => self.objects(baseline, new, scope),
            (Value::Array(old), Value::Array(other)) => match elements::matched(old, other, scope) {
                Compared::InPairs(pairs) => self.arrays(old, other, &pairs, scope),
                Compared::Reordered => self.report(Some(baseline), Some(new)),
            },
            _ if here.same(baseline, new, self.renaming) => {}
            _ => self.report(Some(baseline), Some(new)),
        }
    }

    fn objects(&mut self, baseline: &Map<String, Value>, new: &Map<String, Value>, scope: &Scope<'_>) {
        let mut keys: Vec<_> = baseline.keys().chain(new.keys().filter(|key| !baseline.contains_key(*key))).collect();
        if !scope.is_empty() {
            keys.sort_unstable();
        }
        for key in keys {
            let scope = scope.below(key);
            match (baseline.get(key), new.get(key)) {
                (Some(old), Some(other)) => self.below(Some(key), Some(key), |walk| walk.values(old, other, &scope)),
                (old, other) => {
                    let here = scope.here();
                    let absent = |value: &Value| here.default.is_some_and(|default| same(default, value));
                    if here.ignore || old.or(other).is_some_and(absent) {
                        continue;
                    }
                    let (at, new_at) = (old.map(|_| key.as_str()), other.map(|_| key.as_str()));
                    self.below(at, new_at, |walk| walk.report(old, other));
                }
            }
        }
    }

    fn arrays(&mut self, baseline: &[Value], new: &[Value], pairs: &[Matched], scope: &Scope<'_>) {
        for (i, j) in pairs {
            let (at, new_at) = (i.map(|i| i.to_string()), j.map(|j| j.to_string()));
            let (at, new_at) = (at.as_deref(), new_at.as_deref());
            let below = scope.below_either(at.or(new_at).unwrap_or_default(), new_at.or(at).unwrap_or_default());
            self.below(at, new_at, |walk| match (i.map(|i| &baseline[i]), j.map(|j| &new[j])) {
                (Some(old), Some(other)) => walk.values(old, other, &below),
                (old, other) => walk.report(old, other),
            });
        }
    }

    fn below(&mut self, baseline: Option<&str>, new: Option<&str>, work: impl FnOnce(&mut Self)) {
        let lengths = (self.baseline.len(), self.new.len());
        for (path, segment) in [(&mut self.baseline, baseline), (&mut self.new, new)] {
            if let Some(segment) = segment {
                pointer::push(path, segment);
            }
        }
        work(self);
        self.baseline.truncate(lengths.0);
        self.new.truncate(lengths.1);
    }

    fn report(&mut self, baseline: Option<&Value>, new: Option<&Value>) {
        let bytes = self.baseline.len() + self.new.len();
        if self.changes.places.len() >= MOST_PLACES || self.pointer_bytes + bytes > MOST_POINTER_BYTES {
            self.changes.omitted += 1;
            return;
        }
        self.pointer_bytes += bytes;
        let place = |pointer: &str, value: &Value| Place { pointer: pointer.to_owned(), value: value.clone() };
        self.changes.places.push(JsonChange {
            baseline: baseline.map(|value| place(&self.baseline, value)),
            new: new.map(|value| place(&self.new, value)),
        });
    }
}

/// Equal for values that mean the same, within one process.
///
/// It is keyed anew in each, so that no agent can make two values collide on purpose.
pub fn meaning_hash(value: &Value) -> u64 {
    let mut hasher = KEY.build_hasher();
    hash_meaning(value, &mut hasher);
    hasher.finish()
}

/// The hash of keys that are hashes themselves, and of what goes with them: keyed as they are.
pub(crate) fn key_of(parts: impl Hash) -> u64 {
    KEY.hash_one(parts)
}

/// The meaning of a text: [`meaning_hash`] of it as a value.
pub fn text_hash(text: &str) -> u64 {
    let mut hasher = KEY.build_hasher();
    hash_text(text, &mut hasher);
    hasher.finish()
}

/// The meaning of an object: [`meaning_hash`] of it as a value.
pub fn object_hash(fields: &Map<String, Value>) -> u64 {
    ObjectMeaning::default().fields(fields).finish()
}

/// The meaning of an object that is not put together: [`meaning_hash`] of it as a value.
#[derive(Debug, Default)]
pub struct ObjectMeaning {
    /// Order must not matter, so the fields' hashes are added up.
    sum: u64,
}

impl ObjectMeaning {
    /// Adds a field.
    #[must_use]
    pub fn field(self, key: &str, meaning: impl FnOnce(&mut DefaultHasher)) -> Self {
        let mut field = KEY.build_hasher();
        key.hash(&mut field);
        meaning(&mut field);
        Self { sum: self.sum.wrapping_add(field.finish()) }
    }

    /// Adds all fields of an object.
    #[must_use]
    pub fn fields(self, fields: &Map<String, Value>) -> Self {
        fields.iter().fold(self, |all, (key, value)| all.field(key, |hasher| hash_meaning(value, hasher)))
    }

    /// The meaning of the whole.
    pub fn finish(self) -> u64 {
        let mut hasher = KEY.build_hasher();
        self.hash_into(&mut hasher);
        hasher.finish()
    }

    fn hash_into(self, hasher: &mut DefaultHasher) {
        Tag::Object.hash(hasher);
        self.sum.hash(hasher);
    }
}

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The type of a value, as it is hashed.
#[derive(Hash)]
enum Tag {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// Adds a value's meaning to a hash.
pub(crate) fn hash_meaning(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => Tag::Null.hash(hasher),
        Value::Bool(flag) => (Tag::Bool, flag).hash(hasher),
        Value::String(text) => hash_text(text, hasher),
        Value::Number(number) => (Tag::Number, worth(number)).hash(hasher),
        Value::Array(items) => {
            (Tag::Array, items.len()).hash(hasher);
            for item in items {
                hash_meaning(item, hasher);
            }
        }
        Value::Object(fields) => hash_object(fields, hasher),
    }
}

/// Adds the meaning of a text as a value.
pub(crate) fn hash_text(text: &str, hasher: &mut DefaultHasher) {
    (Tag::String, text).hash(hasher);
}

/// Adds the meaning of a list of texts as a value.
pub(crate) fn hash_texts<'a>(texts: impl ExactSizeIterator<Item = &'a str>, hasher: &mut DefaultHasher) {
    (Tag::Array, texts.len()).hash(hasher);
    for text in texts {
        hash_text(text, hasher);
    }
}

/// Adds the meaning of an object as a value.
pub(crate) fn hash_object(fields: &Map<String, Value>, hasher: &mut DefaultHasher) {
    ObjectMeaning::default().fields(fields).hash_into(hasher);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changes(baseline: &Value, new: &Value) -> Vec<(ChangeKind, String)> {
        diff(baseline, new).iter().map(|change| (change.kind(), change.pointer().to_owned())).collect()
    }

    #[test]
    fn key_order_and_number_form_do_not_matter() {
        let (a, b) = (json!({"x": 50, "y": [1.0]}), json!({"y": [1], "x": 50.0}));
        assert!(same(&a, &b));
        assert_eq!(meaning_hash(&a), meaning_hash(&b));
        assert_ne!(meaning_hash(&json!([[1], 2])), meaning_hash(&json!([[1, 2]])));
        assert!(diff(&a, &b).is_empty());
    }

    #[test]
    fn what_is_not_put_together_has_the_meaning_of_the_whole() {
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

    #[test]
    fn large_whole_numbers_are_told_apart() {
        let (odd, even) = (json!([9_007_199_254_740_993_u64]), json!([9_007_199_254_740_992_u64]));
        assert!(!same(&odd, &even));
        assert_eq!(diff(&odd, &even).count(), 1);
        assert!(same(&even, &json!([9_007_199_254_740_992_f64])) && !same(&odd, &json!([9_007_199_254_740_992_f64])));
    }

    #[test]
    fn a_long_key_above_many_places_costs_no_more_than_its_share() {
        let key = "k".repeat(100_000);
        let list = |start: i64| Value::Array((start..start + 50_000).map(|n| json!([n])).collect());
        let found = diff(&json!({key.clone(): list(0)}), &json!({key: list(100_000)}));
        assert_eq!(found.count(), 50_000);
        assert!(found.len() < 10, "{}", found.len());
    }

    #[test]
    fn each_kind_of_change_is_named_with_its_pointer() {
        let found =
            changes(&json!({"a": 1, "b": {"c/d": "x"}, "gone": 0}), &json!({"a": "1", "b": {"c/d": "y"}, "come": 0}));
        assert_eq!(
            found,
            [
                (ChangeKind::TypeChanged, "/a".to_owned()),
                (ChangeKind::Changed, "/b/c~1d".to_owned()),
                (ChangeKind::Removed, "/gone".to_owned()),
                (ChangeKind::Added, "/come".to_owned()),
            ]
        );
    }

    #[test]
    fn an_element_put_in_front_does_not_shift_the_others() {
        assert_eq!(changes(&json!([1, 2, 3]), &json!([0, 1, 2, 3])), [(ChangeKind::Added, "/0".to_owned())]);
        let found = diff(&json!([{"id": 1, "n": 1}, 2]), &json!([0, {"id": 1, "n": 2}, 2]));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn pointers_name_the_place_on_each_side() {
        let found = diff(&json!({"list": [9, 1, 2]}), &json!({"list": [1, 2, 5]}));
        assert_eq!(found[0].baseline.as_ref().unwrap().pointer, "/list/0");
        assert_eq!(found[1].new.as_ref().unwrap().pointer, "/list/2");
    }
}
