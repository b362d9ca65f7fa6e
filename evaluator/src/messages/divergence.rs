//! The first step at which the two sides differ in meaning, and by more than noise where that is known. Why they do is for the cause.

use counterproof_artifact::evaluation::{Divergence, DivergenceKind};
use counterproof_artifact::{Event, EventBody, Side};

use crate::diff::Differences;
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::pointers::{at, output_pointers, row_pointers};
use crate::load::{Artifact, LoadedAnswer};
use crate::messages;
use crate::values::text;

/// The first divergence of two artifacts, if they diverge.
pub fn first_divergence(baseline: &Artifact, new: &Artifact, differences: Option<&Differences>) -> Option<Divergence> {
    if let (Some(old), Some(other), Some(differences)) = (baseline.answer(), new.answer(), differences) {
        return of_events(old, other, &differences.events)
            .or_else(|| of_actions(old, other, differences))
            .or_else(|| of_outputs(differences));
    }
    let failed = |side: Side, artifact: &Artifact| {
        artifact.failure().map(|loaded| (side, format!("{side}: {}", messages::failure(&loaded.failure))))
    };
    let failures: Vec<_> = [failed(Side::Baseline, baseline), failed(Side::New, new)].into_iter().flatten().collect();
    if failures.is_empty() {
        return None;
    }
    let pointers = failures.iter().map(|(side, _)| at(*side, "/runner_failure".to_owned())).collect();
    let messages: Vec<_> = failures.into_iter().map(|(_, message)| message).collect();
    Some(Divergence { kind: DivergenceKind::RunnerError, pointers, message: messages.join("; ") })
}

fn of_events(baseline: &LoadedAnswer, new: &LoadedAnswer, rows: &[EventRow]) -> Option<Divergence> {
    let row = rows.iter().find(|row| row.counts())?;
    let (events, index, loaded) = match row.row {
        Row::Removed(index) => (&baseline.answer.events, index, baseline),
        Row::Both { new: index, .. } | Row::Added(index) => (&new.answer.events, index, new),
    };
    let event = &events[index];
    let name = step_name(event, loaded);
    let (kind, message) = match row.row {
        Row::Both { .. } if row.moved => (sequence_kind(event), format!("{name}: {}", messages::moved(&row.changes))),
        Row::Both { .. } => (changed_kind(event), format!("{name}: {}", messages::changes(&row.changes))),
        Row::Removed(_) => (sequence_kind(event), format!("{name} only in baseline")),
        Row::Added(_) => (sequence_kind(event), format!("{name} only in new")),
    };
    Some(Divergence { kind, pointers: row_pointers("/events", row.row), message })
}

/// A step in words: the tool of a call or a result, the type of anything else.
pub(crate) fn step_name(event: &Event, loaded: &LoadedAnswer) -> String {
    match &event.body {
        EventBody::ToolCall(call) => format!("call of {}", text::one_line(&call.tool, 60)),
        EventBody::ToolResult(result) => {
            let call = loaded.index.call(&loaded.answer.events, &result.call_id);
            let tool = call.map_or("an unknown call", |call| call.tool.as_str());
            format!("result of {}", text::one_line(tool, 60))
        }
        EventBody::Retrieval(found) => format!("retrieval of “{}”", text::one_line(&found.query, 60)),
        EventBody::FinalOutput(_) => "final output".to_owned(),
        EventBody::Unknown { kind, .. } => format!("event {}", text::one_line(kind, 60)),
    }
}

const fn changed_kind(event: &Event) -> DivergenceKind {
    match event.body {
        EventBody::ToolCall(_) => DivergenceKind::ToolArgs,
        EventBody::ToolResult(_) => DivergenceKind::ToolResult,
        EventBody::Retrieval(_) => DivergenceKind::Retrieval,
        EventBody::FinalOutput(_) => DivergenceKind::FinalOutput,
        EventBody::Unknown { .. } => DivergenceKind::OtherEvent,
    }
}

const fn sequence_kind(event: &Event) -> DivergenceKind {
    match event.body {
        EventBody::ToolCall(_) | EventBody::ToolResult(_) => DivergenceKind::ToolSequence,
        _ => changed_kind(event),
    }
}

fn of_actions(baseline: &LoadedAnswer, new: &LoadedAnswer, differences: &Differences) -> Option<Divergence> {
    let row = differences.actions.iter().find(|row| row.counts())?;
    Some(Divergence {
        kind: DivergenceKind::ProposedAction,
        pointers: row_pointers("/proposed_actions", row.row),
        message: messages::action(row, &baseline.answer.proposed_actions, &new.answer.proposed_actions),
    })
}

fn of_outputs(differences: &Differences) -> Option<Divergence> {
    if !differences.output_counts() {
        return None;
    }
    let pointers = output_pointers();
    Some(Divergence { kind: DivergenceKind::FinalOutput, pointers, message: messages::output(&differences.output) })
}
