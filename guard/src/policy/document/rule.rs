//! The types of a policy file, and the compilation of one rule.

use std::collections::BTreeMap;

use counterproof_artifact::pointer::child;
use counterproof_ledger::event::{Action, HintKind, Mode, Severity};
use counterproof_validation::{Code, RuleFinding};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::parse::Compiler;
use crate::policy::model::Responses;
use crate::policy::model::{
    ArgsCondition, Breaker, BreakerThreshold, Budget, CelCondition, Conditions, Dedupe, Effect, InvalidCel,
    InvalidPattern, NamePatternsBuilder, OnError, PatternRange, Range, RateLimit, Refusal, Rule, RuleId, RuleKind,
    Scope,
};

/// The time to wait if a rule does not state it.
const DEFAULT_BACKOFF_MS: u64 = 1000;

impl Compiler {
    /// Compiles a rule. Returns `None` if a part is missing, which the schema reports.
    pub(super) fn compile_rule(&mut self, rule: RuleDocument, pointer: &str) -> Option<Rule> {
        let conditions = self.conditions(rule.conditions, &child(pointer, "match"));
        Some(Rule {
            id: RuleId::new(&rule.rule_id)?,
            is_enabled: rule.enabled.unwrap_or(true),
            conditions,
            effect: effect(rule.kind, rule.effect)?,
            severity: rule.severity,
        })
    }

    fn conditions(&mut self, document: MatchDocument, pointer: &str) -> Conditions {
        let findings = &mut self.findings;
        let server_name = document
            .server_name
            .map(|names| patterns(&names, &mut self.server_names, &child(pointer, "server_name"), findings));
        let tool_name = document
            .tool_name
            .map(|names| patterns(&names, &mut self.tool_names, &child(pointer, "tool_name"), findings));
        Conditions {
            server_name,
            tool_name,
            risk_class: lower(&document.risk_class),
            args: document.args.map(|args| self.args(args, &child(pointer, "args"))),
            cel: document.cel.and_then(|text| self.cel(&text, &child(pointer, "cel"))),
        }
    }

    fn args(&mut self, document: ArgsDocument, pointer: &str) -> ArgsCondition {
        let pointer = child(pointer, "numeric_range");
        let mut numeric_range = Vec::new();
        for (key, range) in document.numeric_range {
            let range = Range { min: range.min, max: range.max };
            // Such a rule would never match, which its author cannot have meant.
            if range.is_empty() {
                let message = "`min` is larger than `max`, so no number is in the range";
                let finding =
                    RuleFinding::new(Code::WrongValue, child(&pointer, &key), message, "a `min` of at most `max`");
                self.findings.push(finding.with_remedy("correct one of the two"));
            }
            numeric_range.push((key, range));
        }
        ArgsCondition {
            has_keys: document.has_keys,
            key_equals: document.key_equals.into_iter().collect(),
            key_in: document.key_in.into_iter().collect(),
            numeric_range,
        }
    }

    fn cel(&mut self, text: &str, pointer: &str) -> Option<CelCondition> {
        match CelCondition::compile(text) {
            Ok(condition) => Some(condition),
            Err(errors) => {
                let finding = |error: InvalidCel| {
                    RuleFinding::new(Code::InvalidExpression, pointer, error.message, "a CEL condition")
                        .with_remedy(error.remedy)
                        .within(error.span)
                };
                self.findings.extend(errors.into_iter().map(finding));
                None
            }
        }
    }
}

fn patterns(
    document: &NameDocument,
    builder: &mut NamePatternsBuilder,
    pointer: &str,
    findings: &mut Vec<RuleFinding>,
) -> PatternRange {
    // The patterns of all rules are one set, which is matched once per name: the time does not grow with the number of rules.
    let first = builder.len();
    let mut add = |kind: &str, index: usize, added: Result<(), InvalidPattern>| {
        if let Err(error) = added {
            let pointer = format!("{pointer}/{kind}/{index}");
            let expected =
                if kind == "glob" { "a glob such as `git_*`" } else { "a regular expression such as `^git_`" };
            let remedy = match error {
                InvalidPattern::EmptyRegex => "write an expression, or remove it",
                InvalidPattern::TooLarge => "use smaller repetitions",
                _ => "correct the pattern",
            };
            findings.push(RuleFinding::new(Code::WrongValue, pointer, error.to_string(), expected).with_remedy(remedy));
        }
    };
    for (index, glob) in document.glob.iter().enumerate() {
        // The schema reports empty globs.
        if !glob.is_empty() {
            add("glob", index, builder.add_glob(glob));
        }
    }
    for (index, regex) in document.regex.iter().enumerate() {
        if !regex.is_empty() {
            add("regex", index, builder.add_regex(regex));
        }
    }
    builder.since(first)
}

