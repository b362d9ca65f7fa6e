//! The engine of one run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::evaluate::Evaluation;
use super::names::{NameCache, failed_name};
use super::reasons::reason;
use super::record::{Doubts, Outcome};
use super::state::RuleState;
use super::steps::{Matching, RuleStep};
use crate::identity::RunIdentity;
use crate::policy::call::{CallFacts, CallOutcome};
use crate::policy::decision::Decision;
use crate::policy::model::{Effect, Policy, Rule, run_value};

/// Decides about the calls of one run.
#[derive(Debug)]
pub struct Engine {
    policy: Arc<Policy>,
    applies: bool,
    run: Value,
    names: NameCache,
    states: Vec<RuleState>,
    now: Duration,
}

impl Engine {
    pub fn new(policy: Arc<Policy>, identity: &RunIdentity) -> Self {
        let share = policy.rules.len().max(1);
        Self {
            applies: policy.selectors.unmet(identity).is_none(),
            run: run_value(identity),
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
        self.evaluate(call, now, None)
    }

    /// Decides about a call, and returns what each rule did.
    pub fn explain(&mut self, call: &CallFacts<'_>, now: Duration) -> (Decision, Vec<RuleStep>) {
        let mut steps: Vec<RuleStep> = self.policy.rules.iter().map(not_reached).collect();
        let decision = self.evaluate(call, now, Some(&mut steps));
        (decision, steps)
    }

    /// Counts the end of a forwarded call, for breakers that count errors.
    pub fn record_outcome(&mut self, outcome: &CallOutcome<'_>, now: Duration) {
        if !outcome.is_error || !self.applies {
            return;
        }
        let now = self.advance(now);
        let names = self.names.facts(&self.policy, outcome.server_name, outcome.tool_name);
        for candidate in &names.candidates {
            let effect = self.policy.rules.get(candidate.rule).map(|rule| &rule.effect);
            if let (Some(Effect::Breaker(breaker)), Some(RuleState::Breaker(windows))) =
                (effect, self.states.get_mut(candidate.rule))
            {
                windows.count_error(names.scopes.key(breaker.scope), now);
            }
        }
    }

    /// Returns the latest time so far. An earlier time would refill buckets twice.
    fn advance(&mut self, now: Duration) -> Duration {
        self.now = self.now.max(now);
        self.now
    }

    fn evaluate(&mut self, call: &CallFacts<'_>, now: Duration, mut steps: Option<&mut Vec<RuleStep>>) -> Decision {
        let now = self.advance(now);
        let policy = &*self.policy;
        if !self.applies {
            let record = Outcome::NotApplicable.record(policy, &Doubts::default());
            return Decision { record, tags: Vec::new(), breaker: None };
        }
        let names = self.names.facts(policy, call.server_name, call.tool_name);
        if let Some(steps) = &mut steps {
            for (index, (rule, step)) in policy.rules.iter().zip(&mut **steps).enumerate() {
                if !rule.is_enabled {
                    step.matching = Matching::Disabled;
                } else if !names.candidates.iter().any(|candidate| candidate.rule == index) {
                    let condition = failed_name(policy, &rule.conditions, call.server_name, call.tool_name);
                    let reason = reason(condition, &rule.conditions, call, &[]);
                    step.matching = Matching::No { condition: condition.to_string(), reason };
                }
            }
        }
        let mut evaluation = Evaluation::new(policy, &mut self.states, call, names.scopes, now);
        evaluation.run(&names.candidates, &self.run, steps);
        evaluation.finish()
    }
}

fn not_reached(rule: &Rule) -> RuleStep {
    RuleStep { rule_id: rule.id.clone(), kind: rule.kind(), matching: Matching::NotReached, effect: None }
}
