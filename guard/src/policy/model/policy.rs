//! A policy that was checked and compiled.

use counterproof_ledger::event::{Mode, PolicyRef};
use serde::{Deserialize, Serialize};

use super::names::NamePatterns;
use super::rule::Rule;
use super::selectors::Selectors;
use crate::policy::responses::Responses;

/// The hash in place of that of a policy file.
const NO_HASH: &str = "none";

/// A policy that was checked and compiled.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) reference: PolicyRef,
    pub(crate) mode: Mode,
    pub(crate) defaults: Defaults,
    pub(crate) responses: Responses,
    pub(crate) selectors: Selectors,
    pub(crate) rules: Vec<Rule>,
    pub(crate) server_names: NamePatterns,
    pub(crate) tool_names: NamePatterns,
}

/// What happens if a rule is undecided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Defaults {
    /// What happens to calls that a rule cannot decide.
    pub decision_on_error: OnError,
    /// True if calls with the risk class `read_like` are allowed then, whatever `decision_on_error` is.
    pub fail_open_read_tools: bool,
}

/// What happens to calls that a rule cannot decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OnError {
    /// They are allowed: fail open.
    Allow,
    /// They are refused: fail closed.
    #[default]
    Block,
}

impl Policy {
    /// The policy without rules, which allows every call. It is used if no policy is given.
    pub fn observe_only() -> Self {
        Self {
            reference: PolicyRef {
                policy_id: "default".to_owned(),
                policy_version: "0.1.0".to_owned(),
                policy_hash: NO_HASH.to_owned(),
            },
            mode: Mode::Observe,
            defaults: Defaults::default(),
            responses: Responses::default(),
            selectors: Selectors::default(),
            rules: Vec::new(),
            server_names: NamePatterns::default(),
            tool_names: NamePatterns::default(),
        }
    }

    /// True if the policy comes from a file. Without one, it is [`Policy::observe_only`].
    pub fn is_loaded(&self) -> bool {
        self.reference.policy_hash != NO_HASH
    }

    /// The policy by name, version and hash.
    pub fn reference(&self) -> PolicyRef {
        self.reference.clone()
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What happens if a rule is undecided.
    pub fn defaults(&self) -> Defaults {
        self.defaults
    }

    /// How refused calls are answered.
    pub fn responses(&self) -> &Responses {
        &self.responses
    }

    /// The runs that the policy is for.
    pub fn selectors(&self) -> &Selectors {
        &self.selectors
    }

    /// The rules, in the order of their evaluation.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}