fn lower(classes: &[String]) -> Vec<String> {
    classes.iter().map(|class| class.to_lowercase()).collect()
}

fn effect(kind: RuleKind, mut effect: EffectDocument) -> Option<Effect> {
    Some(match kind {
        RuleKind::Allow => Effect::Allow {
            reason_code: effect.reason_code.unwrap_or_else(|| default_reason_code("allow", None).to_owned()),
            message: effect.message,
        },
        RuleKind::Deny => Effect::Deny(denial(effect)),
        RuleKind::Budget => Effect::Budget(budget(effect.budget.take()?, effect)),
        RuleKind::RateLimit => Effect::RateLimit(rate_limit(effect.rate_limit.take()?, effect)),
        RuleKind::Breaker => Effect::Breaker(breaker(effect.breaker.take()?, effect)),
        RuleKind::Dedupe => Effect::Dedupe(dedupe(effect.dedupe.take()?, effect)),
        RuleKind::Tag => Effect::Tag(lower(&effect.tag?.add_risk_class)),
    })
}

/// Returns the reason code of a rule that states none, by the names of its kind and its action.
pub(in crate::policy) fn default_reason_code(kind: &str, action: Option<&str>) -> &'static str {
    match (kind, action) {
        ("allow", _) => "POLICY_ALLOW",
        ("budget", _) => "BUDGET_EXCEEDED",
        ("rate_limit", _) => "RATE_LIMITED",
        ("breaker", _) => "BREAKER_TRIPPED",
        ("dedupe", _) => "DEDUPE_DUPLICATE",
        (_, Some("THROTTLE")) => "POLICY_THROTTLED",
        (_, Some("REJECT_WITH_HINT")) => "POLICY_HINT",
        (_, Some("TERMINATE_RUN")) => "POLICY_TERMINATED",
        _ => "POLICY_BLOCK",
    }
}

fn denial(effect: EffectDocument) -> Refusal {
    let action = effect.action.unwrap_or(Action::Block);
    let reason_code = effect.reason_code.unwrap_or_else(|| default_reason_code("deny", Some(action.name())).to_owned());
    // Suggested arguments only make sense as a correction of the arguments.
    let default_kind = if effect.suggested_args.is_some() { HintKind::ArgFix } else { HintKind::Other };
    Refusal {
        action,
        terminate_code: effect.terminate_code.unwrap_or_else(|| reason_code.clone()),
        reason_code,
        message: effect.message,
        hint_text: effect.hint_text,
        hint_kind: effect.hint_kind.unwrap_or(default_kind),
        suggested_args: effect.suggested_args.map(Value::Object),
        retry_advice: effect.retry_advice,
        backoff_ms: effect.backoff_ms.unwrap_or(DEFAULT_BACKOFF_MS),
    }
}

/// The fields that the rules with counters have in common.
struct Limit {
    action: Option<Action>,
    hint_text: Option<String>,
    backoff_ms: Option<u64>,
    terminate_code: Option<String>,
}

struct LimitDefaults {
    action: Action,
    kind: &'static str,
    hint_kind: HintKind,
}

fn refusal(limit: Limit, effect: EffectDocument, defaults: &LimitDefaults) -> Refusal {
    let reason_code = effect.reason_code.unwrap_or_else(|| default_reason_code(defaults.kind, None).to_owned());
    Refusal {
        action: limit.action.unwrap_or(defaults.action),
        terminate_code: limit.terminate_code.unwrap_or_else(|| reason_code.clone()),
        reason_code,
        message: effect.message,
        hint_text: limit.hint_text,
        hint_kind: defaults.hint_kind,
        suggested_args: None,
        retry_advice: None,
        backoff_ms: limit.backoff_ms.unwrap_or(DEFAULT_BACKOFF_MS),
    }
}

fn budget(budget: BudgetDocument, effect: EffectDocument) -> Budget {
    let BudgetDocument { on_exceed: action, hint_text, backoff_ms, terminate_code, .. } = budget;
    let defaults = LimitDefaults { action: Action::Block, kind: "budget", hint_kind: HintKind::Budget };
    Budget {
        scope: budget.scope.unwrap_or(Scope::Run),
        limit_calls: budget.limit_calls,
        limit_cost_units: budget.limit_cost_units,
        cost_units_per_call: budget.cost_units_per_call.unwrap_or(1),
        on_exceed: refusal(Limit { action, hint_text, backoff_ms, terminate_code }, effect, &defaults),
    }
}

fn rate_limit(limit: RateLimitDocument, effect: EffectDocument) -> RateLimit {
    let RateLimitDocument { on_limit: action, hint_text, backoff_ms, terminate_code, .. } = limit;
    let defaults = LimitDefaults { action: Action::Throttle, kind: "rate_limit", hint_kind: HintKind::Rate };
    RateLimit {
        scope: limit.scope.unwrap_or(Scope::Run),
        capacity: limit.capacity,
        refill_tokens: limit.refill_tokens,
        refill_period_ms: limit.refill_period_ms,
        cost_tokens_per_call: limit.cost_tokens_per_call.unwrap_or(1),
        on_limit: refusal(Limit { action, hint_text, backoff_ms, terminate_code }, effect, &defaults),
    }
}

