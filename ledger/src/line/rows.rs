//! The fields of an event that the ledger reads, and the rows that follow from them.

#![expect(clippy::struct_field_names, reason = "the names of the fields of events")]

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::identity::{Identity, name, parse_time, storable};
use crate::tables::{Cell, HINTS, POLICY_VERSIONS, PREVIEWS, RUN_SOURCES, Row, TOOL_CALLS};

const REDACTED: &str = "[REDACTED]";

#[derive(Debug)]
pub(crate) struct CallRows<'a> {
    pub(crate) call: Option<Row<'a>>,
    pub(crate) preview: Option<Row<'a>>,
    pub(crate) hint: Option<Row<'a>>,
    pub(crate) policy: Option<Row<'a>>,
}

pub(super) fn call_rows<'a>(event: &'a Identity<'_>, fields: &'a Fields<'_>) -> CallRows<'a> {
    let decision = fields.decision.as_deref();
    let run = run_of(event, fields);
    let policy = fields.policy.as_deref().or_else(|| decision?.policy.as_deref()).or_else(|| run?.policy.as_deref());
    let hint = fields.hint.as_deref().or_else(|| decision?.hint.as_deref());
    let call = fields.call.as_ref();
    // Other events name a call too, such as hints, and state nothing about it.
    let is_of_call = matches!(&*event.kind, "tool_call_start" | "tool_call_decision" | "tool_call_end");
    CallRows {
        call: call.filter(|_| is_of_call).map(|call| call_row(event, call, fields)),
        preview: call.and_then(|call| preview_row(event, call, fields)),
        hint: call.zip(hint).and_then(|(call, hint)| hint_row(event, call, hint)),
        policy: policy.and_then(|policy| policy_row(event, policy, run)),
    }
}

/// Returns the run, if the event is about its start or its end.
fn run_of<'a>(event: &Identity<'_>, fields: &'a Fields<'_>) -> Option<&'a Run<'a>> {
    fields.run.as_deref().filter(|_| matches!(&*event.kind, "run_start" | "run_end"))
}

fn call_row<'a>(event: &'a Identity<'_>, call: &'a Call<'_>, fields: &'a Fields<'_>) -> Row<'a> {
    let decision = fields.decision.as_deref();
    let truncated = previews(call, fields).filter_map(|preview| preview.truncated).max();
    Row::new(
        &TOOL_CALLS,
        [
            Cell::from(&*event.run_id),
            Cell::from(&*call.call_id.0),
            Cell::from(&*event.shim_id),
            named(call.server_name.as_ref()),
            named(call.tool_name.as_ref()),
            named(call.args_hash.as_ref()),
            named(call.transport.as_ref()),
            named(decision.and_then(|it| it.action.as_ref())),
            named(decision.and_then(|it| it.rule_id.as_ref().or_else(|| it.observed.as_ref()?.rule_id.as_ref()))),
            named(decision.and_then(|it| it.explain.as_ref()?.reason_code.as_ref())),
            named(decision.and_then(|it| it.observed.as_ref()?.action.as_ref())),
            named(fields.status.as_ref()),
            named(fields.error.as_ref().and_then(|error| error.class.as_ref())),
            fields.latency_ms.as_ref().map(whole).into(),
            call.bytes_in.as_ref().map(whole).into(),
            fields.bytes_out.as_ref().map(whole).into(),
            truncated.into(),
            Cell::from(&*event.ts),
        ],
    )
}

/// Returns the previews of an event: those of its call, and its own.
fn previews<'a>(call: &'a Call<'_>, fields: &'a Fields<'_>) -> impl Iterator<Item = &'a Preview<'a>> {
    call.preview.iter().chain(&fields.preview)
}

fn preview_row<'a>(event: &'a Identity<'_>, call: &'a Call<'_>, fields: &'a Fields<'_>) -> Option<Row<'a>> {
    let args = previews(call, fields).find_map(|preview| preview.args_preview.as_ref());
    let result = previews(call, fields).find_map(|preview| preview.result_preview.as_ref());
    // Most events have no preview, and a row for each would double the table.
    if args.is_none() && result.is_none() {
        return None;
    }
    let is_redacted = |text: Option<&Text<'_>>| u64::from(text.is_some_and(|text| text.0.contains(REDACTED)));
    // Two bits, which are merged: the events of the start and of the end know one of them each.
    let flags = is_redacted(args) + 2 * is_redacted(result);
    let text = |text: Option<&'a Text<'_>>| Cell::from(text.map(|text| storable(&text.0)));
    let (run_id, call_id) = (Cell::from(&*event.run_id), Cell::from(&*call.call_id.0));
    Some(Row::new(&PREVIEWS, [run_id, call_id, text(args), text(result), flags.into()]))
}

