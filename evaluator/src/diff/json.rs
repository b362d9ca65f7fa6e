//! Differences of two JSON values, pointer by pointer. Key order never matters, and `50` equals `50.0`.

use std::ops::Deref;

use counterproof_artifact::pointer;
use serde_json::{Map, Value};

use super::elements::{self, Compared, Matched};
use crate::rules::{Renaming, Scope};
use crate::values::written::differ_in_form_only;
use crate::values::{same, type_name};

/// Most changes that are listed; further changes are only counted.
const MOST_CHANGES: usize = 1_000;

/// Most bytes of all listed pointers. Keys come from the agent, and a long key is part of every pointer below it.
const MOST_POINTER_BYTES: usize = 1024 * 1024;

/// The differences of two values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JsonChanges {
    listed: Vec<JsonChange>,
    /// The number of differences that are not listed.
    pub omitted: usize,
}

impl JsonChanges {
    /// Returns the number of differences, including those not listed.
    pub fn count(&self) -> usize {
        self.listed.len() + self.omitted
    }

    /// True if there are differences, and all of them are in the form of a value only.
    pub(crate) fn are_form_only(&self) -> bool {
        self.omitted == 0 && !self.listed.is_empty() && self.listed.iter().all(JsonChange::is_form_only)
    }

    /// Prefixes the pointers of each side, so that they point into the documents that contain the values.
    #[must_use]
    pub fn below(mut self, baseline: &str, new: &str) -> Self {
        for change in &mut self.listed {
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
        &self.listed
    }
}

/// One difference of two values.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonChange {
    /// The value of the baseline; `None` if only new has one.
    pub baseline: Option<LocatedValue>,
    /// The value of new; `None` if only the baseline has one.
    pub new: Option<LocatedValue>,
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedValue {
    /// A JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The value.
    pub value: Value,
}

/// How a value changed.
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
    /// Returns how the value changed.
    pub fn kind(&self) -> ChangeKind {
        match (&self.baseline, &self.new) {
            // Arrays that differ in more than their order are reported by element.
            (Some(LocatedValue { value: Value::Array(_), .. }), Some(LocatedValue { value: Value::Array(_), .. })) => {
                ChangeKind::Reordered
            }
            (Some(baseline), Some(new)) if type_name(&baseline.value) == type_name(&new.value) => ChangeKind::Changed,
            (Some(_), Some(_)) => ChangeKind::TypeChanged,
            (Some(_), None) => ChangeKind::Removed,
            (None, _) => ChangeKind::Added,
        }
    }

    /// True for the same content in another form, such as a list written as text.
    pub(crate) fn is_form_only(&self) -> bool {
        let values = self.baseline.as_ref().zip(self.new.as_ref());
        values.is_some_and(|(baseline, new)| differ_in_form_only(&baseline.value, &new.value))
    }

    /// Returns the pointer in new, or in the baseline if new has no value.
    pub fn pointer(&self) -> &str {
        self.new.as_ref().or(self.baseline.as_ref()).map_or("", |place| &place.pointer)
    }
}

/// Lists the differences of two values, in the order of the baseline's keys and then of new's.
///
/// Elements of arrays are matched by longest common subsequence; stretches without a match are compared element by
/// element. A reordered array with the same elements is one difference.
pub fn diff(baseline: &Value, new: &Value) -> JsonChanges {
    diff_under(baseline, new, &Scope::default(), &mut Renaming::default())
}

/// Lists the differences of two values under the rules of comparison. If rules apply, keys are compared in sorted order, so
/// that the renaming of ids does not depend on key order.
pub fn diff_under(baseline: &Value, new: &Value, scope: &Scope<'_>, renaming: &mut Renaming) -> JsonChanges {
    let mut walk = Walk::with(renaming);
    walk.values(baseline, new, scope);
    walk.changes
}

/// Lists the differences of two objects: see [`diff_under`].
pub(crate) fn diff_objects(
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
        if self.changes.listed.len() >= MOST_CHANGES || self.pointer_bytes + bytes > MOST_POINTER_BYTES {
            self.changes.omitted += 1;
            return;
        }
        self.pointer_bytes += bytes;
        let place = |pointer: &str, value: &Value| LocatedValue { pointer: pointer.to_owned(), value: value.clone() };
        self.changes.listed.push(JsonChange {
            baseline: baseline.map(|value| place(&self.baseline, value)),
            new: new.map(|value| place(&self.new, value)),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changes(baseline: &Value, new: &Value) -> Vec<(ChangeKind, String)> {
        diff(baseline, new).iter().map(|change| (change.kind(), change.pointer().to_owned())).collect()
    }

    #[test]
    fn key_order_and_number_form_are_no_difference() {
        let (a, b) = (json!({"x": 50, "y": [1.0]}), json!({"y": [1], "x": 50.0}));
        assert!(same(&a, &b));
        assert!(diff(&a, &b).is_empty());
    }

    #[test]
    fn large_whole_numbers_are_told_apart() {
        let (odd, even) = (json!([9_007_199_254_740_993_u64]), json!([9_007_199_254_740_992_u64]));
        assert!(!same(&odd, &even));
        assert_eq!(diff(&odd, &even).count(), 1);
        assert!(same(&even, &json!([9_007_199_254_740_992_f64])) && !same(&odd, &json!([9_007_199_254_740_992_f64])));
    }

    #[test]
    fn pointers_below_a_long_key_are_bounded() {
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
    fn each_pointer_points_into_its_own_side() {
        let found = diff(&json!({"list": [9, 1, 2]}), &json!({"list": [1, 2, 5]}));
        assert_eq!(found[0].baseline.as_ref().unwrap().pointer, "/list/0");
        assert_eq!(found[1].new.as_ref().unwrap().pointer, "/list/2");
    }
}