fn breaker(breaker: BreakerDocument, effect: EffectDocument) -> Breaker {
    let BreakerDocument { on_trip: action, hint_text, backoff_ms, terminate_code, .. } = breaker;
    let defaults = LimitDefaults { action: Action::Block, kind: "breaker", hint_kind: HintKind::Safety };
    let threshold =
        |count: Option<u64>, window_ms: Option<u64>| Some(BreakerThreshold { count: count?, window_ms: window_ms? });
    Breaker {
        scope: breaker.scope.unwrap_or(Scope::ServerTool),
        repeats: threshold(breaker.repeat_threshold, breaker.repeat_window_ms),
        errors: threshold(breaker.error_threshold, breaker.window_ms),
        on_trip: refusal(Limit { action, hint_text, backoff_ms, terminate_code }, effect, &defaults),
    }
}

fn dedupe(dedupe: DedupeDocument, effect: EffectDocument) -> Dedupe {
    let DedupeDocument { on_duplicate: action, hint_text, backoff_ms, terminate_code, .. } = dedupe;
    let defaults = LimitDefaults { action: Action::Block, kind: "dedupe", hint_kind: HintKind::Safety };
    Dedupe {
        scope: dedupe.scope.unwrap_or(Scope::Tool),
        window_ms: dedupe.window_ms,
        on_duplicate: refusal(Limit { action, hint_text, backoff_ms, terminate_code }, effect, &defaults),
    }
}

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
    pub(super) defaults: DefaultsDocument,
    #[serde(default)]
    pub(super) responses: Responses,
    #[serde(default)]
    pub(super) selectors: SelectorsDocument,
    #[serde(default)]
    #[serde(rename = "rules")]
    _rules: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DefaultsDocument {
    pub(super) decision_on_error: OnError,
    pub(super) fail_open_read_tools: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SelectorsDocument {
    pub(super) env: Option<Vec<String>>,
    pub(super) agent_id: Option<Vec<String>>,
    pub(super) client: Option<Vec<String>>,
    pub(super) workload: WorkloadDocument,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WorkloadDocument {
    pub(super) namespace: Option<Vec<String>>,
    pub(super) service_account: Option<Vec<String>>,
    pub(super) repo: Option<Vec<String>>,
    pub(super) branch: Option<Vec<String>>,
    pub(super) labels: BTreeMap<String, OneOrMany>,
}

/// The published format leaves no other way: a label has a value or a list of values.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
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
    pub(super) numeric_range: BTreeMap<String, RangeDocument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RangeDocument {
    pub(super) min: Option<Number>,
    pub(super) max: Option<Number>,
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
    pub(super) budget: Option<BudgetDocument>,
    pub(super) rate_limit: Option<RateLimitDocument>,
    pub(super) breaker: Option<BreakerDocument>,
    pub(super) dedupe: Option<DedupeDocument>,
    pub(super) tag: Option<TagDocument>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetDocument {
    pub(super) scope: Option<Scope>,
    pub(super) limit_calls: Option<u64>,
    pub(super) limit_cost_units: Option<u64>,
    pub(super) cost_units_per_call: Option<u64>,
    pub(super) on_exceed: Option<Action>,
    pub(super) hint_text: Option<String>,
    pub(super) backoff_ms: Option<u64>,
    pub(super) terminate_code: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateLimitDocument {
    pub(super) scope: Option<Scope>,
    pub(super) capacity: u64,
    pub(super) refill_tokens: u64,
    pub(super) refill_period_ms: u64,
    pub(super) cost_tokens_per_call: Option<u64>,
    pub(super) on_limit: Option<Action>,
    pub(super) hint_text: Option<String>,
    pub(super) backoff_ms: Option<u64>,
    pub(super) terminate_code: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BreakerDocument {
    pub(super) scope: Option<Scope>,
    pub(super) repeat_threshold: Option<u64>,
    pub(super) repeat_window_ms: Option<u64>,
    pub(super) error_threshold: Option<u64>,
    pub(super) window_ms: Option<u64>,
    pub(super) on_trip: Option<Action>,
    pub(super) hint_text: Option<String>,
    pub(super) backoff_ms: Option<u64>,
    pub(super) terminate_code: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DedupeDocument {
    pub(super) scope: Option<Scope>,
    pub(super) window_ms: u64,
    #[serde(rename = "key")]
    _key: Option<DedupeKey>,
    pub(super) on_duplicate: Option<Action>,
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