fn hint_row<'a>(event: &'a Identity<'_>, call: &'a Call<'_>, hint: &'a Hint<'_>) -> Option<Row<'a>> {
    let cells = [
        Cell::from(&*event.run_id),
        Cell::from(&*call.call_id.0),
        Cell::from(storable(&hint.hint_text.as_ref()?.0)),
        named(hint.hint_kind.as_ref()),
        json_text(hint.suggested_args),
        Cell::from(&*event.ts),
    ];
    Some(Row::new(&HINTS, cells))
}

fn policy_row<'a>(event: &'a Identity<'_>, policy: &'a Policy<'_>, run: Option<&'a Run<'_>>) -> Option<Row<'a>> {
    let required = |text: &'a Option<Text<'_>>| Cell::from(text.as_ref().map_or("".into(), |text| name(&text.0)));
    let cells = [
        Cell::from(name(&policy.policy_id.as_ref()?.0)),
        required(&policy.policy_version),
        required(&policy.policy_hash),
        named(run.and_then(|run| run.mode.as_ref())),
        json_text(policy.rules),
        Cell::from(&*event.ts),
    ];
    Some(Row::new(&POLICY_VERSIONS, cells))
}

pub(super) fn source_row<'a>(event: &'a Identity<'_>, fields: &'a Fields<'_>) -> Row<'a> {
    let source = fields.source.as_ref();
    let run = run_of(event, fields);
    let of_run = |of: fn(&'a Run<'_>) -> &'a Option<Text<'a>>| named(run.and_then(|run| of(run).as_ref()));
    let policy = run.and_then(|run| run.policy.as_deref());
    let of_policy = |of: fn(&'a Policy<'_>) -> &'a Option<Text<'a>>| named(policy.and_then(|it| of(it).as_ref()));
    let summary = run.and_then(|run| run.summary.as_ref());
    // An event without the time of the start or the end states it by its own time.
    let time = |kind: &str, of: fn(&'a Run<'_>) -> &'a Option<Text<'a>>| {
        let stated = || of(run?).as_ref().and_then(|text| parse_time(&text.0));
        Cell::from((event.kind == kind).then(|| stated().unwrap_or_else(|| event.ts.clone())))
    };
    Row::new(
        &RUN_SOURCES,
        [
            Cell::from(&*event.run_id),
            Cell::from(&*event.shim_id),
            Cell::from(event.order_text()),
            Cell::from(&*event.ts),
            named(source.and_then(|source| source.host_id.as_ref())),
            named(source.and_then(|source| source.proc_id.as_ref())),
            named(fields.agent_id.as_ref()),
            named(fields.client.as_ref()),
            named(fields.env.as_ref()),
            named(fields.principal.as_ref()),
            json_text(fields.workload),
            time("run_start", |run| &run.started_at),
            time("run_end", |run| &run.ended_at),
            of_run(|run| &run.status),
            of_run(|run| &run.mode),
            of_policy(|policy| &policy.policy_id),
            of_policy(|policy| &policy.policy_version),
            of_policy(|policy| &policy.policy_hash),
            json_text(run.and_then(|run| run.meta)),
            summary.and_then(|it| it.calls_total).into(),
            summary.and_then(|it| it.calls_allowed).into(),
            summary.and_then(|it| it.calls_blocked).into(),
            summary.and_then(|it| it.calls_throttled).into(),
            summary.and_then(|it| it.errors_total).into(),
            summary.and_then(|it| it.duration_ms).into(),
            event.seq.into(),
            false.into(),
        ],
    )
}

fn named<'a>(text: Option<&'a Text<'_>>) -> Cell<'a> {
    text.map(|text| name(&text.0)).into()
}

/// Returns a JSON value as its producer wrote it, and no text for `null`.
fn json_text(value: Option<&RawValue>) -> Cell<'_> {
    value.map(RawValue::get).filter(|text| *text != "null").into()
}

/// Returns a number of milliseconds or bytes without its fraction.
fn whole(number: &Number) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
    // Rounded up: producers in other languages may write any number, and a duration is not zero.
    number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default().ceil() as u64)
}

/// The fields that identify an event. The types of the others do not matter.
#[derive(Debug, Deserialize)]
pub(super) struct IdentityFields {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) ts: String,
    pub(super) run_id: String,
    #[serde(default)]
    pub(super) seq: Value,
    #[serde(default)]
    pub(super) source: Value,
}

