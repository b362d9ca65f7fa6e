//! A policy file as types. The schema describes the same fields. Rules are read one by one, so that the errors of all rules are found.

use std::collections::BTreeMap;

use counterproof_ledger::event::{Action, HintKind, Mode, Severity};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::policy::model::{Defaults, Range, Responses, RuleKind, Scope, Selectors};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyDocument {
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    pub(super) policy_id: String,
    pub(super) version: Option<String>,
    pub(super) policy_version: Option<String>,
    pub(super) mode: Mode,
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "owner")]
    _owner: Option<String>,
    #[serde(rename = "created_at")]
    _created_at: Option<String>,
    #[serde(default)]
    pub(super) defaults: Defaults,
    #[serde(default)]
    pub(super) responses: Responses,
    #[serde(default)]
    pub(super) selectors: Selectors,
    #[serde(default)]
    #[serde(rename = "rules")]
    _rules: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleDocument {
    pub(super) rule_id: String,
    pub(super) kind: RuleKind,
    pub(super) enabled: Option<bool>,
    #[serde(default, rename = "match")]
    pub(super) conditions: MatchDocument,
    #[serde(default)]
    pub(super) effect: EffectDocument,
    #[serde(default)]
    pub(super) severity: Severity,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MatchDocument {
    pub(super) server_name: Option<NameDocument>,
    pub(super) tool_name: Option<NameDocument>,
    pub(super) risk_class: Vec<String>,
    pub(super) args: Option<ArgsDocument>,
    pub(super) cel: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NameDocument {
    pub(super) glob: Vec<String>,
    pub(super) regex: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ArgsDocument {
    pub(super) has_keys: Vec<String>,
    pub(super) key_equals: Map<String, Value>,
    pub(super) key_in: BTreeMap<String, Vec<Value>>,
    pub(super) numeric_range: BTreeMap<String, Range>,
}

/// The effect of any kind of rule. The schema allows only the fields of its kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EffectDocument {
    pub(super) action: Option<Action>,
    pub(super) reason_code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) hint_text: Option<String>,
    pub(super) hint_kind: Option<HintKind>,
    pub(super) suggested_args: Option<Map<String, Value>>,
    pub(super) retry_advice: Option<String>,
    pub(super) backoff_ms: Option<u64>,
    pub(super) terminate_code: Option<String>,
    pub(super) budget: Option<LimitDocument>,
    pub(super) rate_limit: Option<LimitDocument>,
    pub(super) breaker: Option<LimitDocument>,
    pub(super) dedupe: Option<LimitDocument>,
    pub(super) tag: Option<TagDocument>,
}

/// The limit of any kind of rule with counters. The schema allows only the fields of its kind, and requires some of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitDocument {
    pub(super) scope: Option<Scope>,
    pub(super) limit_calls: Option<u64>,
    pub(super) limit_cost_units: Option<u64>,
    pub(super) cost_units_per_call: Option<u64>,
    pub(super) capacity: Option<u64>,
    pub(super) refill_tokens: Option<u64>,
    pub(super) refill_period_ms: Option<u64>,
    pub(super) cost_tokens_per_call: Option<u64>,
    pub(super) repeat_threshold: Option<u64>,
    pub(super) repeat_window_ms: Option<u64>,
    pub(super) error_threshold: Option<u64>,
    pub(super) window_ms: Option<u64>,
    #[serde(rename = "key")]
    _key: Option<DedupeKey>,
    #[serde(rename = "on_exceed", alias = "on_limit", alias = "on_trip", alias = "on_duplicate")]
    pub(super) action: Option<Action>,
    pub(super) hint_text: Option<String>,
    pub(super) backoff_ms: Option<u64>,
    pub(super) terminate_code: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DedupeKey {
    ArgsHash,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TagDocument {
    pub(super) add_risk_class: Vec<String>,
}
