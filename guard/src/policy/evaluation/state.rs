//! What the rules remember between calls.

use std::time::Duration;

use counterproof_artifact::Sha256Digest;

use super::breaker::BreakerWindows;
use super::counters::{Bucket, Counters, Spent};
use super::scope::ScopeKey;
use super::window::SlidingWindow;
use crate::policy::model::{Effect, Rule};

/// Largest number of times in the windows of all rules, of about 150 bytes each.
const MAX_WINDOW_TIMES: usize = 1 << 17;

/// Largest number of scopes in the counters of all rules.
const MAX_SCOPES: usize = 1 << 16;

/// What a rule remembers.
#[derive(Debug)]
pub(super) enum RuleState {
    Stateless,
    Budget(Counters<Spent>),
    RateLimit(Counters<Bucket>),
    Breaker(BreakerWindows),
    Dedupe(SlidingWindow<(ScopeKey, Sha256Digest)>),
}

impl RuleState {
    /// Creates the state of a rule. The rules share the memory.
    pub(super) fn new(rule: &Rule, share: usize) -> Self {
        let scopes = MAX_SCOPES / share;
        match &rule.effect {
            Effect::Allow { .. } | Effect::Deny(_) | Effect::Tag(_) => RuleState::Stateless,
            Effect::Budget(_) => RuleState::Budget(Counters::new(scopes)),
            Effect::RateLimit(_) => RuleState::RateLimit(Counters::new(scopes)),
            Effect::Breaker(breaker) => RuleState::Breaker(BreakerWindows::new(breaker, MAX_WINDOW_TIMES / share)),
            Effect::Dedupe(dedupe) => {
                let window = Duration::from_millis(dedupe.window_ms);
                RuleState::Dedupe(SlidingWindow::new(window, 1, MAX_WINDOW_TIMES / share))
            }
        }
    }
}
