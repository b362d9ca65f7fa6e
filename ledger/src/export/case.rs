//! The case of one run.

use counterproof_artifact::{
    Answer, Attempt, AttemptOutcome, Case, CaseId, Content, ContentType, Event, EventBody, Extra, FinalOutput,
    FinalOutputEvent, Outcome, Side,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::case_id::agent;
use super::recorded_run::RecordedRun;
use super::run_status::RecordedStatus;
use super::tool_call::tool_call;
use super::tool_result::tool_result;
use crate::query::RunRecord;

/// The workflow of a run whose agent is not known.
const UNNAMED: &str = "agent";

/// Builds the case of a run.
pub(super) fn case(run: &RunRecord, recorded: &RecordedRun, case_id: CaseId, side: Side) -> Case {
    let mut events = steps(recorded);
    let output = Content::Json(final_output(run, recorded));
    let ended = run.last_event_at.as_deref().and_then(time).map(millis).unwrap_or_default();
    let ended = events.iter().map(|(ts, _)| *ts).fold(ended, u64::max);
    let body = FinalOutputEvent { content_type: ContentType::Json, content: output.clone(), extra: Extra::new() };
    events.push((ended, EventBody::FinalOutput(body)));
    Case {
        case_id,
        version: side,
        workflow_id: Some(agent(run).unwrap_or(UNNAMED).to_owned()),
        attempts: attempt(run).map(|attempt| vec![attempt]),
        usage: None,
        outcome: Outcome::Ok(Answer {
            proposed_actions: Vec::new(),
            events: events.into_iter().map(|(ts, body)| Event { ts: ts.into(), body }).collect(),
            final_output: FinalOutput {
                content_type: ContentType::Json,
                output_hash: Some(output.short_hash()),
                content: output,
                redactions_applied: None,
                extra: Extra::new(),
            },
        }),
        extra: Extra::from_iter([
            ("title".to_owned(), json!(title(run))),
            ("recorded_run".to_owned(), facts(run, recorded)),
        ]),
    }
}

/// Returns the calls and their results with their times, in the order in which they happened.
fn steps(recorded: &RecordedRun) -> Vec<(u64, EventBody)> {
    let mut steps = Vec::new();
    for (number, call) in (1_u64..).zip(&recorded.calls) {
        let Some(began) = call.began() else { continue };
        // The recorded ids are random, and would differ between any two runs.
        let call_id = format!("call-{number}");
        steps.push((began, number, false, EventBody::ToolCall(tool_call(call, call_id.clone()))));
        if let (Some(end), Some(ended)) = (call.end(), call.ended()) {
            steps.push((ended, number, true, EventBody::ToolResult(tool_result(call, end, call_id))));
        }
    }
    // A result whose time is that of its call comes after it.
    steps.sort_by(|one, other| (one.0, one.1, one.2).cmp(&(other.0, other.1, other.2)));
    steps.into_iter().map(|(key, _, _, body)| (key.millis(), body)).collect()
}

/// Returns how the run ended, and how the agent and the servers ended that did not succeed.
fn final_output(run: &RunRecord, recorded: &RecordedRun) -> Map<String, Value> {
    let status = RecordedStatus::of_run(run);
    let without_end = RecordedStatus::without_end(run);
    let failed = recorded.sources.failed_servers(&without_end);
    let mut output = Map::from_iter([("status".to_owned(), json!(status.as_str()))]);
    output.extend(recorded.sources.failed_agent(&without_end).map(|agent| ("agent".to_owned(), json!(agent))));
    if !failed.is_empty() {
        output.insert("servers".to_owned(), Value::Object(failed));
    }
    output
}

/// Returns what a reader may want to know about the run, and what differs between any two runs. It is not compared.
fn facts(run: &RunRecord, recorded: &RecordedRun) -> Value {
    let call_ids: Vec<_> = recorded.calls.iter().map(|call| call.text("call_id")).collect();
    json!({
        "run_id": run.run_id,
        "agent_id": run.agent_id,
        "client": run.client,
        "env": run.env,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "sources": recorded.sources.facts(),
        "call_ids": call_ids,
    })
}

/// Returns what the case is about, in a few words.
pub(super) fn title(run: &RunRecord) -> String {
    agent(run).map_or_else(|| "Recorded run".to_owned(), |agent| format!("Recorded run of {agent}"))
}

fn attempt(run: &RunRecord) -> Option<Attempt> {
    let [started, ended] = [&run.started_at, &run.last_event_at].map(|text| text.as_deref().and_then(time));
    let started = started?;
    let latency = ended.map(|ended| millis(ended).saturating_sub(millis(started)));
    Some(Attempt {
        attempt: 1_u64.into(),
        started_at: started.to_string(),
        latency_ms: latency.map(Into::into),
        outcome: AttemptOutcome::Ok,
        error_class: None,
        extra: Extra::new(),
    })
}

/// Parses a time of the ledger. An artifact cannot state times before 1970.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().filter(|time| *time >= Timestamp::UNIX_EPOCH)
}

fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or_default()
}
