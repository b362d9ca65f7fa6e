//! Dry runs: what a policy would decide about calls that were recorded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use counterproof_ledger::event::{
    Action, CallEnd, CallId, CallRef, CallStart, CallStatus, DecisionRecord, Envelope, ErrorClass, Event, EventBody,
    ObservedDecision,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::call::{Args, CallFacts, CallOutcome};
use super::decide::Engine;
use super::model::Policy;
use crate::identity::RunIdentity;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DryRun {
    /// The number of sources: runs, one for each of their servers.
    pub sources: usize,
    pub calls: u64,
    /// The number of calls whose decision is recorded. Only these are compared.
    pub calls_compared: u64,
    /// The number of calls whose arguments are not recorded completely. Conditions on them are undecided.
    pub calls_without_arguments: u64,
    pub observed: ObservedCalls,
    pub differences: Vec<DryRunDifference>,
    pub problems: Vec<LineProblem>,
}

/// The compared calls that were recorded in the mode `observe`, which refuses no call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ObservedCalls {
    pub calls: u64,
    pub refused_before: u64,
    pub refused_after: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DryRunDifference {
    pub run_id: String,
    pub ts: Timestamp,
    pub call_id: CallId,
    pub server_name: String,
    pub tool_name: String,
    /// True if the call was recorded in the mode `observe`, which allowed it whatever the rules decided.
    pub is_observed: bool,
    pub before: ObservedDecision,
    pub after: ObservedDecision,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineProblem {
    pub line: usize,
    pub message: String,
}

/// Decides about the calls of a file of events, JSON Lines, again. No tool is called.
///
/// Only calls that the agent made are decided. After another decision, it might have made other calls.
pub fn dry_run(policy: &Arc<Policy>, events: &[u8]) -> DryRun {
    let mut found = DryRun::default();
    let mut runs: HashMap<(String, String), RecordedRun> = HashMap::new();
    let mut sources = HashSet::new();
    let mut with_agent = HashSet::new();
    for (index, line) in events.split(|byte| *byte == b'\n').enumerate() {
        // Files that were edited by hand often end with an empty line.
        if line.trim_ascii().is_empty() {
            continue;
        }
        let event: Event = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(error) => {
                found.problems.push(LineProblem { line: index + 1, message: error.to_string() });
                continue;
            }
        };
        let envelope = &event.envelope;
        let (run_id, shim_id) = (envelope.run_id.clone(), envelope.source.shim_id.clone());
        sources.insert((run_id.clone(), shim_id.clone()));
        if matches!(&event.body, EventBody::RunStart { run } if run.is_of_agent()) {
            with_agent.insert(run_id.clone());
        }
        // Counters belong to a run of `guard run`, and otherwise to one process.
        let key = if with_agent.contains(&run_id) { (run_id, String::new()) } else { (run_id, shim_id) };
        let run = runs.entry(key).or_insert_with(|| RecordedRun::new(policy, envelope));
        match &event.body {
            EventBody::ToolCallStart { call } => run.start(envelope, call, &mut found),
            EventBody::ToolCallDecision { call, decision } => run.decide(envelope, call, decision, &mut found),
            EventBody::ToolCallEnd(end) => run.end(envelope, end),
            _ => {}
        }
    }
    found.sources = sources.len();
    found
}

#[derive(Debug)]
struct RecordedRun {
    engine: Engine,
    start: Timestamp,
    open: HashMap<CallId, ObservedDecision>,
}

impl RecordedRun {
    fn new(policy: &Arc<Policy>, envelope: &Envelope) -> Self {
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

    fn start(&mut self, envelope: &Envelope, call: &CallStart, found: &mut DryRun) {
        let args = arguments(call);
        found.calls += 1;
        found.calls_without_arguments += u64::from(args.is_none());
        // The arguments come from the preview. One that is cut off counts as too large, and conditions on it are undecided.
        let facts = CallFacts {
            server_name: &call.call.server_name,
            tool_name: &call.call.tool_name,
            args: args.as_ref().map_or(Args::TooLarge, Args::Inspected),
            args_hash: &call.call.args_hash,
            bytes_in: call.bytes_in,
            transport: call.transport,
        };
        let now = self.time(envelope);
        let decision = self.engine.decide(&facts, now).record.by_rules();
        self.open.insert(call.call.call_id.clone(), decision);
    }

    fn decide(&mut self, envelope: &Envelope, call: &CallRef, recorded: &DecisionRecord, found: &mut DryRun) {
        let Some(after) = self.open.get(&call.call_id) else { return };
        let (before, is_observed) = (recorded.by_rules(), recorded.observed.is_some());
        found.calls_compared += 1;
        if is_observed {
            let is_refused = |decision: &ObservedDecision| u64::from(decision.action != Action::Allow);
            found.observed.calls += 1;
            found.observed.refused_before += is_refused(&before);
            found.observed.refused_after += is_refused(after);
        }
        // The reason and the hint may differ: they do not change what the agent may do.
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
    fn end(&mut self, envelope: &Envelope, end: &CallEnd) {
        let Some(decision) = self.open.remove(&end.call.call_id) else { return };
        let was_refused = end.error.as_ref().is_some_and(|error| error.class == ErrorClass::PolicyBlock);
        // A call that was refused then has no outcome of a tool that could be counted.
        if decision.action == Action::Allow && !was_refused {
            let (server_name, tool_name) = (&*end.call.server_name, &*end.call.tool_name);
            let outcome = CallOutcome { server_name, tool_name, is_error: end.status != CallStatus::Ok };
            let now = self.time(envelope);
            self.engine.record_outcome(&outcome, now);
        }
    }

    fn time(&self, envelope: &Envelope) -> Duration {
        // The clock of the recording may have been set back. Such a time counts as the start.
        Duration::try_from(envelope.ts.duration_since(self.start)).unwrap_or_default()
    }
}

/// Returns the arguments of a call, if the event has all of them.
fn arguments(call: &CallStart) -> Option<Value> {
    let text = call.preview.args_preview.as_ref().filter(|_| !call.preview.truncated)?;
    serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
}
