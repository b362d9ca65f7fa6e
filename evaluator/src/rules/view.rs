//! A value as the rules see it: without what is ignored, with what is left open replaced, and with a fixed order where
//! none counts. Two values whose views are equal mean the same, as far as no id in them is renamed inconsistently.

use serde_json::{Map, Value};

use super::forms;
use super::path::Scope;
use crate::values;
use crate::values::order;

/// What is noted on the way.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// For each rule, at how many places it acted.
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

    /// Adds what was noted elsewhere.
    pub fn add(&mut self, matched: &[u64]) {
        if self.matched.len() < matched.len() {
            self.matched.resize(matched.len(), 0);
        }
        self.matched.iter_mut().zip(matched).for_each(|(sum, more)| *sum += more);
    }
}

/// The value as the rules see it; `None` where they leave nothing of it.
pub fn view(value: &Value, scope: &Scope<'_>, notes: &mut Notes) -> Option<Value> {
    seen(value, scope, &mut Some(notes))
}

/// The same with every number left out that has a tolerance: values that differ in nothing else are the same in it.
pub(crate) fn coarse_view(value: &Value, scope: &Scope<'_>) -> Option<Value> {
    seen(value, scope, &mut None)
}

/// Without notes, numbers that have a tolerance are left out.
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

/// Stands for a number that may be another one near it.
const NEAR: &str = "\u{0}near";
