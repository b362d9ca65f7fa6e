//! Patterns of JSON Pointers, and the rules that apply at each position within a value.

use std::fmt;
use std::str::FromStr;

use counterproof_artifact::pointer;

use serde_json::Value;

use super::forms::{self, Renaming};
use super::rule::{Effect, Form, Rule, Tolerance};
use crate::values;

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
    /// The invalid text.
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

    /// Matches all fields of an event.
    pub(super) fn event_data() -> Self {
        Self { segments: vec![Segment::Any] }
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let Some(rest) = text.strip_prefix('/') else {
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

/// The combined effect of the rules at one position.
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
    /// True if two leaves are equal under the rules.
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

    /// Combines the rules whose pattern ends here.
    pub(crate) fn here(&self) -> Here<'r> {
        let mut here = Here::default();
        let mut acting: Vec<_> = self.acting().collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        let rule = Rule {
            selector: super::super::rule::Selector::Everything,
            path: pattern.parse().unwrap(),
            effect: Effect::Ignore,
        };
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
