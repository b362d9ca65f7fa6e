//! The checks behind the warnings.

use counterproof_artifact::pointer::child;
use counterproof_ledger::event::{Action, Mode};
use counterproof_validation::nearest;
use serde_json::Value;

use super::cel_fields::{UnknownField, unknown_fields};
use super::code::LintCode;
use super::coverage::covers;
use super::lint_policy::{Lint, written_rules};
use super::regex_reach::is_anchored;
use crate::policy::evaluation::refusal;
use crate::policy::model::{Effect, Policy, Refusal, Rule};

/// Checks a valid policy.
pub(super) fn check(policy: &Policy, document: &Value) -> Vec<Lint> {
    let written = written_rules(document);
    let rules: Vec<(usize, &Rule, &Value)> = policy
        .rules()
        .iter()
        .zip(written)
        .enumerate()
        .filter(|(_, (rule, _))| rule.is_enabled)
        .map(|(index, (rule, value))| (index, rule, value))
        .collect();
    let mut lints = Vec::new();
    check_policy(policy, document, &rules, &mut lints);
    check_shadows(&rules, &mut lints);
    for (position, (index, rule, value)) in rules.iter().enumerate() {
        let pointer = format!("/rules/{index}");
        check_risk_classes(rule, &rules[..position], &pointer, &mut lints);
        check_regexes(value, &pointer, &mut lints);
        check_cel(rule, &pointer, &mut lints);
        check_costs(rule, &pointer, &mut lints);
        check_unused(policy, rule, value, &pointer, &mut lints);
    }
    lints
}

fn add(lints: &mut Vec<Lint>, code: LintCode, pointer: String, message: String, expected: &'static str) {
    lints.push(Lint { code, pointer, message, expected });
}

fn check_policy(policy: &Policy, document: &Value, rules: &[(usize, &Rule, &Value)], lints: &mut Vec<Lint>) {
    if let (Some(version), Some(other)) = (document.get("version"), document.get("policy_version"))
        && version != other
    {
        let message = format!("`policy_version` {other} is used, and not `version` {version}");
        add(lints, LintCode::VersionsDiffer, "/version".to_owned(), message, "one version");
    }
    if rules.is_empty() && policy.mode() != Mode::Observe {
        let message = "the policy allows every call: it has no rule that is enabled".to_owned();
        add(lints, LintCode::NoRules, String::new(), message, "at least one rule");
    }
    let refusing = rules.iter().filter(|(_, rule, _)| refusal(rule).is_some()).count();
    if policy.mode() == Mode::Observe && refusing > 0 {
        let rules = if refusing == 1 { "1 rule" } else { &format!("{refusing} rules") };
        let message = format!("the mode `observe` refuses no call; {rules} would");
        add(lints, LintCode::OnlyObserves, "/mode".to_owned(), message, "`guardrails` or `control`, to enforce rules");
    }
}

/// The first allow, deny or budget rule that decides is kept, so a rule below one that covers it never decides.
fn check_shadows(rules: &[(usize, &Rule, &Value)], lints: &mut Vec<Lint>) {
    let is_verdict = |rule: &Rule| matches!(rule.effect, Effect::Allow { .. } | Effect::Deny(_));
    let keeps = |rule: &Rule| is_verdict(rule) || matches!(rule.effect, Effect::Budget(_));
    let mut below_everything = false;
    for (position, (index, rule, value)) in rules.iter().enumerate() {
        let later = rules[position + 1..].iter().any(|(_, rule, _)| keeps(rule));
        if !below_everything && matches!(rule.effect, Effect::Allow { .. }) && covers(value.get("match"), None) && later
        {
            let message = format!("rule `{}` allows every call before the rules below it can decide", rule.id);
            add(lints, LintCode::AllowsEverything, format!("/rules/{index}"), message, "conditions, or the last place");
            below_everything = true;
            continue;
        }
        if below_everything || !keeps(rule) {
            continue;
        }
        let mut earlier = rules[..position].iter().filter(|(_, rule, _)| is_verdict(rule));
        let covering = earlier.find(|(other, _, first)| {
            // A tag rule in between can add the class to calls that the earlier rule did not match.
            let tags =
                rules.iter().any(|(at, rule, _)| other < at && at < index && matches!(rule.effect, Effect::Tag(_)));
            let by_class = first.pointer("/match/risk_class").is_some();
            !(tags && by_class) && covers(first.get("match"), value.get("match"))
        });
        if let Some((_, other, _)) = covering {
            let message =
                format!("rule `{}` never decides, because rule `{}` decides about all of its calls", rule.id, other.id);
            add(lints, LintCode::ShadowedRule, format!("/rules/{index}"), message, "a rule that can decide");
        }
    }
}

