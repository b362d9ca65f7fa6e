//! The checks behind the warnings, and whether one `match` covers another.

use std::borrow::Cow;

use counterproof_artifact::pointer::child;
use counterproof_ledger::event::{Action, Mode};
use counterproof_validation::nearest;
use regex::Regex;
use serde_json::{Map, Value};

use super::lint_policy::{Lint, LintCode, LintedRule, Linting};
use super::reach::{Unguarded, unguarded_arguments};
use super::reach::{is_anchored, matches_everything};
use crate::policy::decision_record::refusal;
use crate::policy::model::{ArgsCondition, Effect, OnError, Refusal, Rule, glob_to_regex};

/// Checks the rules without errors.
pub(super) fn check(policy: &Linting<'_>) -> Vec<Lint> {
    let mut lints = Vec::new();
    check_policy(policy, &mut lints);
    check_shadows(policy, &mut lints);
    for (position, written) in policy.rules.iter().enumerate() {
        // A tag rule with an error above may add the class.
        if !policy.has_invalid(0..written.index) {
            check_risk_classes(written, &policy.rules[..position], &mut lints);
        }
        check_regexes(written, &mut lints);
        check_cel(policy, written, &mut lints);
        check_costs(written, &mut lints);
        check_unused(policy, written, &mut lints);
    }
    lints
}

fn add(
    lints: &mut Vec<Lint>,
    (code, pointer): (LintCode, String),
    message: String,
    expected: impl Into<Cow<'static, str>>,
) {
    lints.push(Lint { code, pointer, within: None, message, expected: expected.into() });
}

fn check_policy(policy: &Linting<'_>, lints: &mut Vec<Lint>) {
    let (document, rules) = (policy.document, &policy.rules);
    if let (Some(version), Some(other)) = (document.get("version"), document.get("policy_version"))
        && version != other
    {
        let message = format!("`policy_version` {other} is used, and not `version` {version}");
        add(lints, (LintCode::VersionsDiffer, "/version".to_owned()), message, "one version");
    }
    if rules.is_empty() && policy.invalid.is_empty() && policy.mode.is_some_and(|mode| mode != Mode::Observe) {
        let message = "the policy allows every call: it has no rule that is enabled".to_owned();
        add(lints, (LintCode::NoRules, String::new()), message, "at least one rule");
    }
    let refusing = rules.iter().filter(|written| refusal(written.rule).is_some()).count();
    if policy.mode == Some(Mode::Observe) && refusing > 0 {
        let rules = if refusing == 1 { "1 rule" } else { &format!("{refusing} rules") };
        let message = format!("the mode `observe` refuses no call; {rules} would");
        let expected = "`guardrails` or `control`, to enforce rules";
        add(lints, (LintCode::OnlyObserves, "/mode".to_owned()), message, expected);
    }
}

/// The first allow, deny or budget rule that decides is kept, so a rule below one that covers it never decides.
fn check_shadows(policy: &Linting<'_>, lints: &mut Vec<Lint>) {
    let rules = &policy.rules;
    let is_verdict = |rule: &Rule| matches!(rule.effect, Effect::Allow { .. } | Effect::Deny(_));
    let keeps = |rule: &Rule| is_verdict(rule) || matches!(rule.effect, Effect::Budget(_));
    let mut below_everything = false;
    for (position, LintedRule { index, rule, value }) in rules.iter().enumerate() {
        let pointer = format!("/rules/{index}");
        let later = rules[position + 1..].iter().any(|written| keeps(written.rule));
        if !below_everything && matches!(rule.effect, Effect::Allow { .. }) && covers(value.get("match"), None) && later
        {
            let message = format!("rule `{}` allows every call before the rules below it can decide", rule.id);
            add(lints, (LintCode::AllowsEverything, pointer), message, "conditions, or the last place");
            below_everything = true;
            continue;
        }
        // One warning is enough: every rule below the one that allows everything is shadowed.
        if below_everything || !keeps(rule) {
            continue;
        }
        let mut earlier = rules[..position].iter().filter(|written| is_verdict(written.rule));
        let covering = earlier.find(|other| {
            // A tag rule in between can add the class to calls that the earlier rule did not match.
            let is_tag = |it: &LintedRule<'_>| matches!(it.rule.effect, Effect::Tag(_));
            let between = other.index + 1..*index;
            let tags = rules.iter().any(|it| between.contains(&it.index) && is_tag(it)) || policy.has_invalid(between);
            let by_class = other.value.pointer("/match/risk_class").is_some();
            !(tags && by_class) && covers(other.value.get("match"), value.get("match"))
        });
        if let Some(other) = covering {
            let other = &other.rule.id;
            let message =
                format!("rule `{}` never decides, because rule `{other}` decides about all of its calls", rule.id);
            add(lints, (LintCode::ShadowedRule, pointer), message, "a rule that can decide");
        }
    }
}

