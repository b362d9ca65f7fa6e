//! `counterproof ledger export --html`: the guarded runs of a ledger as a page.

use std::collections::HashSet;

use camino::Utf8Path;
use counterproof_artifact::Exit;
use counterproof_ledger::event::{Action, CallStatus};
use counterproof_ledger::query::{CallFilter, CallRecord, RunFilter, RunRecord, calls, runs};
use counterproof_ledger::store::EventStore;
use counterproof_report::{GuardedCall, GuardedRun, Outcome, write_guarded_runs};

use super::opened::{Place, failed};
use super::runs::{running, short_time, status};
use crate::command_error::CommandError;
use crate::report_output::report_error;
use crate::streams::Streams;

/// Calls of one query. A page of more is too large to read.
const CALLS: u32 = 2000;

const RUNS: u32 = 500;

pub(super) fn write(
    out: &Utf8Path,
    run_id: Option<&String>,
    since: Option<&String>,
    place: &Place,
    store: &mut dyn EventStore,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let filter = CallFilter {
        run_id: run_id.cloned(),
        since: since.cloned(),
        with_previews: true,
        // One more, to know whether the list is complete.
        limit: CALLS + 1,
        ..CallFilter::default()
    };
    let mut found = Vec::new();
    let mut is_cut = false;
    // Refused calls first, so that many allowed ones cannot hide them.
    let refused = Action::ALL.into_iter().filter(|action| *action != Action::Allow);
    let refused = refused.map(|action| CallFilter { decision: Some(action.name().to_owned()), ..filter.clone() });
    let observed = CallFilter { would_refuse: true, ..filter.clone() };
    for filter in refused.chain([observed, filter.clone()]) {
        let mut selected = calls(store, &filter).map_err(failed)?;
        is_cut |= selected.len() > CALLS as usize;
        selected.truncate(CALLS as usize);
        found.append(&mut selected);
    }
    let mut seen = HashSet::new();
    found.retain(|call| seen.insert((call.run_id.clone(), call.shim_id.clone(), call.call_id.clone())));
    let calls: Vec<_> = found.into_iter().map(call).collect();
    let running = running(store, place)?;
    let filter = RunFilter { run_id: run_id.cloned(), since: since.cloned(), limit: RUNS };
    let runs = runs(store, &filter).map_err(failed)?;
    let runs: Vec<_> = runs.into_iter().map(|run| guarded_run(status(&run, &running), run)).collect();
    let count = calls.len();
    let page = write_guarded_runs(out, &runs, &calls, is_cut).map_err(report_error)?;
    if place.is_json {
        let document = serde_json::json!({ "calls": count, "out": page });
        streams.print_document(&crate::streams::to_json(&document))?;
    } else {
        streams.print_line(format_args!("{count} calls: {page}"))?;
    }
    Ok(Exit::Done)
}

fn call(record: CallRecord) -> GuardedCall {
    let is_allowed = |action: &String| action == Action::Allow.name();
    let outcome = match (&record.decision, &record.observed_action, record.status.as_deref()) {
        (Some(decision), ..) if !is_allowed(decision) => Outcome::Refused,
        (_, Some(observed), _) if !is_allowed(observed) => Outcome::WouldRefuse,
        (.., None) => Outcome::Open,
        (.., Some(status)) if status == CallStatus::Ok.name() => Outcome::Succeeded,
        (.., Some(_)) => Outcome::Failed,
    };
    GuardedCall {
        time: short_time(&record.ts),
        run_id: record.run_id,
        call_id: record.call_id,
        server: record.server_name,
        tool: record.tool_name,
        outcome,
        decision: record.observed_action.or(record.decision),
        rule: record.rule_id,
        reason: record.decision_summary.or(record.error_message).or(record.reason_code),
        arguments: record.args_preview,
        result: record.result_preview,
        latency_ms: record.latency_ms,
    }
}

fn guarded_run(status: String, run: RunRecord) -> GuardedRun {
    GuardedRun {
        run_id: run.run_id,
        started: run.started_at.as_deref().map(short_time).unwrap_or_default(),
        agent: run.agent_id,
        status,
        calls: run.calls,
        refused: run.refused,
        errors: run.errors,
    }
}
