//! From what decided a call to the record of the decision, and the reasons that `guard policy explain` prints.

use std::fmt::Write as _;

use counterproof_artifact::one_line;
use counterproof_ledger::event::{
    Action, BreakerTrip, DecisionRecord, Explanation, Hint, HintKind, Mode, Severity, Termination,
};
use serde_json::Value;

use super::call::{Args, CallFacts};
use super::model::{Condition, Conditions, Effect, Policy, Range, Refusal, Rule};

pub(in crate::policy) const POLICY_ERROR: &str = "POLICY_ERROR";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecidedBy {
    NotApplicable,
    Default,
    Rule(usize),
    FailedClosed(usize),
    FailedOpen(usize),
}

#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// The allow rule that could have decided before the rule that did.
    pub(super) skipped_allow: Option<usize>,
    /// Why rules could not be decided, without values of the call.
    pub(super) reasons: Vec<(usize, String)>,
}

impl Doubts {
    fn about(&self, index: usize, rule: Option<&Rule>) -> String {
        let id = rule.map(|rule| rule.id.as_str()).unwrap_or_default();
        let reason = self.reasons.iter().find(|(rule, _)| *rule == index);
        let reason = reason.map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
        format!("rule `{id}` could not be decided{reason}")
    }
}

impl DecidedBy {
    pub(super) fn action(self, policy: &Policy) -> Action {
        match self {
            DecidedBy::NotApplicable | DecidedBy::Default | DecidedBy::FailedOpen(_) => Action::Allow,
            DecidedBy::FailedClosed(_) => Action::Block,
            DecidedBy::Rule(index) => {
                policy.rules.get(index).and_then(|rule| refusal(rule)).map_or(Action::Allow, |refusal| refusal.action)
            }
        }
    }

    fn rule(self, policy: &Policy) -> Option<&Rule> {
        match self {
            DecidedBy::NotApplicable | DecidedBy::Default => None,
            DecidedBy::Rule(index) | DecidedBy::FailedClosed(index) | DecidedBy::FailedOpen(index) => {
                policy.rules.get(index)
            }
        }
    }

    pub(super) fn record(self, policy: &Policy, doubts: &Doubts) -> DecisionRecord {
        // First as if the policy enforced its rules: a policy that observes records what it would have decided.
        let enforced = self.enforced(policy, doubts);
        if policy.mode != Mode::Observe {
            return enforced;
        }
        let observed = Some(enforced.by_rules());
        if enforced.action == Action::Allow {
            return DecisionRecord { observed, ..enforced };
        }
        // The only decision whose reason is not a rule that matched: a person who reads the record should know.
        let doubt = match self {
            DecidedBy::FailedClosed(index) => format!(" ({})", doubts.about(index, policy.rules.get(index))),
            _ => String::new(),
        };
        let summary = format!("Allowed: the policy only observes{doubt}");
        let explain = Explanation { summary, reason_code: "OBSERVE_MODE".to_owned() };
        DecisionRecord { observed, ..DecisionRecord::new(Action::Allow, Severity::Info, explain, enforced.policy) }
    }

    fn enforced(self, policy: &Policy, doubts: &Doubts) -> DecisionRecord {
        let rule = self.rule(policy);
        let refusal = match self {
            DecidedBy::Rule(_) => rule.and_then(refusal),
            _ => None,
        };
        let action = match (self.action(policy), policy.mode) {
            // In the mode `control`, an agent is told what it can do instead, also by rules that only block.
            (Action::Block, Mode::Control) => Action::RejectWithHint,
            (action, _) => action,
        };
        let mut explain = self.explanation(rule, refusal, doubts);
        // A refusal names the allow rule that could not be decided.
        if let Some(allow) = doubts.skipped_allow.filter(|_| action != Action::Allow) {
            let _ = write!(explain.summary, " (allow {})", doubts.about(allow, policy.rules.get(allow)));
        }
        let terminate = || Termination {
            terminate_code: refusal.map_or_else(String::new, |refusal| refusal.terminate_code.clone()),
            terminate_message: explain.summary.clone(),
        };
        DecisionRecord {
            action,
            rule_id: rule.map(|rule| rule.id.to_string()),
            severity: rule.map(|rule| rule.severity).unwrap_or_default(),
            policy: policy.reference(),
            backoff_ms: refusal.filter(|_| action == Action::Throttle).map(|refusal| refusal.backoff_ms),
            hint: (action == Action::RejectWithHint).then(|| hint(refusal, &explain)),
            terminate: (action == Action::TerminateRun).then(terminate),
            observed: None,
            explain,
        }
    }