fn check_risk_classes(written: &LintedRule<'_>, earlier: &[LintedRule<'_>], lints: &mut Vec<Lint>) {
    let added = earlier.iter().filter_map(|written| match &written.rule.effect {
        Effect::Tag(classes) => Some(classes),
        _ => None,
    });
    let added: Vec<&str> = added.flatten().map(String::as_str).collect();
    for (index, class) in written.rule.conditions.risk_class.iter().enumerate() {
        if !added.contains(&class.as_str()) {
            let near = nearest(class, &added).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let message = format!("no tag rule above adds the risk class `{class}`{near}");
            let pointer = format!("/rules/{}/match/risk_class/{index}", written.index);
            let expected = "a risk class that a tag rule above adds";
            add(lints, (LintCode::UnknownRiskClass, pointer), message, expected);
        }
    }
}

fn check_regexes(written: &LintedRule<'_>, lints: &mut Vec<Lint>) {
    for names in ["server_name", "tool_name"] {
        let list = written.value.pointer(&format!("/match/{names}/regex")).and_then(Value::as_array);
        for (index, regex) in list.into_iter().flatten().enumerate() {
            let Some(regex) = regex.as_str() else { continue };
            if !is_anchored(regex) {
                let message = "the expression matches parts of names".to_owned();
                let pointer = format!("/rules/{}/match/{names}/regex/{index}", written.index);
                let expected = "`^` at the start and `$` at the end of every branch";
                add(lints, (LintCode::UnanchoredRegex, pointer), message, expected);
            }
        }
    }
}

fn check_cel(policy: &Linting<'_>, written: &LintedRule<'_>, lints: &mut Vec<Lint>) {
    let conditions = &written.rule.conditions;
    let Some(condition) = &conditions.cel else { return };
    let given = conditions.args.as_ref().map(ArgsCondition::required_keys).unwrap_or_default();
    for Unguarded { span, argument, guard } in unguarded_arguments(condition, &given) {
        let treatment = match (&written.rule.effect, policy.on_error) {
            (Effect::Tag(_), _) => "the rules for its risk classes are undecided",
            (Effect::Allow { .. }, OnError::Block) => "the rule does not allow them",
            (Effect::Allow { .. }, OnError::Allow) => "the rule allows them",
            (Effect::Deny(_), OnError::Block) => "the rule refuses them",
            (_, OnError::Block) => "the rule counts them",
            (_, OnError::Allow) => "the rule does not apply to them",
        };
        let message = format!("the expression has no value for calls without the argument `{argument}`: {treatment}");
        lints.push(Lint {
            code: LintCode::UnguardedArgument,
            pointer: format!("/rules/{}/match/cel", written.index),
            within: Some(span),
            message,
            expected: format!("`{guard}`").into(),
        });
    }
}

fn check_costs(written: &LintedRule<'_>, lints: &mut Vec<Lint>) {
    let (cost, limit, field) = match &written.rule.effect {
        Effect::Budget(budget) => (budget.cost_units_per_call, budget.limit_cost_units, "budget/cost_units_per_call"),
        Effect::RateLimit(limit) => {
            (limit.cost_tokens_per_call, Some(limit.capacity), "rate_limit/cost_tokens_per_call")
        }
        _ => return,
    };
    if limit.is_some_and(|limit| cost > limit) {
        let message = format!("one call costs {cost}, which is more than the limit of {}", limit.unwrap_or_default());
        let pointer = format!("/rules/{}/effect/{field}", written.index);
        add(lints, (LintCode::NeverAllows, pointer), message, "a cost of at most the limit");
    }
}

