//! The first divergence of two artifacts, with its message.

use counterproof_artifact::evaluation::{Divergence, DivergenceKind};
use counterproof_artifact::{Event, EventBody, Side, Sides};

use super::{action, changes, failure, moved, output};
use crate::diff::rows::{output_pointers, row_pointers, side_pointer};
use crate::diff::{Differences, EventRow, FirstDifference, Row};
use crate::load::case_input::{self, Speaker};
use crate::load::{Artifact, LoadedAnswer};
use crate::values::text;

/// Characters of a name within a step.
const NAME_LENGTH: usize = 60;

/// Returns the first divergence of two artifacts: the first difference of two answers that is not noise, or the failures.
pub fn first_divergence(baseline: &Artifact, new: &Artifact, differences: Option<&Differences>) -> Option<Divergence> {
    match (baseline.answer(), new.answer(), differences) {
        (Some(old), Some(other), Some(differences)) => answer_divergence(old, other, differences),
        _ => failure_divergence(baseline, new),
    }
}

fn answer_divergence(baseline: &LoadedAnswer, new: &LoadedAnswer, differences: &Differences) -> Option<Divergence> {
    Some(match differences.first(Sides::new(baseline, new))? {
        FirstDifference::Event(row) => event_divergence(baseline, new, row),
        FirstDifference::Action(row) => Divergence {
            kind: DivergenceKind::ProposedAction,
            pointers: row_pointers("/proposed_actions", row.row),
            message: action(row, &baseline.answer.proposed_actions, &new.answer.proposed_actions),
        },
        FirstDifference::Output(change) => {
            Divergence { kind: DivergenceKind::FinalOutput, pointers: output_pointers(), message: output(change) }
        }
    })
}

fn failure_divergence(baseline: &Artifact, new: &Artifact) -> Option<Divergence> {
    let sides = [(Side::Baseline, baseline), (Side::New, new)];
    let failures: Vec<_> = sides.into_iter().filter_map(|(side, artifact)| Some((side, artifact.failure()?))).collect();
    if failures.is_empty() {
        return None;
    }
    let pointers = failures.iter().map(|(side, _)| side_pointer(*side, "/runner_failure".to_owned())).collect();
    let messages: Vec<_> = failures.iter().map(|(side, it)| format!("{side}: {}", failure(&it.failure))).collect();
    Some(Divergence { kind: DivergenceKind::RunnerError, pointers, message: messages.join("; ") })
}

fn event_divergence(baseline: &LoadedAnswer, new: &LoadedAnswer, row: &EventRow) -> Divergence {
    let (loaded, index) = match row.row {
        Row::Removed(index) => (baseline, index),
        Row::Both { new: index, .. } | Row::Added(index) => (new, index),
    };
    let event = &loaded.answer.events[index];
    let name = step_name(event, loaded);
    let (kind, message) = match row.row {
        Row::Both { .. } if row.moved => (sequence_kind(event), format!("{name}: {}", moved(&row.changes))),
        Row::Both { .. } => (changed_kind(event), format!("{name}: {}", changes(&row.changes))),
        Row::Removed(_) => (sequence_kind(event), format!("{name} only in baseline")),
        Row::Added(_) => (sequence_kind(event), format!("{name} only in new")),
    };
    Divergence { kind, pointers: row_pointers("/events", row.row), message }
}

/// Names a step: a call or a result by its tool, any other event by its type.
pub fn step_name(event: &Event, loaded: &LoadedAnswer) -> String {
    match &event.body {
        EventBody::ToolCall(call) => format!("call of {}", text::one_line(&call.tool, NAME_LENGTH)),
        EventBody::ToolResult(result) => {
            let call = loaded.index.call(&loaded.answer.events, &result.call_id);
            let tool = call.map_or("an unknown call", |call| call.tool.as_str());
            format!("result of {}", text::one_line(tool, NAME_LENGTH))
        }
        EventBody::Retrieval(found) => format!("retrieval of “{}”", text::one_line(&found.query, NAME_LENGTH)),
        EventBody::FinalOutput(_) => "final output".to_owned(),
        EventBody::Unknown { kind, .. } => match case_input::speaker(event) {
            Some(Speaker::User) => "message of the user".to_owned(),
            Some(Speaker::Assistant) => "message of the agent".to_owned(),
            None => format!("event {}", text::one_line(kind, NAME_LENGTH)),
        },
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
