//! An event or an action, prepared to be compared with many others.

use std::cell::OnceCell;
use std::cmp::Ordering;

use serde_json::Value;

use super::assign::Cost;
use super::compared::{Compared, arguments_in};
use super::json::{self, JsonChanges};
use crate::rules::{self, Notes, Renaming, Scope};
use crate::values::distance::Leaves;
use crate::values::written::unwritten;
use crate::values::{self, order};

/// What it costs to pair two elements that differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostRange {
    /// The cost of the smallest difference.
    pub(super) least: Cost,
    /// The cost of two elements with nothing in common, and of an element without a counterpart.
    pub(super) most: Cost,
}

/// An event or an action, prepared for comparison. Values are built only when needed: for most parts the hash decides.
pub(super) struct Part<'a> {
    compared: Compared<'a>,
    value: OnceCell<Value>,
    /// The rules that apply to it.
    pub(super) scope: Scope<'a>,
    /// A hash that is equal for equal parts.
    pub(super) key: u64,
    /// The view under the rules; `None` if no rule applies.
    view: Option<Value>,
    coarse: OnceCell<(Leaves, u64)>,
}

impl<'a> Part<'a> {
    /// Prepares a part, and records which rules apply.
    pub(super) fn new(compared: Compared<'a>, scope: Scope<'a>, notes: &mut Notes) -> Self {
        let (value, mut view) = (OnceCell::new(), None);
        let key = if scope.is_empty() {
            let key = compared.meaning_hash();
            debug_assert_eq!(key, values::meaning_hash(&compared.to_value()), "the hash covers the compared fields");
            key
        } else {
            let seen = rules::view(value.get_or_init(|| compared.to_value()), &scope, notes).unwrap_or_default();
            values::meaning_hash(view.insert(seen))
        };
        Self { compared, value, scope, key, view, coarse: OnceCell::new() }
    }

    /// Returns the compared fields, under the pointers of the artifact. They are built on first use.
    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| self.compared.to_value())
    }

    /// Returns the view under the rules.
    pub(super) fn view(&self) -> &Value {
        self.view.as_ref().unwrap_or_else(|| self.value())
    }

    /// Compares two parts by content.
    pub(super) fn order(&self, other: &Part<'_>) -> Ordering {
        if self.key == other.key { Ordering::Equal } else { order::of_values(self.view(), other.view()) }
    }

    /// Lists the differences of two parts.
    pub(super) fn changes(&self, other: &Part<'_>, renaming: &mut Renaming) -> JsonChanges {
        let known_to_be_same = self.key == other.key && self.view.is_none() && other.view.is_none();
        if known_to_be_same {
            return JsonChanges::default();
        }
        json::diff_under(self.value(), other.value(), &self.scope, renaming)
    }

    /// Returns the number of leaves that a comparison reads. A list that is written as text counts as one.
    pub(super) fn size(&self) -> usize {
        if self.view.is_some() {
            return self.coarse().0.count();
        }
        self.compared.size()
    }

    /// Returns the cost of a pair: 0 for equal parts, else within the range by distance.
    pub(super) fn cost(&self, other: &Part<'_>, range: CostRange) -> Cost {
        if self.key == other.key || self.is_near(other) {
            return 0;
        }
        range.least + self.coarse().0.cost(&other.coarse().0, range.most - range.least)
    }

    /// True if the parts differ only in numbers within the tolerance of a rule.
    fn is_near(&self, other: &Part<'_>) -> bool {
        // Comparing is expensive, so it runs only if the views without such numbers have equal hashes.
        self.view.is_some()
            && self.coarse().1 == other.coarse().1
            && self.changes(other, &mut Renaming::any()).is_empty()
    }

    fn coarse(&self) -> &(Leaves, u64) {
        self.coarse.get_or_init(|| {
            // A list that is written as text is as near as the list itself.
            let arguments = |value: &Value| Leaves::from_value(&unwritten(arguments_in(value)));
            if self.view.is_none() {
                return (arguments(self.value()), self.key);
            }
            let coarse = rules::coarse_view(self.value(), &self.scope).unwrap_or_default();
            (arguments(&coarse), values::meaning_hash(&coarse))
        })
    }
}