fn check_risk_classes(rule: &Rule, earlier: &[(usize, &Rule, &Value)], pointer: &str, lints: &mut Vec<Lint>) {
    let added = earlier.iter().filter_map(|(_, rule, _)| match &rule.effect {
        Effect::Tag(classes) => Some(classes),
        _ => None,
    });
    let added: Vec<&str> = added.flatten().map(String::as_str).collect();
    for (index, class) in rule.conditions.risk_class.iter().enumerate() {
        if !added.contains(&class.as_str()) {
            let near = nearest(class, &added).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let message = format!("no tag rule above adds the risk class `{class}`{near}");
            let pointer = format!("{pointer}/match/risk_class/{index}");
            add(lints, LintCode::UnknownRiskClass, pointer, message, "a risk class that a tag rule above adds");
        }
    }
}

fn check_regexes(value: &Value, pointer: &str, lints: &mut Vec<Lint>) {
    for names in ["server_name", "tool_name"] {
        let list = value.pointer(&format!("/match/{names}/regex")).and_then(Value::as_array);
        for (index, regex) in list.into_iter().flatten().enumerate() {
            let Some(regex) = regex.as_str() else { continue };
            if !is_anchored(regex) {
                let message = "the expression matches parts of names".to_owned();
                let pointer = format!("{pointer}/match/{names}/regex/{index}");
                add(
                    lints,
                    LintCode::UnanchoredRegex,
                    pointer,
                    message,
                    "`^` at the start and `$` at the end of every branch",
                );
            }
        }
    }
}

fn check_cel(rule: &Rule, pointer: &str, lints: &mut Vec<Lint>) {
    let Some(condition) = &rule.conditions.cel else { return };
    for UnknownField { object, name, known } in unknown_fields(condition.source()) {
        let near = nearest(&name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("`{object}` has no field `{name}`{near}");
        add(
            lints,
            LintCode::UnknownField,
            format!("{pointer}/match/cel"),
            message,
            "a field that the documentation lists",
        );
    }
}

fn check_costs(rule: &Rule, pointer: &str, lints: &mut Vec<Lint>) {
    let (cost, limit, field) = match &rule.effect {
        Effect::Budget(budget) => (budget.cost_units_per_call, budget.limit_cost_units, "budget/cost_units_per_call"),
        Effect::RateLimit(limit) => {
            (limit.cost_tokens_per_call, Some(limit.capacity), "rate_limit/cost_tokens_per_call")
        }
        _ => return,
    };
    if limit.is_some_and(|limit| cost > limit) {
        let message = format!("one call costs {cost}, which is more than the limit of {}", limit.unwrap_or_default());
        let pointer = format!("{pointer}/effect/{field}");
        add(lints, LintCode::NeverAllows, pointer, message, "a cost of at most the limit");
    }
}

/// Finds fields that the action of a rule does not use.
fn check_unused(policy: &Policy, rule: &Rule, value: &Value, pointer: &str, lints: &mut Vec<Lint>) {
    let Some(Refusal { action, .. }) = refusal(rule) else { return };
    let is_hint = *action == Action::RejectWithHint || *action == Action::Block && policy.mode() == Mode::Control;
    let inner = match rule.effect {
        Effect::Budget(_) => "/effect/budget",
        Effect::RateLimit(_) => "/effect/rate_limit",
        Effect::Breaker(_) => "/effect/breaker",
        Effect::Dedupe(_) => "/effect/dedupe",
        _ => "/effect",
    };
    let fields = [
        ("backoff_ms", *action == Action::Throttle),
        ("terminate_code", *action == Action::TerminateRun),
        ("hint_text", is_hint),
        ("hint_kind", is_hint),
        ("suggested_args", is_hint),
        ("retry_advice", is_hint),
    ];
    for (field, is_used) in fields {
        if !is_used && value.pointer(inner).and_then(|effect| effect.get(field)).is_some() {
            let message = format!("the action `{}` does not use `{field}`", action.name());
            let pointer = child(&format!("{pointer}{inner}"), field);
            add(lints, LintCode::UnusedField, pointer, message, "a field that the action uses");
        }
    }
}
