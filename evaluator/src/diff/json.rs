//! Differences of two JSON values, pointer by pointer. Elements of arrays are paired by longest common subsequence (Myers 1986), or, if
//! a rule of comparison applies, by a key field or as sets.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;

use counterproof_artifact::{Sides, pointer};
use serde_json::{Map, Value};
use similar::{Algorithm, DiffOp};

use super::lcs;
use crate::rules::{Notes, Renaming, Scope, view};
use crate::values::stringified::differ_in_form_only;
use crate::values::{meaning, meaning_hash, same, type_name};

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
    /// True if all differences say the same in another way.
    pub(super) reworded: bool,
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

    /// True if there are differences, and all of them say the same in another way: in another form, or in other words where
    /// words have no effect.
    pub(crate) fn are_only_reworded(&self) -> bool {
        self.reworded
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
            (Value::Array(old), Value::Array(other)) => match matched(old, other, scope) {
                ArrayDiff::InPairs(pairs) => self.arrays(old, other, &pairs, scope),
                ArrayDiff::Reordered => self.report(Some(baseline), Some(new)),
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

    fn arrays(&mut self, baseline: &[Value], new: &[Value], pairs: &[IndexPair], scope: &Scope<'_>) {
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
        // Changes and pointer bytes are both bounded: two unrelated answers have as many changes as leaves, and deep ones long
        // pointers.
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

/// The indexes of a pair of elements; one is `None` if only the other side has the element.
pub(super) type IndexPair = (Option<usize>, Option<usize>);

pub(super) enum ArrayDiff {
    InPairs(Vec<IndexPair>),
    /// As a whole: both have the same elements in a different order.
    Reordered,
}

/// Pairs the elements of two arrays, without those that the rules ignore. Without rules, equal pairs are left out too.
///
/// Among subsequences of equal length, the content decides, so that the result does not depend on which side is which.
/// Reordering is detected only without rules: with rules, equal elements can still differ by their index in a path.
pub(super) fn matched(baseline: &[Value], new: &[Value], scope: &Scope<'_>) -> ArrayDiff {
    if scope.is_empty() {
        let (old, other) = (unviewed(baseline), unviewed(new));
        if is_reordered(&old, &other) {
            return ArrayDiff::Reordered;
        }
        return ArrayDiff::InPairs(in_order(&old, &other, EqualPairs::Omit));
    }
    let here = scope.here();
    let (old, other) = (viewed(baseline, scope), viewed(new, scope));
    ArrayDiff::InPairs(match here.key {
        Some(field) => as_sets(&old, &other, Some(field)),
        None if here.unordered => as_sets(&old, &other, None),
        None => in_order(&old, &other, EqualPairs::Include),
    })
}

/// Returns the elements of each array that are out of order, for two arrays with the same elements.
pub(crate) fn out_of_order<'v>(baseline: &'v [Value], new: &'v [Value]) -> Sides<Vec<&'v Value>> {
    let pairs = in_order(&unviewed(baseline), &unviewed(new), EqualPairs::Omit);
    Sides {
        baseline: pairs.iter().filter_map(|(i, _)| Some(&baseline[(*i)?])).collect(),
        new: pairs.iter().filter_map(|(_, j)| Some(&new[(*j)?])).collect(),
    }
}

/// A simple reordering of an array. Indexes count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The elements at these two indexes were swapped.
    Exchanged(usize, usize),
    /// One element moved: from its index in the baseline to its index in new.
    One(usize, usize),
}

/// Finds the move between two arrays with the same elements. `None` if it takes more than one move or swap.
pub(crate) fn moved(baseline: &[Value], new: &[Value]) -> Option<Moved> {
    let keys = |values: &[Value]| values.iter().map(meaning_hash).collect::<Vec<_>>();
    let (old, new) = (keys(baseline), keys(new));
    // Only the stretch between the equal ends can have moved.
    let first = old.iter().zip(&new).position(|(a, b)| a != b)?;
    let last = old.iter().zip(&new).rposition(|(a, b)| a != b)?;
    let (old, new) = (old.get(first..=last)?, new.get(first..=last)?);
    let ([a, before @ .., b], [c, after @ .., d]) = (old, new) else { return None };
    if (a, b) == (d, c) && before == after {
        return Some(Moved::Exchanged(first, last));
    }
    let back = a == d && old[1..] == new[..new.len() - 1];
    let forth = b == c && old[..old.len() - 1] == new[1..];
    match (back, forth) {
        (true, false) => Some(Moved::One(first, last)),
        (false, true) => Some(Moved::One(last, first)),
        // If either end could be the one that moved, none is returned, so that both directions give the same result.
        _ => None,
    }
}

/// True if two arrays have the same elements with the same counts, in a different order.
fn is_reordered(old: &[Element<'_>], new: &[Element<'_>]) -> bool {
    // Sorting the hashes of the meaning is cheaper than sorting documents.
    let in_turn = |elements: &[Element<'_>]| elements.iter().map(|element| element.key).collect::<Vec<_>>();
    let (mut keys, mut new_keys) = (in_turn(old), in_turn(new));
    if keys.len() != new_keys.len() || keys == new_keys {
        return false;
    }
    keys.sort_unstable();
    new_keys.sort_unstable();
    keys == new_keys
}

struct Element<'a> {
    index: usize,
    value: &'a Value,
    /// The view under the rules; `None` if that is the value itself.
    view: Option<Value>,
    key: u64,
}

impl Element<'_> {
    fn view(&self) -> &Value {
        self.view.as_ref().unwrap_or(self.value)
    }
}

fn unviewed(values: &[Value]) -> Vec<Element<'_>> {
    let elements = values.iter().enumerate();
    elements.map(|(index, value)| Element { index, value, view: None, key: meaning_hash(value) }).collect()
}

