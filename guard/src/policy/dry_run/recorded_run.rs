//! The calls of one recorded source, decided again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use counterproof_ledger::event::{
    Action, CallEnd, CallId, CallRef, CallStart, CallStatus, DecisionRecord, Envelope, ErrorClass, ObservedDecision,
};
use jiff::Timestamp;
use serde_json::Value;

use super::replay::{DryRun, DryRunDifference};
use crate::identity::RunIdentity;
use crate::policy::call::{Args, CallFacts, CallOutcome};
use crate::policy::evaluation::Engine;
use crate::policy::model::Policy;

/// The calls of one recorded source, decided again.
#[derive(Debug)]
pub(super) struct RecordedRun {
    engine: Engine,
    start: Timestamp,
    /// The new decisions about calls that have not ended.
    open: HashMap<CallId, ObservedDecision>,
}

impl RecordedRun {
    pub(super) fn new(policy: &Arc<Policy>, envelope: &Envelope) -> Self {
        let identity = RunIdentity {
            run_id: envelope.run_id.clone(),
            agent_id: envelope.agent_id.clone(),
            client: envelope.client,
            env: envelope.env,
            principal: envelope.principal.clone(),
            workload: envelope.workload.clone(),
        };
        Self { engine: Engine::new(policy.clone(), &identity), start: envelope.ts, open: HashMap::new() }
    }

    /// Decides about a call again.
    pub(super) fn start(&mut self, envelope: &Envelope, call: &CallStart, found: &mut DryRun) {
        let args = arguments(call);
        found.calls += 1;
        found.calls_without_arguments += u64::from(args.is_none());
        let facts = CallFacts {
            server_name: &call.call.server_name,
            tool_name: &call.call.tool_name,
            args: args.as_ref().map_or(Args::TooLarge, Args::Inspected),
            args_hash: &call.call.args_hash,
            bytes_in: call.bytes_in,
            transport: call.transport,
        };
        let now = self.time(envelope);
        let decision = effective(&self.engine.decide(&facts, now).record);
        self.open.insert(call.call.call_id.clone(), decision);
    }

    /// Compares the new decision with the recorded one.
    pub(super) fn decide(
        &mut self,
        envelope: &Envelope,
        call: &CallRef,
        recorded: &DecisionRecord,
        found: &mut DryRun,
    ) {
        let Some(after) = self.open.get(&call.call_id) else { return };
        let (before, is_observed) = (effective(recorded), recorded.observed.is_some());
        found.calls_compared += 1;
        if is_observed {
            let is_refused = |decision: &ObservedDecision| u64::from(decision.action != Action::Allow);
            found.observed.calls += 1;
            found.observed.refused_before += is_refused(&before);
            found.observed.refused_after += is_refused(after);
        }
        if before.action != after.action || before.rule_id != after.rule_id {
            found.differences.push(DryRunDifference {
                run_id: envelope.run_id.clone(),
                ts: envelope.ts,
                call_id: call.call_id.clone(),
                server_name: call.server_name.clone(),
                tool_name: call.tool_name.clone(),
                is_observed,
                before,
                after: after.clone(),
            });
        }
    }

    /// Counts the end of a call that the policy would have forwarded.
    pub(super) fn end(&mut self, envelope: &Envelope, end: &CallEnd) {
        let Some(decision) = self.open.remove(&end.call.call_id) else { return };
        let was_refused = end.error.as_ref().is_some_and(|error| error.class == ErrorClass::PolicyBlock);
        if decision.action == Action::Allow && !was_refused {
            let (server_name, tool_name) = (&*end.call.server_name, &*end.call.tool_name);
            let outcome = CallOutcome { server_name, tool_name, is_error: end.status != CallStatus::Ok };
            let now = self.time(envelope);
            self.engine.record_outcome(&outcome, now);
        }
    }

    fn time(&self, envelope: &Envelope) -> Duration {
        Duration::try_from(envelope.ts.duration_since(self.start)).unwrap_or_default()
    }
}

/// Returns what the rules decide, whether or not the policy enforces it.
fn effective(record: &DecisionRecord) -> ObservedDecision {
    record.observed.clone().unwrap_or_else(|| ObservedDecision {
        action: record.action,
        rule_id: record.rule_id.clone(),
        reason_code: record.explain.reason_code.clone(),
    })
}

/// Returns the arguments of a call, if the event has all of them.
fn arguments(call: &CallStart) -> Option<Value> {
    let text = call.preview.args_preview.as_ref().filter(|_| !call.preview.truncated)?;
    serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
}
