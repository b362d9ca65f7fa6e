//! A rule of comparison selects values by tool or event and by a pattern of JSON Pointers, and states how they are compared. A view is
//! a value after the rules: ignored parts are removed, normalised parts replaced by placeholders, and unordered arrays sorted. Two
//! values with equal views are equal, unless ids in them are renamed inconsistently.

use std::fmt;
use std::str::FromStr;

use counterproof_artifact::evaluation::RuleUse;
use counterproof_artifact::pointer;
use counterproof_cases::glob;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::forms::{self, Renaming};
use crate::values::{self, meaning};

/// The rules of a comparison in the order in which they are written. If several rules say how to compare a value, the first
/// one applies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    pub(super) rules: Vec<Rule>,
}

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

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    Ignore,
    /// Values of the same form are equal.
    Normalise(Form),
    /// Numbers within the tolerance are equal.
    Tolerance(Tolerance),
    /// The order of its elements does not matter.
    Unordered,
    /// Its elements are paired by this field, and their order does not matter.
    Key(String),
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

/// A pattern of JSON Pointers (RFC 6901): `*` matches one segment, `**` matches any number of segments, including none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Key(String),
    Any,
    AnyNumber,
    /// Arguments or results: one of [`ARGUMENTS_AND_RESULTS`].
    ArgumentsAndResults,
}

/// The text is not a JSON Pointer.
#[derive(Debug, thiserror::Error)]
#[error("`path` is a JSON Pointer and starts with `/`: write `/{suggestion}` instead of `{text}`")]
pub struct InvalidPattern {
    text: String,
    /// The same path with `/` as the separator.
    suggestion: String,
}

/// The arguments of a call, the parameters of an action, and what a tool returned.
const ARGUMENTS_AND_RESULTS: [&str; 3] = ["args", "params", "payload_summary"];

impl Pattern {
    /// Matches the arguments and results of a tool, but not the existence or the status of its calls.
    pub(super) fn tool_data() -> Self {
        Self { segments: vec![Segment::ArgumentsAndResults] }
    }

    pub(super) fn event_data() -> Self {
        Self { segments: vec![Segment::Any] }
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let Some(rest) = text.strip_prefix('/') else {
            // `$.a.b` and `a.b` are the usual mistakes: JSONPath, and the notation of the messages.
            let suggestion = text.trim_start_matches("$.").replace('.', "/");
            return Err(InvalidPattern { text: text.to_owned(), suggestion });
        };
        let segment = |text: &str| match text {
            "*" => Segment::Any,
            "**" => Segment::AnyNumber,
            // `~1` before `~0`, as RFC 6901 requires: `~01` is `~1`, not `/`.
            key => Segment::Key(key.replace("~1", "/").replace("~0", "~")),
        };
        Ok(Self { segments: rest.split('/').map(segment).collect() })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Key(key) => write!(f, "/{}", pointer::escape(key)),
            Segment::Any => f.write_str("/*"),
            Segment::ArgumentsAndResults => f.write_str("arguments and results"),
            Segment::AnyNumber => f.write_str("/**"),
        })
    }
}

/// The rules that apply at a position within a value or below it. Most positions have none.
#[derive(Debug, Clone, Default)]
pub struct Scope<'r> {
    rules: &'r [Rule],
    /// The index of each rule, with the next segment of its pattern to match.
    states: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Here<'r> {
    pub(crate) ignore: bool,
    pub(crate) form: Option<Form>,
    pub(crate) tolerance: Option<Tolerance>,
    pub(crate) unordered: bool,
    pub(crate) key: Option<&'r str>,
    pub(crate) default: Option<&'r Value>,
}

impl Here<'_> {
    pub(crate) fn same(&self, old: &Value, new: &Value, renaming: &mut Renaming) -> bool {
        if values::same(old, new) && self.form.is_none() {
            return true;
        }
        if let (Some(tolerance), Value::Number(old), Value::Number(new)) = (self.tolerance, old, new) {
            return old.as_f64().zip(new.as_f64()).is_some_and(|(old, new)| tolerance.holds(old, new));
        }
        let reduced = |value| self.form.and_then(|form| forms::reduced(value, form));
        match (reduced(old), reduced(new)) {
            (Some((old, ids)), Some((new, new_ids))) => {
                // All pairs of ids are recorded, even after a mismatch, so that later comparisons do not depend on it.
                let fit = ids.iter().zip(&new_ids).filter(|(old, new)| renaming.matches(old, new)).count();
                old == new && fit == ids.len() && fit == new_ids.len()
            }
            _ => values::same(old, new),
        }
    }
}

