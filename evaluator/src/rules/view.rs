//! Views: values after the rules of comparison. Ignored parts are removed, normalised parts are replaced by placeholders,
//! and unordered arrays are sorted. Two values with equal views are equal, unless ids in them are renamed inconsistently.

use serde_json::{Map, Value};

use super::forms;
use super::path::Scope;
use crate::values;
use crate::values::order;

/// What was recorded while views were built.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// For each rule, how often it was applied.
    pub matched: Vec<u64>,
    /// The ids that may be renamed.
    pub ids: Vec<String>,
}

impl Notes {
    fn take(&mut self, scope: &Scope<'_>) {
        for rule in scope.acting() {
            if self.matched.len() <= rule {
                self.matched.resize(rule + 1, 0);
            }
            self.matched[rule] += 1;
        }
    }

    /// Adds the counts of other notes.
    pub fn add(&mut self, matched: &[u64]) {
        if self.matched.len() < matched.len() {
            self.matched.resize(matched.len(), 0);
        }
        self.matched.iter_mut().zip(matched).for_each(|(sum, more)| *sum += more);
    }
}

/// Returns the view of a value. `None` if the rules ignore all of it.
pub fn view(value: &Value, scope: &Scope<'_>, notes: &mut Notes) -> Option<Value> {
    seen(value, scope, &mut Some(notes))
}

/// Returns the view with a placeholder for each number that has a tolerance. Values that differ only in such numbers have
/// the same coarse view.
pub(crate) fn coarse_view(value: &Value, scope: &Scope<'_>) -> Option<Value> {
    seen(value, scope, &mut None)
}

/// Builds a view, or without notes a coarse view.
fn seen(value: &Value, scope: &Scope<'_>, notes: &mut Option<&mut Notes>) -> Option<Value> {
    if scope.is_empty() {
        return Some(value.clone());
    }
    if let Some(notes) = notes {
        notes.take(scope);
    }
    let here = scope.here();
    if here.ignore {
        return None;
    }
    match value {
        Value::Object(fields) => {
            let mut left = Map::new();
            for (key, value) in fields {
                let below = scope.below(key);
                let absent = below.here().default.is_some_and(|default| values::same(default, value));
                let value = seen(value, &below, notes);
                left.extend(value.filter(|_| !absent).map(|value| (key.clone(), value)));
            }
            Some(Value::Object(left))
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let mut items: Vec<_> =
                items.filter_map(|(index, item)| seen(item, &scope.below(&index.to_string()), notes)).collect();
            if here.unordered || here.key.is_some() {
                items.sort_by(order::of_values);
            }
            Some(Value::Array(items))
        }
        Value::Number(_) if here.tolerance.is_some() && notes.is_none() => Some(Value::from(NEAR)),
        leaf => {
            let Some((rest, mut ids)) = here.form.and_then(|form| forms::reduced(leaf, form)) else {
                return Some(leaf.clone());
            };
            if let Some(notes) = notes {
                notes.ids.append(&mut ids);
            }
            Some(rest)
        }
    }
}

/// Replaces a number with a tolerance in a coarse view.
const NEAR: &str = "\u{0}near";
