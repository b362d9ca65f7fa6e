//! Rules, what they select, and how they are written out.

use std::fmt;

use counterproof_artifact::evaluation::RuleUse;
use counterproof_cases::glob;
use serde::Deserialize;
use serde_json::Value;

use super::path::{Pattern, Scope};

/// The rules of a comparison, in the order in which they are written. Of several for one value, the first that says how to
/// compare it counts.
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

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selector {
    /// Every event, every action, and the final output.
    Everything,
    /// The calls, the results and the proposed actions of the tools that fit this pattern.
    Tool(String),
    /// The events whose type fits this pattern; the final output counts as one.
    Event(String),
}

/// What a rule says of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// It is not compared.
    Ignore,
    /// Another value of the same form is as good.
    Normalise(Form),
    /// Another number that is near is as good.
    Tolerance(Tolerance),
    /// Its elements have no order.
    Unordered,
    /// Its elements are known by this field, and have no order.
    Key(String),
    /// Where it is absent, it is taken to be this.
    Default(Value),
}

/// A form of values that differ between any two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// A point in time: ISO 8601, alone or within a text, or a number of seconds or milliseconds since 1970.
    Timestamp,
    /// A UUID, alone or within a text, that is renamed consistently.
    Uuid,
    /// A text or a number that is renamed consistently.
    Id,
}

/// How far two numbers may be apart to be the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tolerance {
    pub(super) absolute: f64,
    /// Of the larger of the two.
    pub(super) relative: f64,
}

impl Tolerance {
    pub(crate) fn holds(self, old: f64, new: f64) -> bool {
        (old - new).abs() <= self.absolute.max(self.relative * old.abs().max(new.abs()))
    }
}

/// What a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subject<'a> {
    /// The type of the event; none for a proposed action.
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
    /// True where there are none.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Each rule with the number of places at which it acted, from what was noted case by case.
    pub fn used(&self, matched: &[Vec<u64>]) -> Vec<RuleUse> {
        let sum = |index: usize| matched.iter().filter_map(|counts| counts.get(index)).sum();
        let rules = self.rules.iter().enumerate();
        rules.map(|(index, rule)| RuleUse { rule: rule.to_string(), matched: sum(index) }).collect()
    }

    /// The rules that act at or below the root of what belongs to `subject`.
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
