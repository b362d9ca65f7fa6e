//! Where a tool call is decided: facts about a call in, a decision out. No clock, no input, no output.
//!
//! The rules are evaluated in order. Counters belong to one [`Engine`], which all servers of a run with one policy share.

use std::sync::Arc;
use std::time::Duration;

use counterproof_ledger::event::{Action, BreakerTrip};
use serde::Serialize;
use serde_json::Value;

use super::call::{CallFacts, CallOutcome};
use super::candidates::{Candidate, NameCache, failed_name};
use super::counters::{Bucket, RuleState, ScopeKeys, Spent};
use super::decision_record::{DecidedBy, Decision, Doubts, condition_names, unmet_reason};
use super::model::{
    Breaker, Budget, CelInputs, Dedupe, Effect, Match, OnError, Policy, RateLimit, RiskClasses, Rule, RuleId, RuleKind,
    run_value,
};
use crate::identity::RunIdentity;

/// What the rules use of a run: whether the policy is for it, and the values that expressions read.
#[derive(Debug)]
pub struct RunFacts {
    applies: bool,
    value: Value,
}

impl RunFacts {
    pub fn new(policy: &Policy, identity: &RunIdentity) -> Self {
        Self { applies: policy.selectors.unmet(identity).is_none(), value: run_value(identity) }
    }

    /// False if the policy is for other runs.
    pub const fn applies(&self) -> bool {
        self.applies
    }
}

#[derive(Debug)]
pub struct Engine {
    policy: Arc<Policy>,
    run: RunFacts,
    names: NameCache,
    states: Vec<RuleState>,
    now: Duration,
}

impl Engine {
    pub fn new(policy: Arc<Policy>, identity: &RunIdentity) -> Self {
        // The rules share the memory of the counters equally, so that a policy of any size has one bound.
        let share = policy.rules.len().max(1);
        Self {
            run: RunFacts::new(&policy, identity),
            names: NameCache::default(),
            states: policy.rules.iter().map(|rule| RuleState::new(rule, share)).collect(),
            now: Duration::ZERO,
            policy,
        }
    }

    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Decides about a call. `now` is the time since the start of the run; a time before an earlier one counts as that one.
    pub fn decide(&mut self, call: &CallFacts<'_>, now: Duration) -> Decision {
        self.evaluate(None, call, now, None)
    }

    /// Decides about a call of a part of the run that has another identity. The counters are the same.
    pub fn decide_as(&mut self, run: &RunFacts, call: &CallFacts<'_>, now: Duration) -> Decision {
        self.evaluate(Some(run), call, now, None)
    }

    pub fn explain(&mut self, call: &CallFacts<'_>, now: Duration) -> (Decision, Vec<RuleStep>) {
        let mut steps: Vec<RuleStep> = self.policy.rules.iter().map(not_reached).collect();
        let decision = self.evaluate(None, call, now, Some(&mut steps));
        (decision, steps)
    }

    pub fn record_outcome(&mut self, outcome: &CallOutcome<'_>, now: Duration) {
        // In a run that the policy is not for, no decision looks at the counters.
        if !outcome.is_error {
            return;
        }
        let now = self.advance(now);
        let names = self.names.facts(&self.policy, outcome.server_name, outcome.tool_name);
        // The names alone select the breakers that count an error. The other conditions look at the arguments, which the end of a
        // call does not repeat.
        for candidate in &names.candidates {
            let effect = self.policy.rules.get(candidate.rule).map(|rule| &rule.effect);
            if let (Some(Effect::Breaker(breaker)), Some(RuleState::Breaker(windows))) =
                (effect, self.states.get_mut(candidate.rule))
            {
                windows.count_error(names.scopes.key(breaker.scope), now);
            }
        }
    }

    fn advance(&mut self, now: Duration) -> Duration {
        // An earlier time would refill buckets twice.
        self.now = self.now.max(now);
        self.now
    }

