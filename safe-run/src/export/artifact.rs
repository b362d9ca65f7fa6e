//! The case of one record: a tool call, its result and the final output.

use counterproof_artifact::{
    Answer, Attempt, AttemptOutcome, Case, Content, ContentType, Event, EventBody, Extra, FinalOutput,
    FinalOutputEvent, Millis, Outcome, Side, ToolCall, ToolResult, ToolStatus,
};
use serde_json::{Map, Value, json};

use super::input::RecordedCase;
use crate::parse::EndDetails;

/// The longest payload inside the case, as compact JSON in bytes. A longer payload becomes an asset.
pub(super) const MAX_INLINE_BYTES: usize = 64 * 1024;

/// Length of a case title, in characters.
const TITLE_CHARS: usize = 200;

/// The id of the only tool call of a case.
const CALL_ID: &str = "command";

/// The name of the tool and of the workflow in every case.
pub(super) const TOOL: &str = "safe-run";

/// Builds the case: the command is a tool call; its output and exit code are the result.
pub(super) fn case(case: &RecordedCase, side: Side) -> Case {
    let RecordedCase { case_id, record, .. } = case;
    let start = u64::try_from(case.started_at().as_millisecond()).unwrap_or_default();
    let latency = u64::try_from(case.elapsed().as_millis()).unwrap_or(u64::MAX);
    let call = ToolCall {
        call_id: CALL_ID.to_owned(),
        action_id: None,
        tool: TOOL.to_owned(),
        args: object(json!({ "command": record.command })),
        risk_level: None,
        risk_tags: None,
        annotations: None,
        extra: Extra::new(),
    };
    let output = Content::Json(object(json!({ "exit_code": record.exit_code })));
    let events = [
        (start, EventBody::ToolCall(call)),
        (start.saturating_add(latency), EventBody::ToolResult(result(case, latency.into()))),
        (
            start.saturating_add(latency),
            EventBody::FinalOutput(FinalOutputEvent {
                content_type: ContentType::Json,
                content: output.clone(),
                extra: Extra::new(),
            }),
        ),
    ];
    let attempt = record.times.map(|(started, _)| Attempt {
        attempt: 1_u64.into(),
        started_at: started.to_string(),
        latency_ms: Some(latency.into()),
        outcome: AttemptOutcome::Ok,
        error_class: None,
        extra: Extra::new(),
    });
    Case {
        case_id: case_id.clone(),
        version: side,
        workflow_id: Some(TOOL.to_owned()),
        attempts: attempt.map(|attempt| vec![attempt]),
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
        extra: object(json!({ "title": title(&record.command) })),
    }
}

/// Builds the tool result.
fn result(case: &RecordedCase, latency_ms: Millis) -> ToolResult {
    let record = &case.record;
    let mut payload = object(json!({
        "exit_code": record.exit_code,
        "stdout": text(&record.stdout),
        "stderr": text(&record.stderr),
    }));
    let EndDetails { signal, aborted_by, left_behind } = record.end;
    let details = [
        ("signal", signal.map(Value::from)),
        ("aborted_by", aborted_by.map(Value::from)),
        ("left_behind", left_behind.map(Value::from)),
    ];
    payload.extend(details.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    if !record.notes.is_empty() {
        payload.insert("notes".to_owned(), json!(record.notes));
    }
    ToolResult {
        call_id: CALL_ID.to_owned(),
        action_id: None,
        status: if record.exit_code == 0 { ToolStatus::Ok } else { ToolStatus::Error },
        latency_ms,
        payload_summary: Some(Content::Json(payload)),
        payload_asset_href: None,
        payload_asset_sha256: None,
        extra: Extra::new(),
    }
}

/// Joins the lines of a stream. Each line gets a newline, so that an empty line differs from no line.
fn text(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Returns the title of the case: the command, shortened to [`TITLE_CHARS`].
fn title(command: &str) -> String {
    let mut characters = command.chars();
    let mut title: String = characters.by_ref().take(TITLE_CHARS).collect();
    title.extend(characters.next().map(|_| '…'));
    title
}

/// Returns the fields of a JSON object.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
