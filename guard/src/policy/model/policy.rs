//! A policy: its rules, their effects, the runs that it is for, and how refused calls are answered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use counterproof_ledger::event::{Action, HintKind, Mode, PolicyRef, Severity, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::condition::Conditions;
use super::names::{NameMatch, NamePatterns};
use crate::identity::RunIdentity;

const NO_HASH: &str = "none";

#[derive(Debug, Clone)]
pub struct Policy {
    pub reference: PolicyRef,
    /// The JSON document, which `policy_hash` is of; `null` for [`Policy::observe_only`].
    pub document: Arc<Value>,
    pub mode: Mode,
    pub defaults: Defaults,
    pub responses: Responses,
    pub selectors: Selectors,
    pub rules: Vec<Rule>,
    pub server_names: NamePatterns,
    pub tool_names: NamePatterns,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
    Allow,
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
            document: Arc::default(),
            mode: Mode::Observe,
            defaults: Defaults::default(),
            responses: Responses::default(),
            selectors: Selectors::default(),
            rules: Vec::new(),
            server_names: NamePatterns::default(),
            tool_names: NamePatterns::default(),
        }
    }

    /// Returns false for [`Policy::observe_only`], the policy of a guard that was given none.
    pub fn is_loaded(&self) -> bool {
        self.reference.policy_hash != NO_HASH
    }

    pub fn reference(&self) -> PolicyRef {
        self.reference.clone()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleId(String);

impl RuleId {
    pub fn new(id: &str) -> Option<Self> {
        // An id that is blank could not be found in a record.
        (!id.trim().is_empty()).then(|| Self(id.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    Allow,
    Deny,
    Budget,
    RateLimit,
    Breaker,
    Dedupe,
    Tag,
}

impl RuleKind {
    pub const fn name(self) -> &'static str {
        match self {
            RuleKind::Allow => "allow",
            RuleKind::Deny => "deny",
            RuleKind::Budget => "budget",
            RuleKind::RateLimit => "rate_limit",
            RuleKind::Breaker => "breaker",
            RuleKind::Dedupe => "dedupe",
            RuleKind::Tag => "tag",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub id: RuleId,
    pub is_enabled: bool,
    pub conditions: Conditions,
    pub effect: Effect,
    pub severity: Severity,
}

impl Rule {
    pub const fn kind(&self) -> RuleKind {
        match &self.effect {
            Effect::Allow { .. } => RuleKind::Allow,
            Effect::Deny(_) => RuleKind::Deny,
            Effect::Budget(_) => RuleKind::Budget,
            Effect::RateLimit(_) => RuleKind::RateLimit,
            Effect::Breaker(_) => RuleKind::Breaker,
            Effect::Dedupe(_) => RuleKind::Dedupe,
            Effect::Tag(_) => RuleKind::Tag,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Allow {
        reason_code: String,
        message: Option<String>,
    },
    Deny(Refusal),
    Budget(Budget),
    RateLimit(RateLimit),
    Breaker(Breaker),
    Dedupe(Dedupe),
    /// Adds risk classes, in lower case.
    Tag(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub action: Action,
    pub reason_code: String,
    pub message: Option<String>,
    pub hint_text: Option<String>,
    pub hint_kind: HintKind,
    pub suggested_args: Option<Value>,
    pub retry_advice: Option<String>,
    /// Time to wait before the next attempt, for `THROTTLE`.
    pub backoff_ms: u64,
    pub terminate_code: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Run,
    Tool,
    ServerTool,
}

/// A budget: calls and cost units for the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    pub scope: Scope,
    pub limit_calls: Option<u64>,
    pub limit_cost_units: Option<u64>,
    pub cost_units_per_call: u64,
    pub on_exceed: Refusal,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RateLimit {
    pub scope: Scope,
    pub capacity: u64,
    pub refill_tokens: u64,
    pub refill_period_ms: u64,
    pub cost_tokens_per_call: u64,
    pub on_limit: Refusal,
}

/// A breaker. At least one of its thresholds is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Breaker {
    pub scope: Scope,
    pub repeats: Option<BreakerThreshold>,
    pub errors: Option<BreakerThreshold>,
    pub on_trip: Refusal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerThreshold {
    pub count: u64,
    pub window_ms: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Dedupe {
    pub scope: Scope,
    pub window_ms: u64,
    pub on_duplicate: Refusal,
}

/// The runs that a policy is for. All lists that are given must contain the value of the run; letter case is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selectors {
    pub env: Option<Vec<String>>,
    pub agent_id: Option<Vec<String>>,
    pub client: Option<Vec<String>>,
    pub workload: WorkloadSelectors,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadSelectors {
    pub namespace: Option<Vec<String>>,
    pub service_account: Option<Vec<String>>,
    pub repo: Option<Vec<String>>,
    pub branch: Option<Vec<String>>,
    pub labels: BTreeMap<String, LabelSelector>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum LabelSelector {
    // The published format leaves no other way: a label has a value or a list of values.
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetSelector {
    pub name: String,
    pub allowed: Vec<String>,
    pub value: Option<String>,
}

impl fmt::Display for UnmetSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed: Vec<String> = self.allowed.iter().map(|value| format!("`{value}`")).collect();
        let value = self.value.as_ref().map_or_else(|| "none".to_owned(), |value| format!("`{value}`"));
        write!(f, "`{}` needs {}, and the run has {value}", self.name, allowed.join(" or "))
    }
}

impl Selectors {
    pub fn unmet(&self, run: &RunIdentity) -> Option<UnmetSelector> {
        let none = Workload::default();
        let (job, select) = (run.workload.as_ref().unwrap_or(&none), &self.workload);
        let lists = [
            ("env", &self.env, Some(run.env.name())),
            ("agent_id", &self.agent_id, Some(run.agent_id.as_str())),
            ("client", &self.client, Some(run.client.name())),
            ("workload.namespace", &select.namespace, job.namespace.as_deref()),
            ("workload.service_account", &select.service_account, job.service_account.as_deref()),
            ("workload.repo", &select.repo, job.repo.as_deref()),
            ("workload.branch", &select.branch, job.branch.as_deref()),
        ];
        let unmet = |name: String, allowed: &[String], value: Option<&str>| {
            let is_unmet = !contains(allowed, value);
            is_unmet.then(|| UnmetSelector { name, allowed: allowed.to_owned(), value: value.map(str::to_owned) })
        };
        let mut lists = lists.into_iter();
        lists.find_map(|(name, list, value)| unmet(name.to_owned(), list.as_ref()?, value)).or_else(|| {
            let label = |name: &str| {
                // Exact names come first, in case two names differ only in letter case.
                let same = |(key, _): &(&String, &String)| lower(key) == lower(name);
                job.labels.get(name).or_else(|| job.labels.iter().find(same).map(|(_, value)| value))
            };
            let mut labels = select.labels.iter();
            labels.find_map(|(name, allowed)| {
                let allowed = match allowed {
                    LabelSelector::One(value) => std::slice::from_ref(value),
                    LabelSelector::Many(values) => values,
                };
                unmet(format!("workload.labels.{name}"), allowed, label(name).map(String::as_str))
            })
        })
    }
}

fn contains(list: &[String], value: Option<&str>) -> bool {
    value.is_some_and(|value| list.iter().any(|item| lower(item) == lower(value)))
}

fn lower(text: &str) -> String {
    text.to_lowercase()
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Responses {
    pub deny_as: DenyAs,
    pub codes: DenyCodes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenyAs {
    /// An error in protocol revisions with `initialize`, unless the client states the name of the Python SDK, which raises an
    /// exception; a tool result in later revisions, which reserve the default codes.
    #[default]
    Auto,
    Error,
    ToolResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DenyCodes {
    pub blocked: i32,
    pub throttled: i32,
    pub hint: i32,
    pub terminated: i32,
}

impl Default for DenyCodes {
    fn default() -> Self {
        Self { blocked: -32081, throttled: -32082, hint: -32083, terminated: -32084 }
    }
}

impl DenyCodes {
    /// Codes that JSON-RPC defines: parse error, invalid request, unknown method, invalid parameters, internal error.
    pub const RESERVED: [i32; 5] = [-32700, -32600, -32601, -32602, -32603];

    pub const fn named(&self) -> [(&'static str, i32); 4] {
        [("blocked", self.blocked), ("throttled", self.throttled), ("hint", self.hint), ("terminated", self.terminated)]
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NeverApplies {
    #[error("selector {0}")]
    Selector(UnmetSelector),
    #[error("its rules have patterns for the names of other servers in `server_name`")]
    ServerName,
}

impl Policy {
    pub fn never_applies(&self, run: &RunIdentity, server_name: &str) -> Option<NeverApplies> {
        // Tag rules decide nothing: a policy with only such rules, or with none, guards nothing on purpose.
        let mut rules = self.rules.iter().filter(|rule| rule.is_enabled && rule.kind() != RuleKind::Tag).peekable();
        rules.peek()?;
        if let Some(unmet) = self.selectors.unmet(run) {
            return Some(NeverApplies::Selector(unmet));
        }
        let matched = self.server_names.matches(server_name);
        let is_other = |patterns| matched.of(patterns) == NameMatch::No;
        rules.all(|rule| is_other(rule.conditions.server_name.as_ref())).then_some(NeverApplies::ServerName)
    }
}
