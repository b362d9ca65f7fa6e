//! Describes a cause: its code, the place and the shape that cases share, and a message with the values.

use counterproof_artifact::evaluation::{Judgement, SidePointer};
use counterproof_artifact::{Event, EventBody, Side};
use serde_json::Value;

use super::CauseCode;
use super::effect::{self, Effect};
use super::inquiry::Inquiry;
use crate::diff::actions::EvidenceChange;
use crate::diff::align::Row;
use crate::diff::json::{ChangeKind, JsonChange};
use crate::diff::pointers::row_pointers;
use crate::diff::steps::EventKind;
use crate::grounding::Holder;
use crate::judge::ReasonCode;
use crate::load::LoadedAnswer;
use crate::load::failed_result::has_failed;
use crate::load::payload::Payload;
use crate::messages;
use crate::messages::step_name;
use crate::values::text;
use crate::values::type_name;

/// A cause without the id of its cluster.
#[derive(Debug)]
pub(super) struct CauseDescription {
    pub(super) code: CauseCode,
    pub(super) place: String,
    /// Equal for changes of the same kind, whatever the values.
    pub(super) shape: String,
    pub(super) message: String,
    pub(super) pointers: Vec<SidePointer>,
}

/// The cause, where it is a row of the aligned events.
pub(super) fn of_event(inquiry: &Inquiry<'_>, row: usize) -> CauseDescription {
    let row = &inquiry.differences.events[row];
    let (side, index) = match row.row {
        Row::Both { new: index, .. } | Row::Added(index) => (Side::New, index),
        Row::Removed(index) => (Side::Baseline, index),
    };
    let loaded = inquiry.side(side).loaded;
    let event = &loaded.answer.events[index];
    let step = step_name(event, loaded);
    let tool = tool_of(event, loaded);
    let pointers = row_pointers("/events", row.row);
    let named =
        |code, place, shape, message| CauseDescription { code, place, shape, message, pointers: pointers.clone() };
    let first = row.changes.first();
    let alone = match row.row {
        Row::Both { .. } if row.moved && row.changes.is_empty() => Some("moved to another place"),
        Row::Both { .. } => None,
        Row::Added(_) => Some("only in new"),
        Row::Removed(_) => Some("only in baseline"),
    };
    let is_query = first.is_some_and(|change| change.pointer().ends_with("/query"));
    match (&event.body, alone) {
        (EventBody::ToolResult(_), None) if failed_only_here(inquiry, row.row) => {
            let error = loaded.payload(index).map(error_text).unwrap_or_default();
            let said =
                if error.is_empty() { String::new() } else { format!(": “{}”", text::one_line(&error, 120)) };
            let message = format!("{step}: failed, but succeeded on baseline{said}");
            named(CauseCode::ToolError, tool, without_digits(&text::one_line(&error, 80)), message)
        }
        (EventBody::ToolResult(_), None) => {
            let message = format!("{step}: {}", messages::changes(&row.changes));
            named(CauseCode::ToolResultChanged, place(&format!("{tool} result"), first), shape(first), message)
        }
        (EventBody::Retrieval(_), None) if !is_query => {
            let message = format!("{step}: {}", messages::changes(&row.changes));
            named(CauseCode::RetrievalChanged, place(&tool, first), shape(first), message)
        }
        (EventBody::ToolCall(_), None) if row.changes.are_form_only() => {
            let message = format!("{step}: {}", messages::changes(&row.changes));
            named(CauseCode::ArgumentForm, place(&tool, first), shape(first), message)
        }
        (EventBody::ToolCall(_), None) => arguments(inquiry, index).unwrap_or_else(|| {
            let message = format!("{step}: {}", messages::changes(&row.changes));
            named(CauseCode::Arguments, place(&tool, first), shape(first), message)
        }),
        (EventBody::Retrieval(_), None) => {
            let message = format!("{step}: {}", messages::changes(&row.changes));
            named(CauseCode::Arguments, place(&tool, first), shape(first), message)
        }
        (EventBody::ToolCall(_) | EventBody::ToolResult(_) | EventBody::Retrieval(_), Some(alone)) => {
            named(CauseCode::ToolChoice, tool, alone.to_owned(), format!("{step}: {alone}"))
        }
        (EventBody::FinalOutput(_), _) => {
            named(CauseCode::OutputOnly, tool, String::new(), messages::output(&inquiry.differences.output))
        }
        (EventBody::Unknown { .. }, alone) => {
            let what = alone.map_or_else(|| messages::changes(&row.changes), str::to_owned);
            named(CauseCode::EventChanged, place(&tool, first), shape(first), format!("{step}: {what}"))
        }
    }
}

