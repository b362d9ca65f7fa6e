//! The conditions of a rule, and whether a call meets them.
//!
//! A condition is met, not met, or undecided. A rule matches if all its conditions are met. One condition that is not met decides,
//! whatever the others are.

use std::fmt;

use counterproof_artifact::one_line;
use counterproof_expression::NoValue;

use super::arguments::ArgsCondition;
use super::expression::{CelCondition, CelInputs};
use super::names::PatternRange;
use crate::policy::call::{Args, CallFacts};

/// Longest part of an expression in a reason, in characters.
const PART_CHARS: usize = 80;

/// The conditions of a rule. A field that is `None` or empty is met by every call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// Patterns for the name of the server.
    pub server_name: Option<PatternRange>,
    /// Patterns for the name of the tool.
    pub tool_name: Option<PatternRange>,
    /// Risk classes in lower case, of which the call must have one.
    pub risk_class: Vec<String>,
    pub args: Option<ArgsCondition>,
    /// A condition in CEL.
    pub cel: Option<CelCondition>,
}

/// Whether a call meets the conditions of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match<'r> {
    /// All conditions are met.
    Yes,
    /// This condition is not met.
    No(Condition<'r>),
    /// No condition is known to be not met, and this one is undecided.
    Undecided(Condition<'r>, Doubt),
}

/// One condition of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition<'r> {
    ServerName,
    ToolName,
    RiskClass,
    /// The presence of a key.
    HasKey(&'r str),
    /// The value of a key.
    KeyEquals(&'r str),
    /// The value of a key.
    KeyIn(&'r str),
    /// The number of a key.
    NumericRange(&'r str),
    /// Any of the conditions on arguments.
    Args,
    /// The condition in CEL.
    Cel,
}

/// Why a condition is undecided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The name is too long to be matched.
    #[error("the name is longer than {} bytes", super::names::MAX_NAME_BYTES)]
    NameTooLong,
    /// The arguments are too large to be inspected.
    #[error("the arguments are too large to be inspected")]
    ArgsTooLarge,
    /// A tag rule that would add the class is itself undecided.
    #[error("a tag rule for this risk class is undecided")]
    RiskClassUncertain,
    /// The condition in CEL has no value.
    #[error("{message}")]
    CelFailed {
        /// The part of the expression that failed.
        part: String,
        /// The failure. The text may contain parts of the arguments.
        message: String,
    },
    /// The condition in CEL takes too many steps.
    #[error("{}", NoValue::TooLong)]
    CelTooLong,
}

impl Doubt {
    /// Describes the doubt without values of the call.
    pub(crate) fn without_values(&self) -> String {
        match self {
            Doubt::CelFailed { part, .. } => format!("`{}` has no value", one_line(part, PART_CHARS)),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Condition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::ServerName => f.write_str("match.server_name"),
            Condition::ToolName => f.write_str("match.tool_name"),
            Condition::RiskClass => f.write_str("match.risk_class"),
            Condition::HasKey(key) => write!(f, "match.args.has_keys `{key}`"),
            Condition::KeyEquals(key) => write!(f, "match.args.key_equals `{key}`"),
            Condition::KeyIn(key) => write!(f, "match.args.key_in `{key}`"),
            Condition::NumericRange(key) => write!(f, "match.args.numeric_range `{key}`"),
            Condition::Args => f.write_str("match.args"),
            Condition::Cel => f.write_str("match.cel"),
        }
    }
}

/// The risk classes of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RiskClasses {
    certain: Vec<String>,
    possible: Vec<String>,
}

impl RiskClasses {
    /// Adds classes. They are only possible ones if the tag rule is undecided.
    pub(crate) fn add(&mut self, classes: &[String], is_certain: bool) {
        let list = if is_certain { &mut self.certain } else { &mut self.possible };
        for class in classes {
            if !list.contains(class) {
                list.push(class.clone());
            }
        }
    }

    /// The classes that the call certainly has, in the order in which they were added.
    pub(crate) fn certain(&self) -> &[String] {
        &self.certain
    }

    pub(crate) fn has_possible(&self) -> bool {
        self.possible.iter().any(|class| !self.certain.contains(class))
    }

    pub(crate) fn into_certain(self) -> Vec<String> {
        self.certain
    }
}

impl Conditions {
    /// Checks the conditions that do not concern names.
    pub(crate) fn check(&self, call: &CallFacts<'_>, classes: &RiskClasses, cel: &mut CelInputs<'_>) -> Match<'_> {
        let mut undecided = None;
        if !self.risk_class.is_empty() && !self.risk_class.iter().any(|class| classes.certain.contains(class)) {
            if !self.risk_class.iter().any(|class| classes.possible.contains(class)) {
                return Match::No(Condition::RiskClass);
            }
            undecided = Some((Condition::RiskClass, Doubt::RiskClassUncertain));
        }
        if let Some(condition) = &self.args {
            match call.args {
                Args::Inspected(args) => {
                    if let Some(unmet) = condition.unmet(args) {
                        return Match::No(unmet);
                    }
                }
                Args::TooLarge => undecided = undecided.or(Some((Condition::Args, Doubt::ArgsTooLarge))),
            }
        }
        if let Some(condition) = &self.cel {
            match condition.evaluate(cel, classes) {
                Ok(true) => {}
                Ok(false) => return Match::No(Condition::Cel),
                Err(doubt) => undecided = undecided.or(Some((Condition::Cel, doubt))),
            }
        }
        undecided.map_or(Match::Yes, |(condition, doubt)| Match::Undecided(condition, doubt))
    }
}