impl<'r> Scope<'r> {
    pub(super) fn at_root(rules: &'r [Rule], fitting: impl Iterator<Item = usize>) -> Self {
        let mut scope = Self { rules, states: Vec::new() };
        fitting.for_each(|rule| scope.enter(rule, 0));
        scope
    }

    /// True if no rule applies here or below.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the rules that apply below a key or an index.
    #[must_use]
    pub fn below(&self, key: &str) -> Self {
        self.below_either(key, key)
    }

    /// Returns the rules that apply below a pair of elements, which can have different indexes.
    #[must_use]
    pub(crate) fn below_either(&self, key: &str, other: &str) -> Self {
        let mut scope = Self { rules: self.rules, states: Vec::new() };
        for (rule, next) in &self.states {
            match self.rules[*rule].path.segments.get(*next) {
                Some(Segment::Key(wanted)) if wanted == key || wanted == other => scope.enter(*rule, next + 1),
                Some(Segment::Any) => scope.enter(*rule, next + 1),
                Some(Segment::ArgumentsAndResults) if ARGUMENTS_AND_RESULTS.contains(&key) => {
                    scope.enter(*rule, next + 1);
                }
                Some(Segment::AnyNumber) => scope.enter(*rule, *next),
                Some(Segment::Key(_) | Segment::ArgumentsAndResults) | None => {}
            }
        }
        scope
    }

    /// Adds a state, and the states that `**` reaches from it without consuming a segment.
    fn enter(&mut self, rule: usize, next: usize) {
        // Two `**` can reach one state on many paths; without this check the states would grow exponentially.
        if self.states.contains(&(rule, next)) {
            return;
        }
        self.states.push((rule, next));
        if self.rules[rule].path.segments.get(next) == Some(&Segment::AnyNumber) {
            self.enter(rule, next + 1);
        }
    }

    /// Returns the indexes of the rules whose pattern ends here.
    pub(super) fn acting(&self) -> impl Iterator<Item = usize> {
        let ends = self.states.iter().filter(|(rule, next)| self.rules[*rule].path.segments.len() == *next);
        ends.map(|(rule, _)| *rule)
    }

    pub(crate) fn here(&self) -> Here<'r> {
        let mut here = Here::default();
        let mut acting: Vec<_> = self.acting().collect();
        // In the order in which the rules are written, because the first rule that applies wins.
        acting.sort_unstable();
        for rule in acting {
            match &self.rules[rule].effect {
                Effect::Ignore => here.ignore = true,
                // The first rule for leaves applies, and the first rule for the pairing of elements.
                Effect::Normalise(form) if here.tolerance.is_none() => here.form = here.form.or(Some(*form)),
                Effect::Tolerance(tolerance) if here.form.is_none() => {
                    here.tolerance = here.tolerance.or(Some(*tolerance));
                }
                Effect::Unordered if here.key.is_none() => here.unordered = true,
                Effect::Key(field) if !here.unordered => here.key = here.key.or(Some(field)),
                Effect::Normalise(_) | Effect::Tolerance(_) | Effect::Unordered | Effect::Key(_) => {}
                Effect::Default(value) => here.default = here.default.or(Some(value)),
            }
        }
        here
    }
}

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
                // A field with its default value equals a missing field, so it is left out of the view.
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
                // Sorted by content, so that equal sets have equal views whatever their order.
                items.sort_by(meaning::compare_values);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        let rule =
            Rule { selector: super::Selector::Everything, path: pattern.parse().unwrap(), effect: Effect::Ignore };
        let rules = [rule];
        let root = Scope::at_root(&rules, std::iter::once(0));
        let place = path.split('/').skip(1).fold(root, |scope, key| scope.below(key));
        place.here().ignore
    }

    #[test]
    fn one_star_is_one_segment_and_two_are_any_number() {
        for (pattern, path) in [
            ("/args/date", "/args/date"),
            ("/args/*", "/args/date"),
            ("/*/date", "/params/date"),
            ("/args/**", "/args"),
            ("/args/**", "/args/a/b/c"),
            ("/**/date", "/date"),
            ("/**/date", "/a/0/date"),
            ("/**/items/*/id", "/a/items/3/id"),
            ("/a~1b/c~0d", "/a/b/c~d"),
        ] {
            let expected = pattern != "/a~1b/c~0d";
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/args/date", "/args"),
            ("/args/*", "/args"),
            ("/args/*", "/args/a/b"),
            ("/**/date", "/date/x"),
            ("/*", "/a/b"),
        ] {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn formatting_a_pattern_returns_its_source() {
        for pattern in ["/args/date", "/**/a~1b/*"] {
            assert_eq!(pattern.parse::<Pattern>().unwrap().to_string(), pattern);
        }
        let error = "$.args.date".parse::<Pattern>().unwrap_err().to_string();
        assert!(error.contains("write `/args/date`"), "{error}");
    }
}