/// The tool that an event is about, or what the event is.
fn tool_of(event: &Event, loaded: &LoadedAnswer) -> String {
    match &event.body {
        EventBody::ToolCall(call) => text::one_line(&call.tool, 60),
        EventBody::ToolResult(result) => {
            let call = loaded.index.call(&loaded.answer.events, &result.call_id);
            call.map_or_else(|| "an unknown call".to_owned(), |call| text::one_line(&call.tool, 60))
        }
        EventBody::Retrieval(_) => "retrieval".to_owned(),
        EventBody::FinalOutput(_) => "output".to_owned(),
        EventBody::Unknown { kind, .. } => text::one_line(kind, 60),
    }
}

/// The cause, where nothing on the path back from the effect differs: the effect itself.
pub(super) fn of_effect(inquiry: &Inquiry<'_>, effect: Effect) -> CauseDescription {
    match effect {
        Effect::Action(row) => of_action(inquiry, row),
        Effect::UngroundedCall(call) => arguments(inquiry, call)
            .unwrap_or_else(|| of_event(inquiry, inquiry.provenance.counterparts.event(Side::New, call).row)),
        Effect::Event(row) => of_event(inquiry, row),
        Effect::Output => {
            let same = if effect::any_step_differs(inquiry) { "" } else { "same steps, " };
            let pointers = Side::BOTH.map(|side| SidePointer { side, pointer: "/final_output/content".to_owned() });
            CauseDescription {
                code: CauseCode::OutputOnly,
                place: output_place(inquiry),
                shape: inquiry.verdict.as_str().to_owned(),
                message: format!("{same}different {}", messages::output(&inquiry.differences.output)),
                pointers: pointers.to_vec(),
            }
        }
    }
}

/// The output, with the expectations that it no longer meets: other words are one change, and a missing phrase is another.
fn output_place(inquiry: &Inquiry<'_>) -> String {
    let fell = inquiry.expectations.iter().filter(|result| {
        let (baseline, new) = (result.baseline.as_ref(), result.new.as_ref());
        new.is_some_and(Judgement::is_unmet) && !baseline.is_some_and(Judgement::is_unmet)
    });
    let mut codes: Vec<_> = fell.map(|result| result.code.as_str()).collect();
    codes.dedup();
    if codes.is_empty() { "output".to_owned() } else { format!("output ({})", codes.join(", ")) }
}

fn of_action(inquiry: &Inquiry<'_>, row: usize) -> CauseDescription {
    let row = &inquiry.differences.actions[row];
    let (old, new) = (&inquiry.baseline.loaded.answer.proposed_actions, &inquiry.new.loaded.answer.proposed_actions);
    let message = messages::action(row, old, new);
    let pointers = row_pointers("/proposed_actions", row.row);
    let named = |code, place, shape| CauseDescription {
        code,
        place,
        shape,
        message: message.clone(),
        pointers: pointers.clone(),
    };
    let (action, invented) = match row.row {
        Row::Both { new: index, .. } | Row::Added(index) => (&new[index], invented(inquiry, Holder::Action(index))),
        Row::Removed(index) => (&old[index], None),
    };
    let tool = text::one_line(&action.tool_name, 60);
    if let Some(invented) = invented {
        return invented;
    }
    let first = row.changes.first();
    let in_params = row.changes.iter().find(|change| field(change) == Some("params"));
    match (row.row, row.evidence) {
        (Row::Added(_), _) => named(CauseCode::ToolChoice, tool, "only in new".to_owned()),
        (Row::Removed(_), _) => named(CauseCode::ToolChoice, tool, "only in baseline".to_owned()),
        (Row::Both { .. }, EvidenceChange::Lost) => named(CauseCode::EvidenceLost, tool, String::new()),
        (Row::Both { .. }, _) if row.changes.are_form_only() => {
            named(CauseCode::ArgumentForm, place(&tool, first), shape(first))
        }
        (Row::Both { .. }, _) if in_params.is_some() => {
            named(CauseCode::Arguments, place(&tool, in_params), shape(in_params))
        }
        (Row::Both { .. }, _) => named(CauseCode::ModelUnexplained, place(&tool, first), shape(first)),
    }
}

