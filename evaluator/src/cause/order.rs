//! Two writes that changed places: each side makes both, with the same arguments, and in the other order.

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Side, Sides};

use super::root_cause::{CauseCode, CauseDescription};
use super::walk::{Effect, Inquiry, failed_on_one_side};
use crate::diff::align::Row;
use crate::judge::outcomes::Outcomes;
use crate::judge::writes::{self, Write};
use crate::messages::target;
use crate::values::text;

/// Maximum number of characters of the arguments of a write in a message.
const ARGUMENTS_LENGTH: usize = 60;

/// Two writes that changed places. On new, `earlier` comes before `later`.
pub(super) struct ChangedOrder<'a> {
    earlier: Sides<Write<'a>>,
    later: Sides<Write<'a>>,
}

/// Finds two writes that changed places, if the order explains the effect: two writes to the same thing, of which the last one
/// decides what holds, or any two where nothing else is left to explain it.
pub(super) fn find<'a>(inquiry: &Inquiry<'a>, effect: Effect, is_explained: bool) -> Option<ChangedOrder<'a>> {
    let outcomes = inquiry.answers().map(Outcomes::new);
    let sides = Sides::from_fn(|side| {
        let all = writes::of_side(side, inquiry.side(side).loaded, outcomes.get(side), inquiry.differences);
        all.into_iter().filter(|write| !is_noise(inquiry, side, write)).collect::<Vec<_>>()
    });
    let pairs = writes::equal_pairs(&sides, inquiry.differences);
    let pairs: Vec<_> = pairs.iter().map(|pair| writes::of_pair(&sides, pair)).collect();
    let swapped = pairs.iter().enumerate().flat_map(|(index, second)| {
        pairs[..index]
            .iter()
            .filter(move |first| writes::changed_places(**first, *second))
            .map(move |it| (*it, *second))
    });
    let is_only_outcome = matches!(effect, Effect::Action(row) if is_only_outcome(inquiry, row));
    let explains = |(first, second): &(Sides<&Write<'_>>, Sides<&Write<'_>>)| {
        let is_dependent = first.baseline.is_on_same_thing(second.baseline);
        match effect {
            // With other values, or on one side only, the action itself is what differs.
            Effect::Action(row) => is_dependent && is_only_outcome && concerns(inquiry, row, first.new),
            _ => is_dependent || !is_explained,
        }
    };
    let (first, second) = swapped.into_iter().find(explains)?;
    let own = |pair: Sides<&Write<'a>>| pair.map(Write::clone);
    let is_in_order = first.new.events < second.new.events;
    let (earlier, later) = if is_in_order { (first, second) } else { (second, first) };
    Some(ChangedOrder { earlier: own(earlier), later: own(later) })
}

/// True if baseline orders the writes in several ways too.
fn is_noise(inquiry: &Inquiry<'_>, side: Side, write: &Write<'_>) -> bool {
    let row = |event: usize| &inquiry.differences.events[inquiry.provenance.counterparts.event(side, event).row];
    write.events.is_some_and(|(call, _)| row(call).noise)
}

/// True for an action of both sides with the same values, which took effect on one side and failed on the other.
fn is_only_outcome(inquiry: &Inquiry<'_>, row: usize) -> bool {
    let action = &inquiry.differences.actions[row];
    matches!(action.row, Row::Both { .. })
        && (action.changes.is_empty() || action.changes.are_only_reworded())
        && failed_on_one_side(inquiry).contains(&row)
}

/// True if an action is about the same thing as a write of new.
fn concerns(inquiry: &Inquiry<'_>, row: usize, write: &Write<'_>) -> bool {
    let Row::Both { new, .. } = inquiry.differences.actions[row].row else { return false };
    let params = &inquiry.new.loaded.answer.proposed_actions[new].params;
    target(params).is_some_and(|it| target(write.arguments) == Some(it))
}

impl ChangedOrder<'_> {
    pub(super) fn describe(&self, inquiry: &Inquiry<'_>) -> CauseDescription {
        let (earlier, later) = (&self.earlier.new, &self.later.new);
        let [first, second] = if earlier.tool == later.tool {
            [earlier, later].map(|write| format!("{} {}", tool(write.tool), arguments(write)))
        } else {
            [earlier, later].map(|write| tool(write.tool))
        };
        let outcomes = self.changed_outcomes(inquiry);
        let mut message = format!("{first} now before {second}");
        for outcome in &outcomes {
            message.push_str("; ");
            message.push_str(outcome);
        }
        let place = format!("{} before {}", tool(earlier.tool), tool(later.tool));
        CauseDescription {
            code: CauseCode::Order,
            place,
            shape: outcomes.join("; "),
            message,
            pointers: self.pointers(),
        }
    }

    pub(super) fn pointers(&self) -> Vec<SidePointer> {
        let of_side = |side: Side| {
            let calls = [&self.earlier, &self.later].map(|pair| pair.get(side).events);
            let mut calls: Vec<_> = calls.into_iter().flatten().map(|(call, _)| call).collect();
            calls.sort_unstable();
            calls.into_iter().map(move |call| SidePointer::new(side, format!("/events/{call}")))
        };
        Side::BOTH.into_iter().flat_map(of_side).collect()
    }

    /// The writes to the same thing that took effect on one side only: `pay: refused → done`.
    fn changed_outcomes(&self, inquiry: &Inquiry<'_>) -> Vec<String> {
        let mut rows: Vec<_> = failed_on_one_side(inquiry).into_iter().collect();
        rows.sort_unstable();
        let rows = rows.into_iter().filter(|row| concerns(inquiry, *row, &self.earlier.new));
        let outcomes = Outcomes::new(inquiry.new.loaded);
        let outcome = rows.filter_map(|row| {
            let Row::Both { new: index, .. } = inquiry.differences.actions[row].row else { return None };
            let action = &inquiry.new.loaded.answer.proposed_actions[index];
            let failed = outcomes.failed(action);
            let turned = if failed { "done → refused" } else { "refused → done" };
            Some(format!("{}: {turned}", tool(&action.tool_name)))
        });
        outcome.collect()
    }
}

fn tool(name: &str) -> String {
    text::one_line(name, 60)
}

fn arguments(write: &Write<'_>) -> String {
    let written = serde_json::to_string(write.arguments).unwrap_or_default();
    text::one_line(&written, ARGUMENTS_LENGTH)
}