    fn evaluate(
        &mut self,
        run: Option<&RunFacts>,
        call: &CallFacts<'_>,
        now: Duration,
        mut steps: Option<&mut Vec<RuleStep>>,
    ) -> Decision {
        let now = self.advance(now);
        let policy = &*self.policy;
        let run = run.unwrap_or(&self.run);
        if !run.applies {
            // No rule is evaluated and nothing is counted: the policy is for other runs.
            let record = DecidedBy::NotApplicable.record(policy, &Doubts::default());
            return Decision { record, tags: Vec::new(), breaker: None };
        }
        let names = self.names.facts(policy, call.server_name, call.tool_name);
        if let Some(steps) = &mut steps {
            for (index, (rule, step)) in policy.rules.iter().zip(&mut **steps).enumerate() {
                if !rule.is_enabled {
                    step.matching = Matching::Disabled;
                } else if !names.candidates.iter().any(|candidate| candidate.rule == index) {
                    let condition = failed_name(policy, &rule.conditions, call.server_name, call.tool_name);
                    let reason = unmet_reason(condition, &rule.conditions, call, &[]);
                    step.matching = Matching::No { condition: condition.to_string(), reason };
                }
            }
        }
        let mut evaluation = Evaluation::new(policy, &mut self.states, call, names.scopes, now);
        evaluation.run(&names.candidates, &run.value, steps);
        evaluation.finish()
    }
}

fn not_reached(rule: &Rule) -> RuleStep {
    RuleStep { rule_id: rule.id.clone(), kind: rule.kind(), matching: Matching::NotReached, effect: None }
}

/// The risk class of tools that only read.
const READ_LIKE: &str = "read_like";

#[derive(Debug)]
pub(super) struct Evaluation<'e> {
    policy: &'e Policy,
    states: &'e mut [RuleState],
    call: &'e CallFacts<'e>,
    scopes: ScopeKeys,
    now: Duration,
    is_traced: bool,
    classes: RiskClasses,
    /// The first decision of an allow, deny or budget rule.
    kept: Option<DecidedBy>,
    stopped: Option<DecidedBy>,
    /// The most severe breaker that tripped.
    trip: Option<(DecidedBy, BreakerTrip)>,
    /// The first undecided allow rule that did not match, before another rule decided.
    skipped_allow: Option<usize>,
    /// The first undecided rule that was treated in the more lenient way.
    failed_open: Option<usize>,
    /// Why rules are undecided, without values of the call.
    doubts: Vec<(usize, String)>,
    /// Rules that count the call if it is allowed.
    spending: Vec<usize>,
}

#[derive(Default)]
struct RuleEffect {
    note: Option<String>,
    ends: bool,
}

impl RuleEffect {
    fn with(note: impl FnOnce() -> String, is_traced: bool) -> Self {
        Self { note: is_traced.then(note), ends: false }
    }
}

impl<'e> Evaluation<'e> {
    pub(super) fn new(
        policy: &'e Policy,
        states: &'e mut [RuleState],
        call: &'e CallFacts<'e>,
        scopes: ScopeKeys,
        now: Duration,
    ) -> Self {
        Self {
            policy,
            states,
            call,
            scopes,
            now,
            is_traced: false,
            classes: RiskClasses::default(),
            kept: None,
            stopped: None,
            trip: None,
            skipped_allow: None,
            failed_open: None,
            doubts: Vec::new(),
            spending: Vec::new(),
        }
    }

