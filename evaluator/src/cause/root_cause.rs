//! Names the root cause of the difference between two artifacts: its code, the place and shape that cases share, and a message with the
//! values. Cases with the same cause form one cluster.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{CaseEvaluation, Cause, Cluster, ExpectationResult, Judgement, SidePointer};
use counterproof_artifact::{Event, EventBody, Sha256Digest, Side, Sides};
use serde_json::Value;

use super::order;
use super::walk::{self, Effect, FoundDifference, Inquiry};
use crate::diff::actions::EvidenceChange;
use crate::diff::align::Row;
use crate::diff::events::EventKind;
use crate::diff::json::{self, ChangeKind, JsonChange, JsonChanges};
use crate::diff::rows::{output_pointers, row_pointers};
use crate::grounding::Holder;
use crate::judge::{ReasonCode, code_enum};
use crate::load::call_status::has_failed;
use crate::load::case_input::{self, CaseInput, Speaker};
use crate::load::payload::Payload;
use crate::load::{Artifact, LoadedAnswer, LoadedFailure};
use crate::messages::{self, step_name};
use crate::values::{text, type_name};

/// Returns the cause of the difference between two answers; `None` if nothing differs.
pub(crate) fn of_answers(inquiry: Inquiry<'_>) -> Option<Cause> {
    let effect = walk::choose(&inquiry)?;
    // Before the walk: with another input, every later difference may follow from it.
    if case_input::is_same(inquiry.inputs.baseline, inquiry.inputs.new) == Some(false) {
        return Some(input_changed(&inquiry, effect));
    }
    let walked = walk::back(&inquiry, effect);
    if let Some(order) = order::find(&inquiry, effect, walked.is_some()) {
        let mut path = vec![effect.pointer(&inquiry)];
        path.extend(order.pointers());
        path.dedup();
        return Some(cause(order.describe(&inquiry), path));
    }
    let named = match &walked {
        Some(FoundDifference { place, named: Some((side, value)), .. }) => of_turn(&inquiry, *place, *side, value),
        Some(found) => of_event(&inquiry, found.place),
        None => of_effect(&inquiry, effect),
    };
    let path = walked.map_or_else(|| vec![effect.pointer(&inquiry)], |found| found.path);
    Some(cause(named, path))
}

/// Returns the cause of a case with a runner error.
pub(crate) fn of_failures(baseline: &Artifact, new: &Artifact) -> Option<Cause> {
    let failed: Vec<(Side, &LoadedFailure)> = [(Side::New, new), (Side::Baseline, baseline)]
        .into_iter()
        .filter_map(|(side, artifact)| Some((side, artifact.failure()?)))
        .collect();
    let (side, first) = failed.first()?;
    let failure = &first.failure;
    let status = failure.status.map(|status| format!(" {}", status.get())).unwrap_or_default();
    let pointers: Vec<_> = failed.iter().map(|(side, _)| SidePointer::new(*side, "/runner_failure")).collect();
    let named = CauseDescription {
        code: CauseCode::RunnerFailure,
        place: format!("{}{status}", failure.class),
        shape: format!("{} of {side}", failure.error_name.as_deref().unwrap_or_default()),
        message: format!("runner error on {side}: {}", messages::failure(failure)),
        pointers: pointers.clone(),
    };
    Some(cause(named, pointers))
}

/// States how the inputs of the two sides differ, as far as the requests are stored.
pub(crate) fn input_changed_message(inputs: Sides<&CaseInput<'_>>) -> String {
    let changes = input_changes(inputs);
    let what = if changes.is_empty() { String::new() } else { format!(": {}", messages::changes(&changes)) };
    format!("the two sides received different input{what}")
}

fn input_changes(inputs: Sides<&CaseInput<'_>>) -> JsonChanges {
    match (inputs.baseline.request(), inputs.new.request()) {
        (Some(old), Some(new)) => json::diff(old, new),
        _ => JsonChanges::default(),
    }
}

