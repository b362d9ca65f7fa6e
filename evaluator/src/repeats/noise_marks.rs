//! Marks the differences of the shown pair that are noise, by the places they are at. The first divergence and the cause are
//! searched among the unmarked ones.

use std::collections::HashMap;

use counterproof_artifact::Sides;
use counterproof_artifact::evaluation::SidePointer;

use super::answer_places::AnswerPlaces;
use super::labels;
use super::place::Place;
use super::undetected;
use crate::diff::actions::ActionRow;
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::output::OutputChange;
use crate::diff::pointers;
use crate::diff::{Differences, WithEvidence};
use crate::rules::Rules;

/// Maximum number of reported pointers to noise in a case.
const MAX_POINTERS: usize = 200;

/// Marks the rows and the output of the pair whose differing places are all noise; marks none if nothing else would remain.
/// `is_noise` returns `None` for places at which no runs differ.
pub(super) fn mark(
    found: &mut Differences,
    sides: Sides<WithEvidence<'_>>,
    rules: &Rules,
    is_noise: &dyn Fn(u64) -> Option<bool>,
) {
    let Sides { baseline, new } =
        sides.map(|side| AnswerPlaces { loaded: side.loaded, evidence: side.evidence, rules });
    let output = touched(|visit| baseline.visit_output(visit), |visit| new.visit_output(visit));
    found.output_is_noise = found.output != OutputChange::Same
        && are_noise(&output, is_noise)
        && !undetected::in_output(&found.output, Sides::new(baseline.loaded, new.loaded), rules);
    for row in &mut found.events {
        let (old, other) = indexes(row.row);
        let mut places = touched(
            |visit| old.into_iter().for_each(|index| baseline.visit_event(index, visit)),
            |visit| other.into_iter().for_each(|index| new.visit_event(index, visit)),
        );
        if row.moved || !matches!(row.row, Row::Both { .. }) {
            // A step without a counterpart, or at another position, also changes the order of the tools.
            places.push(Place::ToolSequence.key());
            // A call that executes an action is noise only if the action is too.
            places.extend(old.and_then(|index| baseline.proposed_place(index)));
            places.extend(other.and_then(|index| new.proposed_place(index)));
        }
        if old.is_some_and(|index| baseline.is_output_event(index))
            || other.is_some_and(|index| new.is_output_event(index))
        {
            // The event of the final output has no places of its own.
            places.clone_from(&output);
        }
        row.noise = !row.is_same() && are_noise(&places, is_noise) && !undetected::in_event(row, new.loaded, rules);
    }
    for row in &mut found.actions {
        let (old, other) = indexes(row.row);
        let mut places = touched(
            |visit| old.into_iter().for_each(|index| baseline.visit_action(index, visit)),
            |visit| other.into_iter().for_each(|index| new.visit_action(index, visit)),
        );
        if !matches!(row.row, Row::Both { .. }) {
            let tool = |side: AnswerPlaces<'_>, index: usize| {
                Place::Proposed { tool: &side.loaded.answer.proposed_actions[index].tool_name }.key()
            };
            places.extend(old.map(|index| tool(baseline, index)));
            places.extend(other.map(|index| tool(new, index)));
        }
        row.noise = !row.is_same() && are_noise(&places, is_noise) && !undetected::in_action(row, new.loaded, rules);
    }
    let counts = found.output_counts()
        || found.events.iter().any(EventRow::counts)
        || found.actions.iter().any(ActionRow::counts);
    // If all differences were marked, the report would show a changed case without a difference.
    if !counts {
        found.output_is_noise = false;
        found.events.iter_mut().for_each(|row| row.noise = false);
        found.actions.iter_mut().for_each(|row| row.noise = false);
    }
}

/// Pointers to the marked differences up to a limit, and the number of further ones.
pub(super) fn pointers(found: &Differences) -> (Vec<SidePointer>, u64) {
    let events = found.events.iter().filter(|row| row.noise).map(|row| ("/events", row.row));
    let actions = found.actions.iter().filter(|row| row.noise).map(|row| ("/proposed_actions", row.row));
    let output = found.output_is_noise.then(pointers::output_pointers).into_iter().flatten();
    let rows = actions.chain(events).flat_map(|(list, row)| pointers::row_pointers(list, row));
    let mut listed: Vec<_> = output.chain(rows).collect();
    let omitted = listed.len().saturating_sub(MAX_POINTERS);
    listed.truncate(MAX_POINTERS);
    (listed, omitted as u64)
}

/// Whether runs differ at one of these places or more, and all of these differences are noise.
fn are_noise(places: &[u64], is_noise: &dyn Fn(u64) -> Option<bool>) -> bool {
    let mut known = places.iter().filter_map(|place| is_noise(*place)).peekable();
    // A difference without a known place is not noise: no other run shows it.
    known.peek().is_some() && known.all(|noise| noise)
}

/// The places at which two elements have different values, or that only one of them has.
fn touched(
    baseline: impl FnOnce(&mut dyn FnMut(Place<'_>, u64)),
    new: impl FnOnce(&mut dyn FnMut(Place<'_>, u64)),
) -> Vec<u64> {
    let mut by_place: HashMap<u64, [u64; 2]> = HashMap::new();
    baseline(&mut |place, value| labels::add(&mut by_place.entry(place.key()).or_default()[0], value));
    new(&mut |place, value| labels::add(&mut by_place.entry(place.key()).or_default()[1], value));
    by_place.into_iter().filter(|(_, [old, new])| old != new).map(|(place, _)| place).collect()
}

const fn indexes(row: Row) -> (Option<usize>, Option<usize>) {
    match row {
        Row::Both { baseline, new } => (Some(baseline), Some(new)),
        Row::Removed(index) => (Some(index), None),
        Row::Added(index) => (None, Some(index)),
    }
}
