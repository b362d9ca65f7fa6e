//! The reasons for rows of events that differ, and which of these explain why an action failed.

use std::collections::HashSet;

use counterproof_artifact::evaluation::Reason;
use counterproof_artifact::{EventBody, Side};

use super::ReasonCode;
use super::side_pointers::pointer;
use super::verdict::Compared;
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::output::OutputChange;
use crate::diff::pointers::row_pointers;
use crate::judge::outcomes;
use crate::load::LoadedAnswer;
use crate::load::failed_result::has_failed;
use crate::load::refusal::refusal;
use crate::messages;
use crate::messages::step_name;

/// Splits the reasons into those that explain why an action failed on new and succeeded on baseline, and the others. With
/// repeated calls there may be no such row; the action then gets a reason of its own.
pub(super) fn refused_actions(compared: Compared<'_>, steps: Vec<Reason>) -> (Vec<Reason>, Vec<Reason>) {
    let (old, new) = (compared.baseline.loaded, compared.new.loaded);
    let newly = outcomes::newly_failed(old, new, &compared.differences.actions);
    // A row of a failed call is found by its pointer, because reasons do not keep their row.
    let places: HashSet<_> = newly.iter().flat_map(|action| &action.failed).map(|event| at_event(*event)).collect();
    let (mut refused, others): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| {
        ReasonCode::ToolError.is_code_of(step)
            && step.pointers.iter().any(|at| at.side == Side::New && places.contains(&at.pointer))
    });
    for action in &newly {
        let covers = |reason: &Reason, event: usize| reason.pointers.iter().any(|at| at.pointer == at_event(event));
        // The last result is reported: it is the outcome after all retries.
        let Some(&last) = action.failed.last() else { continue };
        if !action.failed.iter().any(|event| refused.iter().any(|reason| covers(reason, *event))) {
            let name = step_name(&new.answer.events[last], new);
            let pointers =
                vec![pointer(Side::Baseline, at_event(action.succeeded)), pointer(Side::New, at_event(last))];
            let message = format!("{name}: {}, but succeeded on baseline", how_failed(new, last));
            refused.push(ReasonCode::ToolError.reason(message, pointers));
        }
    }
    (refused, others)
}

/// Returns how the call of a failed result failed: a policy refused it, or it failed by itself.
fn how_failed(loaded: &LoadedAnswer, index: usize) -> String {
    refusal(loaded, index).unwrap_or_else(|| "failed".to_owned())
}

fn at_event(index: usize) -> String {
    format!("/events/{index}")
}

/// The events that are paired, by side and index.
pub(super) fn paired_events(rows: &[EventRow]) -> HashSet<(Side, usize)> {
    let pairs = rows.iter().filter_map(|row| match row.row {
        Row::Both { baseline, new } => Some([(Side::Baseline, baseline), (Side::New, new)]),
        Row::Removed(_) | Row::Added(_) => None,
    });
    pairs.flatten().collect()
}

/// The reason for a row of events that differs; `None` where another reason covers it.
pub(super) fn event_change(row: &EventRow, compared: Compared<'_>, paired: &HashSet<(Side, usize)>) -> Option<Reason> {
    let (old, new) = (compared.baseline.loaded, compared.new.loaded);
    let (loaded, index) = match row.row {
        Row::Removed(index) => (old, index),
        Row::Both { new: index, .. } | Row::Added(index) => (new, index),
    };
    let event = &loaded.answer.events[index];
    let name = step_name(event, loaded);
    let (code, message) = match (&event.body, row.row) {
        // A changed final output has a reason of its own.
        (EventBody::FinalOutput(_), _) if compared.differences.output != OutputChange::Same => return None,
        (EventBody::ToolResult(_), Row::Added(_)) if has_failed(new, index) => {
            (ReasonCode::ToolError, format!("{name}: {}; baseline has no such call", how_failed(new, index)))
        }
        (EventBody::ToolResult(result), Row::Added(_) | Row::Removed(_)) => {
            let side = if matches!(row.row, Row::Added(_)) { Side::New } else { Side::Baseline };
            let call = loaded.index.call_position(&result.call_id);
            // The reason for the added or removed call covers its result.
            if !call.is_some_and(|call| paired.contains(&(side, call))) {
                return None;
            }
            (ReasonCode::ToolResultChanged, format!("{name}: only in {side}"))
        }
        (EventBody::ToolResult(_), Row::Both { .. }) if row.changes.is_empty() => return None,
        (EventBody::ToolResult(_), Row::Both { baseline, .. }) => {
            match (has_failed(old, baseline), has_failed(new, index)) {
                (false, true) => {
                    (ReasonCode::ToolError, format!("{name}: {}, but succeeded on baseline", how_failed(new, index)))
                }
                (true, false) => {
                    (ReasonCode::ToolErrorGone, format!("{name}: failed on baseline, but succeeded on new"))
                }
                _ => (ReasonCode::ToolResultChanged, format!("{name}: {}", messages::changes(&row.changes))),
            }
        }
        (EventBody::ToolCall(_), Row::Added(_)) => (ReasonCode::ToolCallAdded, format!("{name}: only in new")),
        (EventBody::ToolCall(_), Row::Removed(_)) => (ReasonCode::ToolCallRemoved, format!("{name}: only in baseline")),
        (EventBody::ToolCall(_), Row::Both { .. }) if row.moved => {
            (ReasonCode::ToolCallMoved, format!("{name}: {}", messages::moved(&row.changes)))
        }
        (EventBody::ToolCall(_), Row::Both { .. }) => {
            (ReasonCode::ToolArgsChanged, format!("{name}: {}", messages::changes(&row.changes)))
        }
        (EventBody::Retrieval(_), Row::Both { .. }) if row.moved => {
            (ReasonCode::RetrievalChanged, format!("{name}: {}", messages::moved(&row.changes)))
        }
        (EventBody::Retrieval(_), Row::Both { .. }) => {
            (ReasonCode::RetrievalChanged, format!("{name}: {}", messages::changes(&row.changes)))
        }
        (EventBody::Retrieval(_), Row::Added(_)) => (ReasonCode::RetrievalChanged, format!("{name}: only in new")),
        (EventBody::Retrieval(_), Row::Removed(_)) => {
            (ReasonCode::RetrievalChanged, format!("{name}: only in baseline"))
        }
        (_, Row::Both { .. }) if row.moved => {
            (ReasonCode::EventChanged, format!("{name}: {}", messages::moved(&row.changes)))
        }
        (_, Row::Both { .. }) => (ReasonCode::EventChanged, format!("{name}: {}", messages::changes(&row.changes))),
        (_, Row::Added(_)) => (ReasonCode::EventChanged, format!("{name}: only in new")),
        (_, Row::Removed(_)) => (ReasonCode::EventChanged, format!("{name}: only in baseline")),
    };
    Some(code.reason(message, row_pointers("/events", row.row)))
}