fn input_changed(inquiry: &Inquiry<'_>, effect: Effect) -> Cause {
    let changes = input_changes(inquiry.inputs);
    let pointers = Side::BOTH.into_iter().filter(|side| inquiry.inputs.get(*side).request().is_some());
    let pointers: Vec<_> = pointers.map(|side| SidePointer::new(side, "/request_asset_href")).collect();
    let named = CauseDescription {
        code: CauseCode::InputChanged,
        place: place("input", changes.first()),
        shape: shape(changes.first()),
        message: input_changed_message(inquiry.inputs),
        pointers: pointers.clone(),
    };
    let mut path = vec![effect.pointer(inquiry)];
    path.extend(pointers);
    cause(named, path)
}

fn cause(named: CauseDescription, path: Vec<SidePointer>) -> Cause {
    // A change of form is one change, whatever tools it shows in.
    let place = if named.code == CauseCode::ArgumentForm { "" } else { &named.place };
    // NUL cannot occur in a code, and keeps the parts apart.
    let identity = [named.code.as_str(), place, &named.shape].join("\0");
    Cause {
        code: named.code.as_str().to_owned(),
        place: text::one_line(&named.place, 120),
        message: named.message,
        pointers: named.pointers,
        path,
        cluster: Sha256Digest::from_bytes(identity.as_bytes()).short(),
    }
}

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

/// The cause, if it is a row of the aligned events.
pub(super) fn of_event(inquiry: &Inquiry<'_>, row: usize) -> CauseDescription {
    let row = &inquiry.differences.events[row];
    let (side, index) = row.row.named_by();
    let loaded = inquiry.side(side).loaded;
    let event = &loaded.answer.events[index];
    let step = step_name(event, loaded);
    let tool = tool_of(event, loaded);
    let pointers = row_pointers("/events", row.row);
    let named =
        |code, place, shape, message| CauseDescription { code, place, shape, message, pointers: pointers.clone() };
    let first = row.changes.first();
    let changed = |code, name: &str| {
        let message = format!("{step}: {}", messages::changes(&row.changes));
        named(code, place(name, first), shape(first), message)
    };
    let alone = match row.row {
        Row::Both { .. } if row.moved && row.changes.is_empty() => Some("moved to another place"),
        Row::Both { .. } => None,
        Row::Added(_) => Some("only in new"),
        Row::Removed(_) => Some("only in baseline"),
    };
    // Another query is a choice of the agent; other documents for the same query are not.
    let is_query = first.is_some_and(|change| change.pointer().ends_with("/query"));
    match (&event.body, alone) {
        (EventBody::ToolResult(_), None) if failed_only_here(inquiry, row.row) => {
            let error = loaded.payload(index).map(error_text).unwrap_or_default();
            let said =
                if error.is_empty() { String::new() } else { format!(": “{}”", text::one_line(&error, 120)) };
            let message = format!("{step}: failed, but succeeded on baseline{said}");
            named(CauseCode::ToolError, tool, without_digits(&text::one_line(&error, 80)), message)
        }
        (EventBody::ToolResult(_), None) => changed(CauseCode::ToolResultChanged, &format!("{tool} result")),
        (EventBody::Retrieval(_), None) if !is_query => changed(CauseCode::RetrievalChanged, &tool),
        (EventBody::ToolCall(_), None) if row.changes.are_form_only() => changed(CauseCode::ArgumentForm, &tool),
        (EventBody::ToolCall(_), None) => {
            arguments(inquiry, index).unwrap_or_else(|| changed(CauseCode::Arguments, &tool))
        }
        (EventBody::Retrieval(_), None) => changed(CauseCode::Arguments, &tool),
        (EventBody::ToolCall(_) | EventBody::ToolResult(_) | EventBody::Retrieval(_), Some(alone)) => {
            named(CauseCode::ToolChoice, tool, alone.to_owned(), format!("{step}: {alone}"))
        }
        (EventBody::FinalOutput(_), _) => {
            named(CauseCode::OutputOnly, tool, String::new(), messages::output(&inquiry.differences.output))
        }
        (EventBody::Unknown { .. }, None) if case_input::speaker(event) == Some(Speaker::User) => {
            changed(CauseCode::InputChanged, USER_TURN)
        }
        (EventBody::Unknown { .. }, Some(alone)) if case_input::speaker(event) == Some(Speaker::User) => {
            named(CauseCode::InputChanged, USER_TURN.to_owned(), alone.to_owned(), format!("{step}: {alone}"))
        }
        (EventBody::Unknown { .. }, None) => changed(CauseCode::EventChanged, &tool),
        (EventBody::Unknown { .. }, Some(alone)) => {
            named(CauseCode::EventChanged, place(&tool, first), shape(first), format!("{step}: {alone}"))
        }
    }
}