    /// Evaluates the rules that can match, in order. `steps` has an element for each rule of the policy.
    pub(super) fn run(&mut self, candidates: &[Candidate], run: &Value, mut steps: Option<&mut Vec<RuleStep>>) {
        self.is_traced = steps.is_some();
        let mut cel = CelInputs::new(self.call, run);
        let policy = self.policy;
        for candidate in candidates {
            let Some(rule) = policy.rules.get(candidate.rule) else { continue };
            let matched = rule.conditions.check(self.call, &self.classes, &mut cel);
            // A condition that is known to be unmet decides, also if a name is too long for its patterns.
            let matched = match (matched, candidate.undecided) {
                (Match::Yes, Some(undecided)) => undecided.as_match(),
                (matched, _) => matched,
            };
            let treatment = match &matched {
                Match::Undecided(_, doubt) => {
                    // The record of a decision must not quote values of the call, which may be confidential. `explain` prints them.
                    self.doubts.push((candidate.rule, doubt.without_values()));
                    Some(self.treatment())
                }
                Match::Yes | Match::No(_) => None,
            };
            let effected = match &matched {
                Match::No(_) => RuleEffect::default(),
                Match::Yes | Match::Undecided(..) => self.apply(candidate.rule, treatment),
            };
            if let Some(step) = steps.as_mut().and_then(|steps| steps.get_mut(candidate.rule)) {
                step.matching = self.matching(rule, &matched, treatment);
                step.effect = effected.note;
            }
            if effected.ends {
                return;
            }
        }
    }

    fn matching(&self, rule: &Rule, matched: &Match<'_>, treatment: Option<Treatment>) -> Matching {
        match matched {
            Match::Yes => Matching::Yes { conditions: condition_names(&rule.conditions) },
            Match::No(condition) => {
                let reason = unmet_reason(*condition, &rule.conditions, self.call, self.classes.certain());
                Matching::No { condition: condition.to_string(), reason }
            }
            Match::Undecided(condition, doubt) => Matching::Undecided {
                condition: condition.to_string(),
                reason: doubt.to_string(),
                treated: treatment.unwrap_or(Treatment::Strict),
            },
        }
    }

    fn treatment(&self) -> Treatment {
        let defaults = self.policy.defaults;
        let is_read = || self.classes.certain().iter().any(|class| class == READ_LIKE);
        let is_open = defaults.decision_on_error == OnError::Allow || defaults.fail_open_read_tools && is_read();
        if is_open { Treatment::Lenient } else { Treatment::Strict }
    }

    fn apply(&mut self, index: usize, treatment: Option<Treatment>) -> RuleEffect {
        let policy = self.policy;
        let Some(rule) = policy.rules.get(index) else { return RuleEffect::default() };
        let outcome = match (&rule.effect, treatment) {
            // An undecided tag rule adds its classes as possible ones: rules for them are undecided in turn.
            (Effect::Tag(classes), treatment) => {
                self.classes.add(classes, treatment.is_none());
                let adds = || format!("adds {}", classes.join(", "));
                return RuleEffect::with(adds, self.is_traced);
            }
            (_, None) => DecidedBy::Rule(index),
            // The stricter reading of an allow rule is that it does not match, and of any other that it does.
            (Effect::Allow { .. }, Some(Treatment::Strict)) => {
                // Named in the summary of a refusal: without the doubt, this rule could have decided first.
                if self.kept.is_none() {
                    self.skipped_allow.get_or_insert(index);
                }
                return RuleEffect::with(|| "does not allow the call".to_owned(), self.is_traced);
            }
            (_, Some(Treatment::Strict)) => DecidedBy::FailedClosed(index),
            (Effect::Allow { .. }, Some(Treatment::Lenient)) => DecidedBy::FailedOpen(index),
            (_, Some(Treatment::Lenient)) => {
                self.failed_open.get_or_insert(index);
                return RuleEffect::with(|| "does not refuse the call".to_owned(), self.is_traced);
            }
        };
        match &rule.effect {
            Effect::Allow { .. } | Effect::Deny(_) => self.keep(outcome),
            Effect::Budget(budget) => self.budget(index, budget, outcome),
            Effect::RateLimit(limit) => self.rate_limit(index, limit, outcome),
            Effect::Breaker(breaker) => self.breaker(index, breaker, outcome),
            Effect::Dedupe(dedupe) => self.dedupe(index, dedupe, outcome),
            Effect::Tag(_) => RuleEffect::default(),
        }
    }

