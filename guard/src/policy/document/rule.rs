//! Compiles one rule of a policy.

use counterproof_artifact::pointer::child;
use counterproof_ledger::event::{Action, HintKind};
use counterproof_validation::{Code, RuleFinding};
use serde_json::Value;

use super::parse::Compiler;
use super::types::{ArgsDocument, EffectDocument, LimitDocument, MatchDocument, NameDocument, RuleDocument};
use crate::policy::model::{
    ArgsCondition, Breaker, BreakerThreshold, Budget, CelCondition, Conditions, Dedupe, Effect, InvalidCel,
    InvalidPattern, NamePatternsBuilder, PatternRange, RateLimit, Refusal, Rule, RuleId, RuleKind, Scope,
};

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
            // A rule with an empty range would never match, which its author cannot have meant.
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
        RuleKind::RateLimit => Effect::RateLimit(rate_limit(effect.rate_limit.take()?, effect)?),
        RuleKind::Breaker => Effect::Breaker(breaker(effect.breaker.take()?, effect)),
        RuleKind::Dedupe => Effect::Dedupe(dedupe(effect.dedupe.take()?, effect)?),
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

struct LimitDefaults {
    action: Action,
    kind: &'static str,
    hint_kind: HintKind,
}

fn refusal(limit: LimitDocument, effect: EffectDocument, defaults: &LimitDefaults) -> Refusal {
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

fn budget(limit: LimitDocument, effect: EffectDocument) -> Budget {
    let defaults = LimitDefaults { action: Action::Block, kind: "budget", hint_kind: HintKind::Budget };
    Budget {
        scope: limit.scope.unwrap_or(Scope::Run),
        limit_calls: limit.limit_calls,
        limit_cost_units: limit.limit_cost_units,
        cost_units_per_call: limit.cost_units_per_call.unwrap_or(1),
        on_exceed: refusal(limit, effect, &defaults),
    }
}

fn rate_limit(limit: LimitDocument, effect: EffectDocument) -> Option<RateLimit> {
    let defaults = LimitDefaults { action: Action::Throttle, kind: "rate_limit", hint_kind: HintKind::Rate };
    Some(RateLimit {
        scope: limit.scope.unwrap_or(Scope::Run),
        capacity: limit.capacity?,
        refill_tokens: limit.refill_tokens?,
        refill_period_ms: limit.refill_period_ms?,
        cost_tokens_per_call: limit.cost_tokens_per_call.unwrap_or(1),
        on_limit: refusal(limit, effect, &defaults),
    })
}

fn breaker(limit: LimitDocument, effect: EffectDocument) -> Breaker {
    let defaults = LimitDefaults { action: Action::Block, kind: "breaker", hint_kind: HintKind::Safety };
    let threshold =
        |count: Option<u64>, window_ms: Option<u64>| Some(BreakerThreshold { count: count?, window_ms: window_ms? });
    Breaker {
        scope: limit.scope.unwrap_or(Scope::ServerTool),
        repeats: threshold(limit.repeat_threshold, limit.repeat_window_ms),
        errors: threshold(limit.error_threshold, limit.window_ms),
        on_trip: refusal(limit, effect, &defaults),
    }
}

fn dedupe(limit: LimitDocument, effect: EffectDocument) -> Option<Dedupe> {
    let defaults = LimitDefaults { action: Action::Block, kind: "dedupe", hint_kind: HintKind::Safety };
    Some(Dedupe {
        scope: limit.scope.unwrap_or(Scope::Tool),
        window_ms: limit.window_ms?,
        on_duplicate: refusal(limit, effect, &defaults),
    })
}