/// The cause, if only the user of one side named a value.
fn of_turn(inquiry: &Inquiry<'_>, row: usize, side: Side, value: &Value) -> CauseDescription {
    // The words of an output have the punctuation around them.
    let value = match value {
        Value::String(text) => text::short_value(&text.trim_matches(|c: char| !c.is_alphanumeric()).into()),
        value => text::short_value(value),
    };
    CauseDescription {
        code: CauseCode::InputChanged,
        place: USER_TURN.to_owned(),
        shape: String::new(),
        message: format!("the user named {value} on {side} only"),
        pointers: row_pointers("/events", inquiry.differences.events[row].row),
    }
}

const USER_TURN: &str = "message of the user";

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

/// The cause, if nothing on the path back from the effect differs: the effect itself.
pub(super) fn of_effect(inquiry: &Inquiry<'_>, effect: Effect) -> CauseDescription {
    match effect {
        Effect::Action(row) => of_action(inquiry, row),
        Effect::UngroundedCall(call) => arguments(inquiry, call)
            .unwrap_or_else(|| of_event(inquiry, inquiry.provenance.counterparts.event(Side::New, call).row)),
        Effect::Event(row) => of_event(inquiry, row),
        Effect::Output => {
            let same = if walk::any_step_differs(inquiry) { "" } else { "same steps, " };
            CauseDescription {
                code: CauseCode::OutputOnly,
                place: output_place(inquiry),
                shape: inquiry.verdict.as_str().to_owned(),
                message: format!("{same}different {}", messages::output(&inquiry.differences.output)),
                pointers: output_pointers(),
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
    let code = |result: &ExpectationResult| match result.turn {
        Some(turn) => format!("turn {}: {}", turn.get(), result.code),
        None => result.code.clone(),
    };
    let mut codes: Vec<_> = fell.map(code).collect();
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

/// The cause, if an argument of a call on new is ungrounded.
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

code_enum! {
    /// The code of a root cause: what the earliest difference is.
    pub CauseCode {
        InputChanged "input-changed" "The two sides received different input."
        RetrievalChanged "retrieval-changed" "The same query found other documents."
        ToolResultChanged "tool-result-changed" "The same call returned another result."
        ToolError "tool-error" "A call failed on new and not on baseline."
        Order "order" "Two writes changed places."
        ToolChoice "tool-choice" "A call or an action is on one side only, or a step is at another position."
        Arguments "arguments" "A call or a query has other arguments, although everything they came from is the same."
        ArgumentForm "argument-form" "A call or an action has the same values in another form, such as a list written as text."
        UngroundedArgument "ungrounded-argument" "A call or an action has another argument, and its value is ungrounded."
        EvidenceLost "evidence-lost" "An action lost its evidence, and nothing else differs."
        EventChanged "event-changed" "An event of an unknown type differs."
        OutputOnly "output-only" "Only the final output differs."
        RunnerFailure "runner-failure" "A side has a runner error."
        ModelUnexplained "model-unexplained" "An action differs, although everything it is based on is the same."
    }
}

/// The place that the cases of a cluster share.
fn shared_place(cause: &Cause) -> String {
    // A change of form shows in many tools, so its cases share no place.
    let is_form = cause.code == CauseCode::ArgumentForm.as_str();
    if is_form { "arguments".to_owned() } else { cause.place.clone() }
}

/// Returns the clusters, largest first; of equally large ones, the one with the earlier case first.
pub(crate) fn clusters(cases: &[CaseEvaluation]) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for case in cases {
        let Some(cause) = &case.cause else { continue };
        let shared_place = *places.entry(&cause.cluster).or_insert_with(|| {
            clusters.push(Cluster {
                id: cause.cluster.clone(),
                code: cause.code.clone(),
                place: shared_place(cause),
                message: cause.message.clone(),
                case_ids: Vec::new(),
            });
            clusters.len() - 1
        });
        clusters[shared_place].case_ids.push(case.case_id.clone());
    }
    // Stable, so that equally large clusters keep the order of their first cases.
    clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.case_ids.len()));
    clusters
}