    fn keep(&mut self, outcome: DecidedBy) -> RuleEffect {
        // The first decision of these kinds is kept. The evaluation goes on, because breakers and limits below still count the
        // call.
        if self.kept.is_some() {
            return RuleEffect::with(|| "an earlier rule decides".to_owned(), self.is_traced);
        }
        self.kept = Some(outcome);
        let action = outcome.action(self.policy);
        let note = || format!("decides {}", action.name());
        // No later rule may replace the end of the run by a milder action, so none is evaluated.
        RuleEffect { ends: action == Action::TerminateRun, ..RuleEffect::with(note, self.is_traced) }
    }

    fn stop(&mut self, outcome: DecidedBy) -> RuleEffect {
        // A later rate limit or duplicate does not replace the decision of a breaker, which has seen a loop.
        if self.trip.is_some() {
            return RuleEffect::with(|| "an earlier breaker decides".to_owned(), self.is_traced);
        }
        self.stopped = Some(outcome);
        let note = || format!("decides {} at once", outcome.action(self.policy).name());
        RuleEffect { ends: true, ..RuleEffect::with(note, self.is_traced) }
    }

    fn budget(&mut self, index: usize, budget: &Budget, outcome: DecidedBy) -> RuleEffect {
        let Some(RuleState::Budget(spent)) = self.states.get(index) else { return RuleEffect::default() };
        // Only what the call would spend. It is set at the end, if the call is allowed: retries of a throttled call must not use up
        // a budget.
        let after = spent.get(self.scopes.key(budget.scope)).unwrap_or_default().with_call(budget);
        self.spending.push(index);
        if after.exceeds(budget) {
            return self.keep(outcome);
        }
        let note = || {
            let part =
                |name: &str, spent: u64, limit: Option<u64>| limit.map(|limit| format!("{spent} of {limit} {name}"));
            let calls = part("calls", after.calls, budget.limit_calls);
            let parts: Vec<_> =
                calls.into_iter().chain(part("cost units", after.cost_units, budget.limit_cost_units)).collect();
            format!("{} if this call is allowed", parts.join(", "))
        };
        RuleEffect::with(note, self.is_traced)
    }

    fn rate_limit(&mut self, index: usize, limit: &RateLimit, outcome: DecidedBy) -> RuleEffect {
        let bucket = self.bucket(index, limit);
        if bucket.tokens < limit.cost_tokens_per_call {
            return self.stop(outcome);
        }
        self.spending.push(index);
        let left = bucket.tokens - limit.cost_tokens_per_call;
        RuleEffect::with(|| format!("{left} of {} tokens left if this call is allowed", limit.capacity), self.is_traced)
    }

    fn bucket(&self, index: usize, limit: &RateLimit) -> Bucket {
        let bucket = match self.states.get(index) {
            Some(RuleState::RateLimit(buckets)) => buckets.get(self.scopes.key(limit.scope)),
            _ => None,
        };
        bucket.map_or_else(|| Bucket::full(limit, self.now), |bucket| bucket.refilled(limit, self.now))
    }

    fn dedupe(&mut self, index: usize, dedupe: &Dedupe, outcome: DecidedBy) -> RuleEffect {
        let key = (self.scopes.key(dedupe.scope), *self.call.args_hash);
        let now = self.now;
        if let Some(RuleState::Dedupe(window)) = self.states.get_mut(index)
            && window.count(&key, now) > 0
        {
            // A refused repetition extends the window: an agent in a loop stays refused.
            window.add(key, now);
            return self.stop(outcome);
        }
        self.spending.push(index);
        RuleEffect::with(|| "no earlier call has these arguments".to_owned(), self.is_traced)
    }

    fn breaker(&mut self, index: usize, breaker: &Breaker, outcome: DecidedBy) -> RuleEffect {
        let scope = self.scopes.key(breaker.scope);
        let (Some(rule), Some(RuleState::Breaker(windows))) =
            (self.policy.rules.get(index), self.states.get_mut(index))
        else {
            return RuleEffect::default();
        };
        // Counted at once, also if the call is refused in the end: an agent can repeat a refused call in a loop.
        let counts = windows.count_call(breaker, scope, *self.call.args_hash, self.now);
        let Some(trip) = counts.trip(rule) else {
            return RuleEffect::with(|| counts.to_string(), self.is_traced);
        };
        let action = outcome.action(self.policy);
        let is_milder = |(other, _): &(DecidedBy, BreakerTrip)| severity(other.action(self.policy)) < severity(action);
        // The evaluation goes on, so that later breakers count the call too. The most severe one decides, and the first of equal
        // ones.
        if self.trip.as_ref().is_none_or(is_milder) {
            self.trip = Some((outcome, trip));
        }
        RuleEffect::with(|| format!("trips at {counts}, and decides {}", action.name()), self.is_traced)
    }