    fn explanation(self, rule: Option<&Rule>, refusal: Option<&Refusal>, doubts: &Doubts) -> Explanation {
        let id = || rule.map(|rule| rule.id.as_str()).unwrap_or_default();
        let (summary, reason_code) = match (self, rule.map(|rule| &rule.effect)) {
            (DecidedBy::NotApplicable, _) => {
                ("Allowed: the policy is not for this run".to_owned(), "POLICY_NOT_APPLICABLE".to_owned())
            }
            (DecidedBy::FailedClosed(index), _) => {
                (format!("Refused: {}", doubts.about(index, rule)), POLICY_ERROR.to_owned())
            }
            (DecidedBy::FailedOpen(index), _) => {
                (format!("Allowed: {}", doubts.about(index, rule)), POLICY_ERROR.to_owned())
            }
            (DecidedBy::Rule(_), Some(Effect::Allow { reason_code, message })) => {
                let message = message.clone();
                (message.unwrap_or_else(|| format!("Allowed by rule `{}`", id())), reason_code.clone())
            }
            (DecidedBy::Rule(_), Some(effect)) => {
                let message = refusal.and_then(|refusal| refusal.message.clone());
                let reason_code = refusal.map(|refusal| refusal.reason_code.clone()).unwrap_or_default();
                (message.unwrap_or_else(|| default_summary(effect, id())), reason_code)
            }
            (DecidedBy::Default | DecidedBy::Rule(_), None) | (DecidedBy::Default, Some(_)) => {
                ("Allowed by default policy".to_owned(), "DEFAULT_ALLOW".to_owned())
            }
        };
        Explanation { summary, reason_code }
    }
}

pub(in crate::policy) fn refusal(rule: &Rule) -> Option<&Refusal> {
    match &rule.effect {
        Effect::Allow { .. } | Effect::Tag(_) => None,
        Effect::Deny(refusal) => Some(refusal),
        Effect::Budget(budget) => Some(&budget.on_exceed),
        Effect::RateLimit(limit) => Some(&limit.on_limit),
        Effect::Breaker(breaker) => Some(&breaker.on_trip),
        Effect::Dedupe(dedupe) => Some(&dedupe.on_duplicate),
    }
}

fn default_summary(effect: &Effect, id: &str) -> String {
    match effect {
        Effect::Budget(_) => format!("The budget of rule `{id}` is spent"),
        Effect::RateLimit(_) => format!("The rate limit of rule `{id}` is reached"),
        Effect::Breaker(_) => format!("The breaker of rule `{id}` tripped"),
        Effect::Dedupe(_) => format!("The call repeats an earlier one, which rule `{id}` refuses"),
        Effect::Allow { .. } | Effect::Deny(_) | Effect::Tag(_) => format!("Refused by rule `{id}`"),
    }
}

fn hint(refusal: Option<&Refusal>, explain: &Explanation) -> Hint {
    let hint_kind = refusal.map_or(HintKind::Other, |refusal| refusal.hint_kind);
    let hint_text = refusal.and_then(|refusal| refusal.hint_text.clone());
    Hint {
        // A hint must not be empty: the summary states at least why the call was refused.
        hint_text: hint_text.unwrap_or_else(|| explain.summary.clone()),
        suggested_args: refusal.and_then(|refusal| refusal.suggested_args.clone()),
        retry_advice: refusal.and_then(|refusal| refusal.retry_advice.clone()),
        hint_kind,
    }
}

