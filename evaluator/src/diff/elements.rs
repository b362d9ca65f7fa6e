//! Which elements of two arrays stand for each other: by longest common subsequence (Myers 1986), or, where the rules of
//! comparison say so, by a field that they are known by or as sets.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use serde_json::Value;
use similar::{Algorithm, DiffOp};

use super::json::meaning_hash;
use super::lcs;
use super::order;
use crate::rules::{Notes, Scope, view};

/// Elements to be compared, by their indexes; one that only one side has stands alone.
pub(super) type Matched = (Option<usize>, Option<usize>);

/// Which elements are to be compared, leaving out what the rules ignore. Without rules also what is equal is left out.
///
/// Of subsequences that are equally long the choice is made by content, so that it does not matter which side is which.
pub(super) fn matched(baseline: &[Value], new: &[Value], scope: &Scope<'_>) -> Vec<Matched> {
    if scope.is_empty() {
        return in_order(&plain(baseline), &plain(new), false);
    }
    let here = scope.here();
    let (old, other) = (seen(baseline, scope), seen(new, scope));
    match here.key {
        Some(field) => as_sets(&old, &other, Some(field)),
        None if here.unordered => as_sets(&old, &other, None),
        None => in_order(&old, &other, true),
    }
}

/// An element as it is matched.
struct Element<'a> {
    index: usize,
    value: &'a Value,
    /// As the rules see it; none where that is the value itself.
    view: Option<Value>,
    key: u64,
}

impl Element<'_> {
    fn view(&self) -> &Value {
        self.view.as_ref().unwrap_or(self.value)
    }
}

fn plain(values: &[Value]) -> Vec<Element<'_>> {
    let elements = values.iter().enumerate();
    elements.map(|(index, value)| Element { index, value, view: None, key: meaning_hash(value) }).collect()
}

fn seen<'a>(values: &'a [Value], scope: &Scope<'_>) -> Vec<Element<'a>> {
    let elements = values.iter().enumerate().filter_map(|(index, value)| {
        // What the rules match was noted when the whole value was viewed.
        let view = view(value, &scope.below(&index.to_string()), &mut Notes::default())?;
        Some(Element { index, value, key: meaning_hash(&view), view: Some(view) })
    });
    elements.collect()
}

fn in_order(old: &[Element<'_>], new: &[Element<'_>], equal_too: bool) -> Vec<Matched> {
    let keys = |elements: &[Element<'_>]| elements.iter().map(|element| element.key).collect::<Vec<_>>();
    let (keys_before, keys_after) = (keys(old), keys(new));
    if keys_before == keys_after && !equal_too {
        return Vec::new();
    }
    let by_view = |a: &Element<'_>, b: &Element<'_>| order::of_values(a.view(), b.view());
    let turned = order::of_lists(old, new, by_view) == Ordering::Greater;
    let (first, second) = if turned { (&keys_after, &keys_before) } else { (&keys_before, &keys_after) };
    let mut matched = Vec::new();
    for op in lcs::operations(Algorithm::Myers, first, second) {
        if matches!(op, DiffOp::Equal { .. }) && !equal_too {
            continue;
        }
        let (left, right) = if turned { (op.new_range(), op.old_range()) } else { (op.old_range(), op.new_range()) };
        let index = |elements: &[Element<'_>], at: usize, end: usize| (at < end).then(|| elements[at].index);
        let pair =
            |offset: usize| (index(old, left.start + offset, left.end), index(new, right.start + offset, right.end));
        matched.extend((0..left.len().max(right.len())).map(pair));
    }
    matched
}

/// Equal elements first; then, of those that are known by a field, the ones in which it is equal, and of others the ones
/// that stand nearest to each other in the order of their contents.
fn as_sets(old: &[Element<'_>], new: &[Element<'_>], field: Option<&str>) -> Vec<Matched> {
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

    // The order of contents is the same whichever side is which.
    let lesser = |(a, b): &(&Element<'_>, &Element<'_>)| {
        let (a, b) = (a.view().clone(), b.view().clone());
        if order::of_values(&a, &b).is_le() { a } else { b }
    };
    pairs.sort_by(|a, b| order::of_values(&lesser(a), &lesser(b)));
    let alone = alone.into_iter().map(|element| (Some(element.index), None));
    let new_alone = new_alone.into_iter().map(|element| (None, Some(element.index)));
    pairs.into_iter().map(|(a, b)| (Some(a.index), Some(b.index))).chain(alone).chain(new_alone).collect()
}

fn by_content<'e, 'v>(elements: &'e [Element<'v>]) -> Vec<&'e Element<'v>> {
    let mut sorted: Vec<_> = elements.iter().collect();
    sorted.sort_by(|a, b| order::of_values(a.view(), b.view()));
    sorted
}

type Elements<'e, 'v> = Vec<&'e Element<'v>>;

/// Pairs what has the same key, and gives back the rest of both sides.
fn take_equal<'e, 'v>(
    old: Elements<'e, 'v>,
    new: Elements<'e, 'v>,
    key: impl Fn(&Element<'v>) -> Option<u64>,
    pairs: &mut Vec<(&'e Element<'v>, &'e Element<'v>)>,
) -> (Elements<'e, 'v>, Elements<'e, 'v>) {
    let mut waiting: HashMap<u64, VecDeque<usize>> = HashMap::new();
    for (place, element) in new.iter().enumerate() {
        if let Some(key) = key(element) {
            waiting.entry(key).or_default().push_back(place);
        }
    }
    let mut taken = vec![false; new.len()];
    let mut left = Vec::new();
    for element in old {
        match key(element).and_then(|key| waiting.get_mut(&key)?.pop_front()) {
            Some(place) => {
                taken[place] = true;
                pairs.push((element, new[place]));
            }
            None => left.push(element),
        }
    }
    let mut taken = taken.into_iter();
    (left, new.into_iter().filter(|_| taken.next() == Some(false)).collect())
}