    pub(super) fn finish(mut self) -> Decision {
        let ends_run = |outcome: &DecidedBy| outcome.action(self.policy) == Action::TerminateRun;
        // The end of the run is more severe than what any breaker before decided.
        let termination = self.kept.filter(ends_run);
        let trip = self.trip.take().filter(|(outcome, _)| termination.is_none() || ends_run(outcome));
        // In the order of precedence: a breaker, a limit that stopped the evaluation, the first decision, a doubt, the default.
        let outcome = trip.as_ref().map(|(outcome, _)| *outcome).or(self.stopped).or(self.kept);
        let outcome = outcome.or(self.failed_open.map(DecidedBy::FailedOpen)).unwrap_or(DecidedBy::Default);
        // By the action of the rules, before the mode changes it: a policy that observes must count as it would when it enforces,
        // or its record could not tell which calls it would refuse.
        if outcome.action(self.policy) == Action::Allow {
            self.spend();
        }
        // Without the doubt, the allow rule could have decided.
        let skipped_allow = self.skipped_allow.filter(|_| Some(outcome) == self.kept);
        let doubts = Doubts { skipped_allow, reasons: std::mem::take(&mut self.doubts) };
        let record = outcome.record(self.policy, &doubts);
        // A policy that observes refuses no call.
        let breaker = trip.map(|(_, trip)| trip).filter(|_| record.action != Action::Allow);
        Decision { record, tags: self.classes.into_certain(), breaker }
    }

    fn spend(&mut self) {
        for index in std::mem::take(&mut self.spending) {
            let Some(rule) = self.policy.rules.get(index) else { continue };
            match &rule.effect {
                Effect::Budget(budget) => {
                    let key = self.scopes.key(budget.scope);
                    if let Some(RuleState::Budget(spent)) = self.states.get_mut(index) {
                        let after: Spent = spent.get(key).unwrap_or_default().with_call(budget);
                        spent.set(key, after);
                    }
                }
                Effect::RateLimit(limit) => {
                    let mut bucket = self.bucket(index, limit);
                    bucket.tokens = bucket.tokens.saturating_sub(limit.cost_tokens_per_call);
                    if let Some(RuleState::RateLimit(buckets)) = self.states.get_mut(index) {
                        buckets.set(self.scopes.key(limit.scope), bucket);
                    }
                }
                Effect::Dedupe(dedupe) => {
                    let key = (self.scopes.key(dedupe.scope), *self.call.args_hash);
                    if let Some(RuleState::Dedupe(window)) = self.states.get_mut(index) {
                        window.add(key, self.now);
                    }
                }
                Effect::Allow { .. } | Effect::Deny(_) | Effect::Breaker(_) | Effect::Tag(_) => {}
            }
        }
    }
}

const fn severity(action: Action) -> u8 {
    match action {
        Action::Allow => 0,
        Action::Throttle => 1,
        Action::RejectWithHint => 2,
        Action::Block => 3,
        Action::TerminateRun => 4,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleStep {
    pub rule_id: RuleId,
    pub kind: RuleKind,
    #[serde(flatten)]
    pub matching: Matching,
    /// What it did, in words; `None` if it did nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "match", rename_all = "snake_case")]
pub enum Matching {
    Disabled,
    NotReached,
    No {
        condition: String,
        reason: String,
    },
    Yes {
        /// The conditions; empty for a rule that matches every call.
        conditions: Vec<String>,
    },
    Undecided {
        condition: String,
        reason: String,
        treated: Treatment,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    Strict,
    Lenient,
}