/// The cause, where an argument of a call on new is ungrounded.
fn arguments(inquiry: &Inquiry<'_>, call: usize) -> Option<CauseDescription> {
    let holder = Holder::Call(call);
    let carried = || invented(inquiry, inquiry.provenance.new.action_of(holder)?);
    invented(inquiry, holder).or_else(carried)
}

fn invented(inquiry: &Inquiry<'_>, holder: Holder) -> Option<CauseDescription> {
    let found = inquiry.findings.fresh().find(|found| {
        found.holder == holder && found.code == ReasonCode::UngroundedArgument && !found.baseline_has_value
    })?;
    let finding = &found.finding;
    let answer = &inquiry.new.loaded.answer;
    let tool = match holder {
        Holder::Action(index) => answer.proposed_actions[index].tool_name.as_str(),
        Holder::Call(index) => EventKind::new(inquiry.new.loaded, index).tool,
    };
    let pointer = finding.pointers.last().map_or("", |place| &place.pointer);
    Some(CauseDescription {
        code: CauseCode::UngroundedArgument,
        place: format!("{}.{}", text::one_line(tool, 60), shared_name(pointer)),
        shape: String::new(),
        message: finding.message.clone(),
        pointers: finding.pointers.clone(),
    })
}

/// The field of an action that a change lies in, as in `/proposed_actions/0/params/amount`.
fn field(change: &JsonChange) -> Option<&str> {
    change.pointer().split('/').nth(3)
}

fn failed_only_here(inquiry: &Inquiry<'_>, row: Row) -> bool {
    let Row::Both { baseline, new } = row else { return false };
    has_failed(inquiry.new.loaded, new) && !has_failed(inquiry.baseline.loaded, baseline)
}

/// The error message in the payload of a failed result.
fn error_text(payload: Payload<'_>) -> String {
    let payload = payload.to_value();
    let said = ["error", "message", "detail"].iter().find_map(|field| payload.get(field)?.as_str());
    said.or(payload.as_str()).map_or_else(|| payload.to_string(), str::to_owned)
}

/// A path below a name without array indexes and without keys that contain data, so that cases share it.
pub(super) fn place(name: &str, change: Option<&JsonChange>) -> String {
    let below = change.map(|change| shared_name(change.pointer())).unwrap_or_default();
    if below.is_empty() { name.to_owned() } else { format!("{name}.{below}") }
}

fn shared_name(pointer: &str) -> String {
    let name = messages::field_path(pointer);
    let shared =
        |segment: &str| if segment.bytes().any(|byte| byte.is_ascii_digit()) { "*" } else { segment }.to_owned();
    name.split('.').map(shared).collect::<Vec<_>>().join(".")
}

/// The kind of the change, without the values.
pub(super) fn shape(change: Option<&JsonChange>) -> String {
    let Some(change) = change else { return String::new() };
    let values = (change.baseline.as_ref().map(|place| &place.value), change.new.as_ref().map(|place| &place.value));
    match (change.kind(), values) {
        (ChangeKind::Added, (_, Some(new))) => format!("added {}", type_name(new)),
        (ChangeKind::Removed, (Some(old), _)) => format!("removed {}", type_name(old)),
        (ChangeKind::Reordered, _) => "reordered".to_owned(),
        (_, (Some(Value::Number(old)), Some(Value::Number(new)))) => {
            let grew = new.as_f64().unwrap_or_default() > old.as_f64().unwrap_or_default();
            if grew { "number grew" } else { "number fell" }.to_owned()
        }
        // Flags that change in the same direction are the same change.
        (_, (Some(Value::Bool(old)), Some(Value::Bool(new)))) => format!("{old} became {new}"),
        (_, (Some(old), Some(new))) => format!("{} became {}", type_name(old), type_name(new)),
        _ => String::new(),
    }
}

/// The text with words that contain digits replaced, so that the same error about two orders has the same shape.
fn without_digits(text: &str) -> String {
    let word = |word: &str| if word.bytes().any(|byte| byte.is_ascii_digit()) { "*" } else { word }.to_owned();
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
