//! Rules of comparison: selectors, effects, and their text form.

use std::fmt;

use counterproof_artifact::evaluation::RuleUse;
use counterproof_cases::glob;
use serde::Deserialize;
use serde_json::Value;

use super::path::{Pattern, Scope};

/// The rules of a comparison in the order in which they are written. If several rules say how to compare a value, the first
/// one applies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    pub(super) rules: Vec<Rule>,
}

/// A rule of comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(super) selector: Selector,
    pub(super) path: Pattern,
    pub(super) effect: Effect,
}

/// The events and actions that a rule selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selector {
    /// Every event, every action, and the final output.
    Everything,
    /// The calls, results and proposed actions of the tools that match this glob pattern.
    Tool(String),
    /// The events whose type matches this glob pattern. The final output counts as an event.
    Event(String),
}

/// How a rule changes the comparison of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// The value is not compared.
    Ignore,
    /// Values of the same form are equal.
    Normalise(Form),
    /// Numbers within the tolerance are equal.
    Tolerance(Tolerance),
    /// The order of its elements does not matter.
    Unordered,
    /// Its elements are paired by this field, and their order does not matter.
    Key(String),
    /// An absent value equals this one.
    Default(Value),
}

/// A form of values that differ between any two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// A timestamp: ISO 8601, alone or within a text, or a number of seconds or milliseconds since 1970.
    Timestamp,
    /// A UUID, alone or within a text. UUIDs are equal if they are renamed consistently.
    Uuid,
    /// A text or a number. Ids are equal if they are renamed consistently.
    Id,
}

/// The largest difference of two numbers that are still equal. The larger of both bounds applies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tolerance {
    pub(super) absolute: f64,
    /// A share of the larger absolute value.
    pub(super) relative: f64,
}

impl Tolerance {
    pub(crate) fn holds(self, old: f64, new: f64) -> bool {
        (old - new).abs() <= self.absolute.max(self.relative * old.abs().max(new.abs()))
    }
}

/// The event or action that a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subject<'a> {
    /// The type of the event; `None` for a proposed action.
    pub event: Option<&'a str>,
    /// The tool of a call, of a result or of an action.
    pub tool: Option<&'a str>,
}

impl Selector {
    fn fits(&self, subject: Subject<'_>) -> bool {
        match self {
            Selector::Everything => true,
            Selector::Tool(pattern) => subject.tool.is_some_and(|tool| glob::fits(pattern, tool)),
            Selector::Event(pattern) => subject.event.is_some_and(|event| glob::fits(pattern, event)),
        }
    }
}

impl Rules {
    /// True if there are no rules.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Sums how often each rule was applied over all cases.
    pub fn used(&self, matched: &[Vec<u64>]) -> Vec<RuleUse> {
        let sum = |index: usize| matched.iter().filter_map(|counts| counts.get(index)).sum();
        let rules = self.rules.iter().enumerate();
        rules.map(|(index, rule)| RuleUse { rule: rule.to_string(), matched: sum(index) }).collect()
    }

    /// Returns the rules that apply at or below the root of `subject`.
    pub fn scope(&self, subject: Subject<'_>) -> Scope<'_> {
        let fitting = self.rules.iter().enumerate().filter(|(_, rule)| rule.selector.fits(subject));
        Scope::at_root(&self.rules, fitting.map(|(index, _)| index))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.selector {
            Selector::Everything => {}
            Selector::Tool(pattern) => write!(f, "tool {pattern}, ")?,
            Selector::Event(pattern) => write!(f, "event {pattern}, ")?,
        }
        write!(f, "{}: ", self.path)?;
        match &self.effect {
            Effect::Ignore => f.write_str("ignore"),
            Effect::Normalise(Form::Timestamp) => f.write_str("normalise timestamp"),
            Effect::Normalise(Form::Uuid) => f.write_str("normalise uuid"),
            Effect::Normalise(Form::Id) => f.write_str("normalise id"),
            Effect::Tolerance(Tolerance { absolute, relative }) => match (*absolute > 0.0, *relative > 0.0) {
                (true, true) => write!(f, "tolerance {absolute} or relative {relative}"),
                (false, true) => write!(f, "tolerance relative {relative}"),
                _ => write!(f, "tolerance {absolute}"),
            },
            Effect::Unordered => f.write_str("unordered"),
            Effect::Key(field) => write!(f, "key {field}"),
            Effect::Default(value) => write!(f, "default {value}"),
        }
    }
}