/// A text that is a part of the line unless it has escapes.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        // Not `Cow`, which serde copies within an `Option`: most texts are parts of the line.
        deserializer.deserialize_str(TextVisitor)
    }
}

/// All fields of an event that the ledger reads, whatever its type. What most events lack is boxed, because events are moved.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Fields<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) ts: Text<'a>,
    pub(super) run_id: Text<'a>,
    pub(super) seq: Option<u64>,
    pub(super) agent_id: Option<Text<'a>>,
    pub(super) client: Option<Text<'a>>,
    pub(super) env: Option<Text<'a>>,
    pub(super) source: Option<Source<'a>>,
    pub(super) principal: Option<Text<'a>>,
    pub(super) workload: Option<&'a RawValue>,
    pub(super) run: Option<Box<Run<'a>>>,
    pub(super) call: Option<Call<'a>>,
    pub(super) decision: Option<Box<Decision<'a>>>,
    pub(super) status: Option<Text<'a>>,
    pub(super) latency_ms: Option<Number>,
    pub(super) bytes_out: Option<Number>,
    pub(super) preview: Option<Preview<'a>>,
    pub(super) error: Option<ErrorFields<'a>>,
    pub(super) hint: Option<Box<Hint<'a>>>,
    pub(super) policy: Option<Box<Policy<'a>>>,
}

impl Fields<'_> {
    /// Returns the fields that are the same for all events of a source.
    pub(super) fn identity(&self) -> ([Option<&str>; 6], Option<&str>) {
        let source = self.source.as_ref();
        let texts = [
            source.and_then(|source| source.host_id.as_ref()),
            source.and_then(|source| source.proc_id.as_ref()),
            self.agent_id.as_ref(),
            self.client.as_ref(),
            self.env.as_ref(),
            self.principal.as_ref(),
        ];
        (texts.map(|text| text.map(|text| &*text.0)), self.workload.map(RawValue::get))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Source<'a> {
    pub(super) host_id: Option<Text<'a>>,
    pub(super) proc_id: Option<Text<'a>>,
    pub(super) shim_id: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Run<'a> {
    pub(super) started_at: Option<Text<'a>>,
    pub(super) ended_at: Option<Text<'a>>,
    pub(super) mode: Option<Text<'a>>,
    pub(super) policy: Option<Box<Policy<'a>>>,
    pub(super) meta: Option<&'a RawValue>,
    pub(super) status: Option<Text<'a>>,
    pub(super) summary: Option<Summary>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Summary {
    pub(super) calls_total: Option<u64>,
    pub(super) calls_allowed: Option<u64>,
    pub(super) calls_blocked: Option<u64>,
    pub(super) calls_throttled: Option<u64>,
    pub(super) errors_total: Option<u64>,
    pub(super) duration_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Call<'a> {
    pub(super) call_id: Text<'a>,
    pub(super) server_name: Option<Text<'a>>,
    pub(super) tool_name: Option<Text<'a>>,
    pub(super) args_hash: Option<Text<'a>>,
    pub(super) transport: Option<Text<'a>>,
    pub(super) bytes_in: Option<Number>,
    pub(super) preview: Option<Preview<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Preview<'a> {
    pub(super) truncated: Option<bool>,
    pub(super) args_preview: Option<Text<'a>>,
    pub(super) result_preview: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Decision<'a> {
    pub(super) action: Option<Text<'a>>,
    pub(super) rule_id: Option<Text<'a>>,
    pub(super) explain: Option<Explain<'a>>,
    pub(super) policy: Option<Box<Policy<'a>>>,
    pub(super) hint: Option<Box<Hint<'a>>>,
    pub(super) observed: Option<Observed<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Explain<'a> {
    pub(super) reason_code: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Observed<'a> {
    pub(super) action: Option<Text<'a>>,
    pub(super) rule_id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ErrorFields<'a> {
    pub(super) class: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Hint<'a> {
    pub(super) hint_text: Option<Text<'a>>,
    pub(super) hint_kind: Option<Text<'a>>,
    pub(super) suggested_args: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Policy<'a> {
    pub(super) policy_id: Option<Text<'a>>,
    pub(super) policy_version: Option<Text<'a>>,
    pub(super) policy_hash: Option<Text<'a>>,
    /// The rules themselves, which producers may add.
    pub(super) rules: Option<&'a RawValue>,
}
