//! The rows that follow from an event.

use serde_json::Number;

use super::fields::{Call, Fields, Hint, Policy, Preview, Run, Summary};
use super::identity::Identity;
use super::texts::{is_id, json_text, name, parse_time, storable};
use crate::tables::{Cell, HINTS, POLICY_VERSIONS, PREVIEWS, RUN_SOURCES, Row, TOOL_CALLS};

/// The mark of a redacted secret in a preview.
const REDACTED: &str = "[REDACTED]";

/// The rows that follow from one event.
#[derive(Debug)]
pub(crate) struct EventRows {
    pub(crate) source: Row,
    pub(crate) call: Option<Row>,
    pub(crate) preview: Option<Row>,
    pub(crate) hint: Option<Row>,
    pub(crate) policy: Option<Row>,
}

impl EventRows {
    /// Returns the rows, and whether they are complete: a call whose id cannot be a key has no row.
    pub(super) fn new(event: &Identity, mut fields: Fields) -> (Self, bool) {
        let stated = fields.call.take();
        let has_call = stated.is_some();
        let call = stated.filter(|call| is_id(&call.call_id));
        let is_complete = call.is_some() == has_call;
        let (starts, ends) = (event.kind == "run_start", event.kind == "run_end");
        let run = fields.run.take().filter(|_| starts || ends).unwrap_or_default();
        let decision = fields.decision.as_mut();
        let policy = fields.policy.take().or_else(|| decision.and_then(|decision| decision.policy.take()));
        let policy = policy.as_ref().or(run.policy.as_ref()).and_then(|policy| policy_row(event, policy, &run));
        let (mut call_row, mut preview, mut hint) = (None, None, None);
        if let Some(mut call) = call {
            let id = call.call_id.as_str();
            let previews = [call.preview.take(), fields.preview.take()];
            let decided = fields.decision.as_mut().and_then(|decision| decision.hint.take());
            preview = preview_row(event, id, &previews);
            hint = fields.hint.take().or(decided).and_then(|it| hint_row(event, id, it));
            call_row = matches!(event.kind.as_str(), "tool_call_start" | "tool_call_decision" | "tool_call_end")
                .then(|| call_row_of(event, call, &previews, &mut fields));
        }
        (Self { source: source_row(event, fields, run), call: call_row, preview, hint, policy }, is_complete)
    }
}

fn call_row_of(event: &Identity, call: Call, previews: &[Option<Preview>; 2], fields: &mut Fields) -> Row {
    let decision = fields.decision.take().unwrap_or_default();
    let truncated = previews.iter().flatten().filter_map(|preview| preview.truncated).max();
    let named = |text: Option<String>| Cell::from(text.map(name));
    Row::new(
        &TOOL_CALLS,
        [
            event.run_id.as_str().into(),
            call.call_id.into(),
            event.shim_id.as_str().into(),
            named(call.server_name),
            named(call.tool_name),
            named(call.args_hash),
            named(call.transport),
            named(decision.action),
            named(decision.rule_id),
            named(decision.explain.and_then(|explain| explain.reason_code)),
            named(decision.observed.and_then(|observed| observed.action)),
            named(fields.status.take()),
            named(fields.error.take().and_then(|error| error.class)),
            fields.latency_ms.as_ref().map(whole).into(),
            call.bytes_in.as_ref().map(whole).into(),
            fields.bytes_out.as_ref().map(whole).into(),
            truncated.into(),
            event.ts.as_str().into(),
        ],
    )
}

fn preview_row(event: &Identity, call_id: &str, previews: &[Option<Preview>; 2]) -> Option<Row> {
    let text = |of: fn(&Preview) -> &Option<String>| {
        previews.iter().flatten().find_map(|preview| of(preview).clone()).map(storable)
    };
    let (args, result) = (text(|it| &it.args_preview), text(|it| &it.result_preview));
    if args.is_none() && result.is_none() {
        return None;
    }
    let is_redacted = |text: &Option<String>| u64::from(text.as_ref().is_some_and(|text| text.contains(REDACTED)));
    let flags = is_redacted(&args) + 2 * is_redacted(&result);
    let cells = [event.run_id.as_str().into(), call_id.into(), args.into(), result.into(), flags.into()];
    Some(Row::new(&PREVIEWS, cells))
}

fn hint_row(event: &Identity, call_id: &str, hint: Hint) -> Option<Row> {
    let cells = [
        event.run_id.as_str().into(),
        call_id.into(),
        storable(hint.hint_text?).into(),
        hint.hint_kind.map(name).into(),
        json_text(hint.suggested_args).into(),
        event.ts.as_str().into(),
    ];
    Some(Row::new(&HINTS, cells))
}

fn policy_row(event: &Identity, policy: &Policy, run: &Run) -> Option<Row> {
    let required = |text: &Option<String>| Cell::from(name(text.clone().unwrap_or_default()));
    let cells = [
        name(policy.policy_id.clone()?).into(),
        required(&policy.policy_version),
        required(&policy.policy_hash),
        run.mode.clone().map(name).into(),
        json_text(policy.rules.clone()).into(),
        event.ts.as_str().into(),
    ];
    Some(Row::new(&POLICY_VERSIONS, cells))
}

fn source_row(event: &Identity, fields: Fields, run: Run) -> Row {
    let source = fields.source.unwrap_or_default();
    let policy = run.policy.unwrap_or_default();
    let Summary { calls_total, calls_allowed, calls_blocked, calls_throttled, errors_total, duration_ms } =
        run.summary.unwrap_or_default();
    let known = |text: Option<String>| Cell::from(text.map(name));
    // An event without the time of the start or the end states it by its own time.
    let time = |kind: &str, text: Option<String>| {
        (event.kind == kind).then(|| text.and_then(|text| parse_time(&text)).unwrap_or_else(|| event.ts.clone()))
    };
    Row::new(
        &RUN_SOURCES,
        [
            event.run_id.as_str().into(),
            event.shim_id.as_str().into(),
            event.order().into(),
            event.ts.as_str().into(),
            known(source.host_id),
            known(source.proc_id),
            known(fields.agent_id),
            known(fields.client),
            known(fields.env),
            known(fields.principal),
            json_text(fields.workload).into(),
            time("run_start", run.started_at).into(),
            time("run_end", run.ended_at).into(),
            known(run.status),
            known(run.mode),
            known(policy.policy_id),
            known(policy.policy_version),
            known(policy.policy_hash),
            json_text(run.meta).into(),
            calls_total.into(),
            calls_allowed.into(),
            calls_blocked.into(),
            calls_throttled.into(),
            errors_total.into(),
            duration_ms.into(),
            event.seq.map_or(Cell::Null, Cell::Integer),
            false.into(),
        ],
    )
}

/// Returns a number of milliseconds or bytes without its fraction.
fn whole(number: &Number) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
    number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default().ceil() as u64)
}