/// Finds fields that the action of a rule does not use.
fn check_unused(policy: &Linting<'_>, written: &LintedRule<'_>, lints: &mut Vec<Lint>) {
    let LintedRule { index, rule, value } = written;
    let Some(Refusal { action, .. }) = refusal(rule) else { return };
    // With an unreadable mode, a field may be used.
    let may_be_control = policy.mode.is_none_or(|mode| mode == Mode::Control);
    let is_hint = *action == Action::RejectWithHint || *action == Action::Block && may_be_control;
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
            let pointer = child(&format!("/rules/{index}{inner}"), field);
            add(lints, (LintCode::UnusedField, pointer), message, "a field that the action uses");
        }
    }
}

pub(super) fn covers(first: Option<&Value>, second: Option<&Value>) -> bool {
    // Conditions in CEL and on arguments are only compared for equality.
    let empty = Map::new();
    let fields = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_else(|| empty.clone());
    let (first, second) = (fields(first), fields(second));
    first.iter().all(|(name, condition)| {
        let other = second.get(name);
        match name.as_str() {
            "server_name" | "tool_name" => covers_name(condition, other),
            "risk_class" => other.is_some_and(|other| is_subset(other, condition)),
            _ => other == Some(condition),
        }
    })
}

/// True if the patterns certainly match every name that the others match.
fn covers_name(patterns: &Value, others: Option<&Value>) -> bool {
    let globs = list(&patterns["glob"]).iter().filter_map(Value::as_str).filter_map(|glob| glob_to_regex(glob).ok());
    let regexes = list(&patterns["regex"]).iter().filter_map(Value::as_str);
    // A pattern that matches every name covers any other, whatever it is.
    if globs.into_iter().any(|regex| matches_everything(&regex)) || regexes.clone().any(matches_everything) {
        return true;
    }
    // Without patterns the other rule matches every name, which only a pattern for everything covers.
    let Some(others) = others else { return false };
    ["glob", "regex"].into_iter().all(|kind| {
        list(&others[kind]).iter().all(|other| {
            let is_listed = list(&patterns[kind]).contains(other);
            // A glob without special characters is a name, which a wider glob can match.
            is_listed || kind == "glob" && other.as_str().is_some_and(|name| matches_name(patterns, name))
        })
    })
}

fn matches_name(patterns: &Value, name: &str) -> bool {
    if name.contains(['*', '?', '[', '\\']) {
        return false;
    }
    let globs = list(&patterns["glob"]).iter().filter_map(Value::as_str).filter_map(|glob| glob_to_regex(glob).ok());
    let regexes = list(&patterns["regex"]).iter().filter_map(Value::as_str).map(str::to_owned);
    globs.chain(regexes).any(|regex| Regex::new(&regex).is_ok_and(|regex| regex.is_match(name)))
}

fn is_subset(inner: &Value, outer: &Value) -> bool {
    list(inner).iter().all(|item| list(outer).contains(item))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_match_with_fewer_or_wider_conditions_covers_another() {
        let narrow =
            json!({"server_name": {"glob": ["git"]}, "tool_name": {"glob": ["push"]}, "args": {"has_keys": ["a"]}});
        for wide in [
            json!({}),
            json!({"tool_name": {"glob": ["*"]}}),
            json!({"tool_name": {"glob": ["p*", "x"]}}),
            json!({"tool_name": {"glob": ["push", "x"], "regex": ["y"]}, "server_name": {"glob": ["git"]}}),
            json!({"args": {"has_keys": ["a"]}}),
            json!({"tool_name": {"regex": ["^(push|pull)$"]}}),
            json!({"tool_name": {"regex": ["us"]}}),
            json!({"tool_name": {"regex": [".*"]}, "server_name": {"glob": ["**"]}}),
        ] {
            assert!(covers(Some(&wide), Some(&narrow)), "{wide}");
        }
        for other in [
            json!({"tool_name": {"glob": ["pull"]}}),
            json!({"tool_name": {"regex": ["pull"]}}),
            json!({"args": {"has_keys": ["b"]}}),
            json!({"cel": "true"}),
            json!({"risk_class": ["w"]}),
        ] {
            assert!(!covers(Some(&other), Some(&narrow)), "{other}");
        }
        assert!(covers(None, Some(&narrow)) && !covers(Some(&narrow), None));
    }
}
