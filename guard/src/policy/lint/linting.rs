//! A policy as it is linted: the rules without errors, and the settings that could be read.

use counterproof_ledger::event::Mode;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::policy::document::Compiled;
use crate::policy::model::{OnError, Rule};

/// A rule that is enabled and has no errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'p> {
    /// Its index in the document.
    pub(super) index: usize,
    pub(super) rule: &'p Rule,
    /// The rule as it is written.
    pub(super) value: &'p Value,
}

/// A policy that is linted.
#[derive(Debug)]
pub(super) struct Linting<'p> {
    pub(super) document: &'p Value,
    /// `None` if the mode has an error.
    pub(super) mode: Option<Mode>,
    pub(super) on_error: OnError,
    pub(super) rules: Vec<Written<'p>>,
    /// The indexes of rules with errors, of which little is known.
    pub(super) invalid: Vec<usize>,
}

impl<'p> Linting<'p> {
    pub(super) fn new(compiled: &'p Compiled, document: &'p Value) -> Self {
        let written = document.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_valid = |index: usize| {
            let pointer = format!("/rules/{index}");
            let is_about =
                |found: &str| found.strip_prefix(&pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            !compiled.findings.iter().any(|finding| is_about(&finding.pointer))
        };
        let (mut rules, mut invalid) = (Vec::new(), Vec::new());
        for (index, value) in written.iter().enumerate() {
            match compiled.rules.iter().find(|(at, _)| *at == index) {
                Some((_, rule)) if is_valid(index) => rules.push(Written { index, rule, value }),
                _ => invalid.push(index),
            }
        }
        rules.retain(|written| written.rule.is_enabled);
        let mode = read(document.get("mode"));
        let on_error = read(document.pointer("/defaults/decision_on_error")).unwrap_or_default();
        Self { document, mode, on_error, rules, invalid }
    }

    /// True if a rule with errors is at one of these indexes.
    pub(super) fn has_invalid(&self, mut indexes: impl Iterator<Item = usize>) -> bool {
        !self.invalid.is_empty() && indexes.any(|index| self.invalid.contains(&index))
    }
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    serde_json::from_value(value?.clone()).ok()
}