const VALUE_CHARS: usize = 60;

pub(super) fn condition_names(conditions: &Conditions) -> Vec<String> {
    let is_there = |is_set: bool, condition| is_set.then_some(condition);
    let listed = [
        is_there(conditions.server_name.is_some(), Condition::ServerName),
        is_there(conditions.tool_name.is_some(), Condition::ToolName),
        is_there(!conditions.risk_class.is_empty(), Condition::RiskClass),
    ];
    let args = conditions.args.iter().flat_map(|args| {
        let keys = args.has_keys.iter().map(|key| Condition::HasKey(key));
        let keys = keys.chain(args.key_equals.iter().map(|(key, _)| Condition::KeyEquals(key)));
        let keys = keys.chain(args.key_in.iter().map(|(key, _)| Condition::KeyIn(key)));
        keys.chain(args.numeric_range.iter().map(|(key, _)| Condition::NumericRange(key)))
    });
    let cel = is_there(conditions.cel.is_some(), Condition::Cel);
    listed.into_iter().flatten().chain(args).chain(cel).map(|condition| condition.to_string()).collect()
}

/// Returns why a condition of a rule is not met: the value of the call, and the one that the rule needs.
pub(super) fn unmet_reason(
    condition: Condition<'_>,
    conditions: &Conditions,
    call: &CallFacts<'_>,
    classes: &[String],
) -> String {
    let args = conditions.args.as_ref();
    let needs = |key: &str, needed: String| match argument(call, key) {
        Some(value) => format!("the call has {}, and the rule needs {needed}", short(value)),
        None => format!("the call has no argument `{key}`"),
    };
    match condition {
        Condition::ServerName => format!("no pattern matches `{}`", one_line(call.server_name, VALUE_CHARS)),
        Condition::ToolName => format!("no pattern matches `{}`", one_line(call.tool_name, VALUE_CHARS)),
        Condition::RiskClass => {
            // Only the certain classes: a possible one would have made the rule undecided.
            let found = if classes.is_empty() { "none".to_owned() } else { quoted(classes) };
            format!("the call has {found}, and the rule needs {}", quoted(&conditions.risk_class))
        }
        Condition::HasKey(key) => format!("the call has no argument `{key}`"),
        Condition::KeyEquals(key) => {
            let value = args.and_then(|args| args.key_equals.iter().find(|(it, _)| it == key));
            needs(key, value.map(|(_, value)| short(value)).unwrap_or_default())
        }
        Condition::KeyIn(key) => {
            let list = args.and_then(|args| args.key_in.iter().find(|(it, _)| it == key));
            let list: Vec<String> = list.into_iter().flat_map(|(_, list)| list).map(short).collect();
            needs(key, one_line(&list.join(" or "), 2 * VALUE_CHARS))
        }
        Condition::NumericRange(key) => {
            let range = args.and_then(|args| args.numeric_range.iter().find(|(it, _)| it == key));
            needs(key, range.map(|(_, range)| numbers(range)).unwrap_or_default())
        }
        Condition::Args => String::new(),
        Condition::Cel => "the expression is false".to_owned(),
    }
}

fn argument<'a>(call: &CallFacts<'a>, key: &str) -> Option<&'a Value> {
    if let Args::Inspected(args) = call.args { args.as_object()?.get(key) } else { None }
}

fn short(value: &Value) -> String {
    one_line(&value.to_string(), VALUE_CHARS)
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

fn numbers(range: &Range) -> String {
    match (&range.min, &range.max) {
        (Some(min), Some(max)) => format!("a number from {min} to {max}"),
        (Some(min), None) => format!("a number of at least {min}"),
        (None, Some(max)) => format!("a number of at most {max}"),
        (None, None) => "a number".to_owned(),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub record: DecisionRecord,
    pub tags: Vec<String>,
    pub breaker: Option<BreakerTrip>,
}
