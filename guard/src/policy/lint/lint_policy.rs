//! Lints a policy: the list of warnings, with which docs/policy.md is compared, and the checks behind them.

use std::borrow::Cow;
use std::ops::Range;

use counterproof_artifact::pointer::child;
use counterproof_ledger::event::{Action, Mode};
use counterproof_validation::{Code, Finding, RuleFinding, nearest};
use regex::Regex;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::reach::{Unguarded, is_anchored, matches_everything, unguarded_arguments};
use crate::policy::decision_record::refusal;
use crate::policy::document::{CompiledPolicy, PolicyFile, check_document};
use crate::policy::model::{ArgsCondition, Effect, OnError, Refusal, Rule, glob_to_regex};

/// What is wrong with a policy, in the order of the text.
#[derive(Debug)]
pub struct LintReport {
    pub errors: Vec<Finding>,
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub code: LintCode,
    /// Its place and its texts. The code of the finding is not used.
    pub finding: Finding,
}

#[derive(Debug)]
pub(super) struct Lint {
    pub(super) code: LintCode,
    pub(super) pointer: String,
    /// The part of the text that the pointer names, if the lint is about a part.
    pub(super) within: Option<Range<usize>>,
    pub(super) message: String,
    pub(super) expected: Cow<'static, str>,
}

/// Parses a policy, and returns its errors and what is probably wrong with it.
pub fn lint(file: &PolicyFile) -> LintReport {
    let compiled = file.compile();
    // Without a document there is nothing to lint, and the parse error says all.
    if compiled.document.is_none() {
        return LintReport { errors: compiled.findings, warnings: Vec::new() };
    }
    let mut lints = Vec::new();
    let checked = check_document(file, |document| {
        lints = check(&Linting::new(&compiled, document));
        // The remedy carries the index of the lint through the sort by position.
        lints.iter().enumerate().map(|(index, lint)| finding(lint, index)).collect()
    });
    let warning = |finding: Finding| {
        // The errors of the schema have remedies in words.
        let code = lints.get(finding.remedy.parse::<usize>().ok()?)?.code;
        Some(Warning { code, finding: Finding { remedy: code.remedy().to_owned(), ..finding } })
    };
    LintReport { warnings: checked.findings.into_iter().filter_map(warning).collect(), errors: compiled.findings }
}

fn finding(lint: &Lint, index: usize) -> RuleFinding {
    let finding = RuleFinding::new(Code::WrongValue, &lint.pointer, &lint.message, &*lint.expected);
    let finding = finding.with_remedy(index.to_string());
    match &lint.within {
        Some(span) => finding.within(span.clone()),
        None => finding,
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LintedRule<'p> {
    pub(super) index: usize,
    pub(super) rule: &'p Rule,
    pub(super) value: &'p Value,
}

#[derive(Debug)]
pub(super) struct Linting<'p> {
    pub(super) document: &'p Value,
    pub(super) mode: Option<Mode>,
    pub(super) on_error: OnError,
    pub(super) rules: Vec<LintedRule<'p>>,
    /// The indexes of rules with errors, of which little is known.
    pub(super) invalid: Vec<usize>,
}

impl<'p> Linting<'p> {
    pub(super) fn new(compiled: &'p CompiledPolicy, document: &'p Value) -> Self {
        let written = document.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // A rule with an error is not linted: a warning about half a rule would mislead.
        let is_valid = |index: usize| {
            let pointer = format!("/rules/{index}");
            let is_about =
                |found: &str| found.strip_prefix(&pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            !compiled.findings.iter().any(|finding| is_about(&finding.pointer))
        };
        let (mut rules, mut invalid) = (Vec::new(), Vec::new());
        for (index, value) in written.iter().enumerate() {
            match compiled.rules.iter().find(|(at, _)| *at == index) {
                Some((_, rule)) if is_valid(index) => rules.push(LintedRule { index, rule, value }),
                _ => invalid.push(index),
            }
        }
        rules.retain(|written| written.rule.is_enabled);
        let mode = read(document.get("mode"));
        let on_error = read(document.pointer("/defaults/decision_on_error")).unwrap_or_default();
        Self { document, mode, on_error, rules, invalid }
    }

    pub(super) fn has_invalid(&self, mut indexes: impl Iterator<Item = usize>) -> bool {
        !self.invalid.is_empty() && indexes.any(|index| self.invalid.contains(&index))
    }
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    serde_json::from_value(value?.clone()).ok()
}

macro_rules! codes {
    ($($variant:ident $code:literal $meaning:literal $remedy:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LintCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl LintCode {
            pub const ALL: &[LintCode] = &[$(LintCode::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(LintCode::$variant => $code,)* }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(LintCode::$variant => $meaning,)* }
            }

            pub const fn remedy(self) -> &'static str {
                match self { $(LintCode::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    ShadowedRule "shadowed-rule"
        "The rule never decides, because an earlier rule decides about all of its calls."
        "move the rule up, or remove it"
    AllowsEverything "allows-everything"
        "A rule without conditions allows every call, so that no later deny or budget rule decides."
        "move the rule to the end, or add a `match`"
    UnknownRiskClass "unknown-risk-class"
        "No tag rule above the rule adds the risk class, so that the rule never matches."
        "add a tag rule above, or correct the risk class"
    UnanchoredRegex "unanchored-regex"
        "A regular expression with a branch that is not anchored by `^` and `$` matches parts of names."
        "write the expression as `^(?:…)$`"
    UnguardedArgument "unguarded-argument"
        "An expression in CEL reads an argument that a call may not have, so that the rule is undecided for such calls."
        "test that the call has the argument, such as with `has(…) && …`"
    NeverAllows "never-allows"
        "One call costs more than the limit, so that the rule refuses every call."
        "raise the limit, or lower the cost"
    UnusedField "unused-field"
        "The action of the rule does not use the field."
        "remove the field, or change the action"
    VersionsDiffer "versions-differ"
        "The fields `version` and `policy_version` differ, and only `policy_version` is used."
        "remove one of the two"
    OnlyObserves "only-observes"
        "The mode `observe` enforces no rule."
        "set the mode to `guardrails` or `control` when the observed decisions are right"
    NoRules "no-rules"
        "The policy has no rule that is enabled, so that it allows every call."
        "add rules, or use the mode `observe`"
}

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
