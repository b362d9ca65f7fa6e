//! Who decides about the calls of a session: the engine of this process, or that of the run that it belongs to.

use std::io;
use std::time::Duration;

use crate::agent_run::{EndKind, RunConnection};
use crate::policy::{CallFacts, CallOutcome, Decision, Engine};

/// How a server belongs to a run of `guard run`.
#[derive(Debug)]
pub enum RunMembership {
    /// It belongs to none.
    None,
    /// The run decides about its calls.
    Joined(RunConnection),
    /// It belongs to one that cannot be reached. Its calls are refused, unless the policy allows calls on errors.
    Unreachable,
}

pub(super) struct Decider {
    engine: Engine,
    run: RunMembership,
    /// The number of the last call.
    calls: u64,
}

impl Decider {
    pub(super) const fn new(engine: Engine, run: RunMembership) -> Self {
        Self { engine, run, calls: 0 }
    }

    /// Decides about a call, and numbers it. Fails if the run that decides does not answer.
    pub(super) fn decide(&mut self, call: &CallFacts<'_>, now: Duration) -> io::Result<(Decision, u64)> {
        match &mut self.run {
            RunMembership::Joined(run) => {
                let (decision, number) = run.decide(call)?;
                self.calls = number;
                Ok((decision, number))
            }
            RunMembership::None => Ok(self.decide_alone(call, now)),
            RunMembership::Unreachable => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Decides with the counters of this process.
    pub(super) fn decide_alone(&mut self, call: &CallFacts<'_>, now: Duration) -> (Decision, u64) {
        (self.engine.decide(call, now), self.number())
    }

    /// Numbers a call that no rule of the run decides.
    pub(super) fn number(&mut self) -> u64 {
        let shared = match &mut self.run {
            RunMembership::Joined(run) => run.number().ok(),
            RunMembership::None | RunMembership::Unreachable => None,
        };
        // A run that does not answer has ended: what this process records in it has numbers all the same.
        self.calls = shared.unwrap_or(self.calls + 1);
        self.calls
    }

    /// Counts the end of a call.
    pub(super) fn end(&mut self, server_name: &str, tool_name: &str, kind: EndKind, now: Duration) {
        let ended = match &mut self.run {
            RunMembership::Joined(run) => run.end(server_name, tool_name, kind).is_ok(),
            RunMembership::None | RunMembership::Unreachable => false,
        };
        // Also if the run does not answer: this process decides alone then.
        if !ended {
            let outcome = CallOutcome { server_name, tool_name, is_error: kind == EndKind::Failed };
            self.engine.record_outcome(&outcome, now);
        }
    }
}
