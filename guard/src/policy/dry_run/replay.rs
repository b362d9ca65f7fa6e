//! Reads events, and decides about their calls again.

use std::collections::HashMap;
use std::sync::Arc;

use counterproof_ledger::event::{CallId, Event, EventBody, ObservedDecision};
use jiff::Timestamp;
use serde::Serialize;

use super::recorded_run::RecordedRun;
use crate::policy::model::Policy;

/// What a policy would decide about recorded calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DryRun {
    /// The number of sources: runs, one for each of their servers.
    pub sources: usize,
    pub calls: u64,
    /// The number of calls whose decision is recorded. Only these are compared.
    pub calls_compared: u64,
    /// The number of calls whose arguments are not recorded completely. Conditions on them are undecided.
    pub calls_without_arguments: u64,
    /// The calls that were recorded in the mode `observe`.
    pub observed: ObservedCalls,
    /// The calls that would be decided differently, in order.
    pub differences: Vec<DryRunDifference>,
    /// Lines that are not events.
    pub problems: Vec<LineProblem>,
}

/// The compared calls that were recorded in the mode `observe`, which refuses no call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ObservedCalls {
    /// Their number.
    pub calls: u64,
    /// Those that the recorded rules would have refused.
    pub refused_before: u64,
    /// Those that the rules of this policy would have refused.
    pub refused_after: u64,
}

/// A call that would be decided differently.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DryRunDifference {
    pub run_id: String,
    /// The time of the recorded decision.
    pub ts: Timestamp,
    pub call_id: CallId,
    pub server_name: String,
    pub tool_name: String,
    /// True if the call was recorded in the mode `observe`, which allowed it whatever the rules decided.
    pub is_observed: bool,
    /// What the rules decided.
    pub before: ObservedDecision,
    /// What the rules of this policy would have decided.
    pub after: ObservedDecision,
}

/// A line that is not an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineProblem {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Decides about the calls of a file of events, JSON Lines, again. No tool is called.
///
/// Only calls that the agent made are decided. After another decision, it might have made other calls.
pub fn dry_run(policy: &Arc<Policy>, events: &[u8]) -> DryRun {
    let mut found = DryRun::default();
    let mut runs: HashMap<(String, String), RecordedRun> = HashMap::new();
    for (index, line) in events.split(|byte| *byte == b'\n').enumerate() {
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
        let key = (envelope.run_id.clone(), envelope.source.shim_id.clone());
        let run = runs.entry(key).or_insert_with(|| RecordedRun::new(policy, envelope));
        match &event.body {
            EventBody::ToolCallStart { call } => run.start(envelope, call, &mut found),
            EventBody::ToolCallDecision { call, decision } => run.decide(envelope, call, decision, &mut found),
            EventBody::ToolCallEnd(end) => run.end(envelope, end),
            _ => {}
        }
    }
    found.sources = runs.len();
    found
}