fn viewed<'a>(values: &'a [Value], scope: &Scope<'_>) -> Vec<Element<'a>> {
    let elements = values.iter().enumerate().filter_map(|(index, value)| {
        // The use of rules was recorded when the view of the whole value was built.
        let view = view(value, &scope.below(&index.to_string()), &mut Notes::default())?;
        Some(Element { index, value, key: meaning_hash(&view), view: Some(view) })
    });
    elements.collect()
}

/// Whether equal elements are listed as pairs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EqualPairs {
    Include,
    Omit,
}

fn in_order(old: &[Element<'_>], new: &[Element<'_>], equal_pairs: EqualPairs) -> Vec<IndexPair> {
    let keys = |elements: &[Element<'_>]| elements.iter().map(|element| element.key).collect::<Vec<_>>();
    let (keys_before, keys_after) = (keys(old), keys(new));
    if keys_before == keys_after && equal_pairs == EqualPairs::Omit {
        return Vec::new();
    }
    // Myers' algorithm finds one of several longest subsequences, depending on the order of its arguments. The lesser list
    // always comes first, so that swapped sides give the same pairs.
    let by_view = |a: &Element<'_>, b: &Element<'_>| meaning::compare_values(a.view(), b.view());
    let turned = meaning::compare_lists(old, new, by_view) == Ordering::Greater;
    let (first, second) = if turned { (&keys_after, &keys_before) } else { (&keys_before, &keys_after) };
    let mut matched = Vec::new();
    for op in lcs::operations(Algorithm::Myers, first, second) {
        if matches!(op, DiffOp::Equal { .. }) && equal_pairs == EqualPairs::Omit {
            continue;
        }
        let (left, right) = if turned { (op.new_range(), op.old_range()) } else { (op.old_range(), op.new_range()) };
        // The elements of a replaced stretch are paired by offset; the longer side has the rest alone.
        let index = |elements: &[Element<'_>], at: usize, end: usize| (at < end).then(|| elements[at].index);
        let pair =
            |offset: usize| (index(old, left.start + offset, left.end), index(new, right.start + offset, right.end));
        matched.extend((0..left.len().max(right.len())).map(pair));
    }
    matched
}

/// Pairs equal elements first, then elements with an equal key field, then the rest in the order of their contents.
fn as_sets(old: &[Element<'_>], new: &[Element<'_>], field: Option<&str>) -> Vec<IndexPair> {
    let mut pairs: Vec<(&Element<'_>, &Element<'_>)> = Vec::new();
    let (old, new) = (by_content(old), by_content(new));
    let (old, new) = take_equal(old, new, |element| Some(element.key), &mut pairs);
    let known_by = |element: &Element<'_>| Some(meaning_hash(element.value.get(field?)?));
    let (old, new) = take_equal(old, new, known_by, &mut pairs);
    let unknown = |element: &&Element<'_>| known_by(element).is_none();
    let (left, mut alone): (Vec<_>, Vec<_>) = old.into_iter().partition(unknown);
    let (right, mut new_alone): (Vec<_>, Vec<_>) = new.into_iter().partition(unknown);
    let paired = left.len().min(right.len());
    alone.extend(&left[paired..]);
    new_alone.extend(&right[paired..]);
    pairs.extend(left.into_iter().zip(right));

    // Sorting by the lesser content gives the same order whichever side is which.
    let lesser = |(a, b): &(&Element<'_>, &Element<'_>)| {
        let (a, b) = (a.view().clone(), b.view().clone());
        if meaning::compare_values(&a, &b).is_le() { a } else { b }
    };
    pairs.sort_by(|a, b| meaning::compare_values(&lesser(a), &lesser(b)));
    let alone = alone.into_iter().map(|element| (Some(element.index), None));
    let new_alone = new_alone.into_iter().map(|element| (None, Some(element.index)));
    pairs.into_iter().map(|(a, b)| (Some(a.index), Some(b.index))).chain(alone).chain(new_alone).collect()
}

fn by_content<'e, 'v>(elements: &'e [Element<'v>]) -> Vec<&'e Element<'v>> {
    let mut sorted: Vec<_> = elements.iter().collect();
    sorted.sort_by(|a, b| meaning::compare_values(a.view(), b.view()));
    sorted
}

type Elements<'e, 'v> = Vec<&'e Element<'v>>;

/// Pairs elements with the same key, and returns the rest of both sides.
fn take_equal<'e, 'v>(
    old: Elements<'e, 'v>,
    new: Elements<'e, 'v>,
    key: impl Fn(&Element<'v>) -> Option<u64>,
    pairs: &mut Vec<(&'e Element<'v>, &'e Element<'v>)>,
) -> (Elements<'e, 'v>, Elements<'e, 'v>) {
    // A queue for each key, so that equal elements are paired in the order of the list, in linear time.
    let mut waiting: HashMap<u64, VecDeque<usize>> = HashMap::new();
    for (position, element) in new.iter().enumerate() {
        if let Some(key) = key(element) {
            waiting.entry(key).or_default().push_back(position);
        }
    }
    let mut taken = vec![false; new.len()];
    let mut left = Vec::new();
    for element in old {
        match key(element).and_then(|key| waiting.get_mut(&key)?.pop_front()) {
            Some(position) => {
                taken[position] = true;
                pairs.push((element, new[position]));
            }
            None => left.push(element),
        }
    }
    let mut taken = taken.into_iter();
    (left, new.into_iter().filter(|_| taken.next() == Some(false)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::{ChangeKind, JsonChange, diff, *};

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

    fn moved_in(old: &Value, new: &Value) -> Option<Moved> {
        moved(old.as_array().unwrap(), new.as_array().unwrap())
    }

    #[test]
    fn a_single_move_or_swap_is_recognised() {
        let old = json!([1, 2, 3, 4, 5]);
        assert_eq!(moved_in(&old, &json!([1, 4, 3, 2, 5])), Some(Moved::Exchanged(1, 3)));
        assert_eq!(moved_in(&old, &json!([2, 1, 3, 4, 5])), Some(Moved::Exchanged(0, 1)));
        assert_eq!(moved_in(&old, &json!([1, 3, 4, 2, 5])), Some(Moved::One(1, 3)));
        assert_eq!(moved_in(&old, &json!([5, 1, 2, 3, 4])), Some(Moved::One(4, 0)));
        assert_eq!(moved_in(&old, &json!([5, 4, 3, 2, 1])), None);
        assert_eq!(moved_in(&json!([1, 2, 1, 2]), &json!([2, 1, 2, 1])), None);
        assert_eq!(moved_in(&old, &old), None);
    }

    #[test]
    fn a_reordered_array_is_one_difference_at_any_depth() {
        let (old, new) = (json!({"a": [[1, 2, 3], {"b": [4, 5]}]}), json!({"a": [[3, 1, 2], {"b": [4, 6]}]}));
        let found: Vec<_> = diff(&old, &new).iter().map(|it| (it.kind(), it.pointer().to_owned())).collect();
        assert_eq!(found, [(ChangeKind::Reordered, "/a/0".to_owned()), (ChangeKind::Changed, "/a/1/b/1".to_owned())]);
        let twice = diff(&json!([1, 1, 2]), &json!([1, 2, 2]));
        assert!(twice.iter().all(|change| change.kind() != ChangeKind::Reordered), "not as often: {twice:?}");
    }

    #[test]
    fn a_long_reversed_array_is_one_difference() {
        let old: Vec<Value> = (0..100_000).map(Value::from).collect();
        let new: Vec<Value> = old.iter().rev().cloned().collect();
        let kinds: Vec<_> = diff(&json!(old), &json!(new)).iter().map(JsonChange::kind).collect();
        assert_eq!(kinds, [ChangeKind::Reordered]);
    }

    proptest! {
        #[test]
        fn any_reordering_is_one_difference_in_both_directions(
            (old, new) in prop::collection::vec(0u8..5, 0..8).prop_flat_map(|old| (Just(old.clone()), Just(old).prop_shuffle())),
        ) {
            let (old, new) = (json!(old), json!(new));
            let (there, back) = (diff(&old, &new), diff(&new, &old));
            prop_assert!(diff(&old, &old).is_empty());
            prop_assert_eq!(there.count(), usize::from(old != new));
            let turned = |change: &JsonChange| JsonChange { baseline: change.new.clone(), new: change.baseline.clone() };
            prop_assert_eq!(there.to_vec(), back.iter().map(turned).collect::<Vec<_>>());
            prop_assert!(there.iter().all(|change| change.kind() == ChangeKind::Reordered));
            let mirrored = moved_in(&new, &old).map(|moved| match moved {
                Moved::One(from, to) => Moved::One(to, from),
                exchanged @ Moved::Exchanged(..) => exchanged,
            });
            prop_assert_eq!(moved_in(&old, &new), mirrored);
        }
    }
}
