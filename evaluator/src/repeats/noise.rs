//! Noise: the differences that the baseline also has with itself.
//!
//! For each place, the share of pairs of baseline runs that differ there is compared with the share of pairs of a baseline run
//! and a new run: within the case, and over all cases that have the place. If a test rejects that both are equal, the difference
//! is not noise. Otherwise it is noise only if baseline was observed to differ from itself there.

use std::collections::{BTreeMap, HashMap, HashSet};

use counterproof_artifact::Sides;
use counterproof_artifact::evaluation::{DifferingPairs, NoiseBasis, SidePointer};
use rayon::prelude::*;

use super::observations::{Answered, CaseObservations, RunOutcome};
use super::place::{self, ActionAspect, AnswerPlaces, Names, Place, PlaceHashes};
use crate::diff::actions::ActionRow;
use crate::diff::align::Row;
use crate::diff::events::{EventKind, EventRow};
use crate::diff::json::{JsonChange, JsonChanges};
use crate::diff::output::{self, OutputChange};
use crate::diff::{Differences, WithEvidence, rows};
use crate::load::LoadedAnswer;
use crate::rules::{self, Rules, Scope, Subject};
use crate::statistics::{self, Disagreement, PlaceValues};

/// A place of a case at which new differs from the baseline in some pair of runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct DifferingPlace {
    pub(super) place: u64,
    pub(super) baseline: DifferingPairs,
    pub(super) new: DifferingPairs,
    pub(super) noise: bool,
    pub(super) basis: NoiseBasis,
}

/// For each case, the places at which new differs from baseline: those beyond noise first, then by name. `alpha` is the level of
/// the tests.
pub(super) fn differing(cases: &[CaseObservations], names: &Names, alpha: f64) -> Vec<Vec<DifferingPlace>> {
    let mut by_place: BTreeMap<u64, (Vec<usize>, Vec<PlaceValues>)> = BTreeMap::new();
    // Grouped by place across the cases, because the pooled test needs all cases of a place.
    for (index, case) in cases.iter().enumerate() {
        for (place, values) in at_places(case, names) {
            let (indexes, all) = by_place.entry(place).or_default();
            indexes.push(index);
            all.push(values);
        }
    }
    let unseen: Vec<_> = cases.iter().map(|case| never_in_baseline(case, names)).collect();
    let judged: Vec<_> = by_place
        .into_par_iter()
        .map(|(place, (indexes, values))| (place, indexes, statistics::judge_place(&values)))
        .filter(|(_, _, judged)| judged.cases.iter().any(|case| case.across.disagree > 0))
        .collect();
    // Among dozens of places, some have a small p-value by chance.
    let pooled_level = statistics::discovery_level(judged.iter().filter_map(|(_, _, judged)| judged.pooled.p), alpha);
    let mut differing: Vec<Vec<DifferingPlace>> = cases.iter().map(|_| Vec::new()).collect();
    for (place, indexes, judged) in judged {
        let aspect = names.action_aspect(place);
        let pooled = Pooled {
            is_shown: judged.pooled.p.zip(pooled_level).is_some_and(|(p, level)| p <= level),
            of: &judged.pooled,
        };
        for (index, case) in indexes.into_iter().zip(&judged.cases).filter(|(_, case)| case.across.disagree > 0) {
            let found = decide(aspect, case, &pooled, alpha);
            let basis =
                if is_noise(found) && unseen[index].contains(&place) { NoiseBasis::NeverInBaseline } else { found };
            let noise = is_noise(basis);
            let pairs = |pairs: statistics::RunPairs| DifferingPairs { differ: pairs.disagree, of: pairs.all };
            let found = DifferingPlace { place, baseline: pairs(case.baseline), new: pairs(case.across), noise, basis };
            differing[index].push(found);
        }
    }
    for places in &mut differing {
        // Sort by name, since the key of a place is different in every process.
        places.sort_by(|a, b| (a.noise, names.get(a.place)).cmp(&(b.noise, names.get(b.place))));
    }
    differing
}

/// What all cases together show at a place.
struct Pooled<'a> {
    is_shown: bool,
    of: &'a Disagreement,
}

fn decide(aspect: Option<ActionAspect>, case: &Disagreement, pooled: &Pooled<'_>, alpha: f64) -> NoiseBasis {
    // Noise in other cases never explains a proposed action, which may be harmless there and harmful here. It explains
    // parameters only if this case has no two baseline runs with the action.
    let differs_from_itself = case.baseline.disagree > 0;
    // The case itself is stronger evidence than all cases together, and a test is stronger than a single observation.
    if case.p.is_some_and(|p| p <= alpha) {
        NoiseBasis::CaseTest
    } else if differs_from_itself {
        NoiseBasis::CaseSeen
    } else if pooled.is_shown {
        NoiseBasis::PooledTest
    } else if aspect.is_some() && case.baseline.all > 0 {
        NoiseBasis::CaseNeverSeen
    } else if aspect == Some(ActionAspect::Existence) {
        NoiseBasis::NotKnown
    } else if pooled.of.baseline.disagree > 0 {
        NoiseBasis::PooledSeen
    } else if pooled.of.baseline.all > 0 {
        NoiseBasis::NeverSeen
    } else {
        NoiseBasis::NotKnown
    }
}

/// The places at which a run of new does what no run of the baseline does, and what may be harm: that the baseline also varies there
/// is no excuse for it. These are the facts of high-risk actions, and actions that every run of the baseline proposes.
fn never_in_baseline(case: &CaseObservations, names: &Names) -> HashSet<u64> {
    let [baseline, new] =
        [&case.baseline, &case.new].map(|runs| runs.iter().filter_map(RunOutcome::answered).collect::<Vec<_>>());
    let Some(first) = baseline.first() else { return HashSet::new() };
    let known: HashSet<_> = baseline.iter().flat_map(|answer| &answer.facts).collect();
    let facts =
        new.iter().flat_map(|answer| &answer.facts).filter(|fact| !known.contains(fact)).map(|(place, _)| *place);
    let has = |answer: &&Answered, place: u64| answer.hashes.at(place) != place::ABSENT;
    let always = first.hashes.places().filter(|place| {
        names.action_aspect(*place) == Some(ActionAspect::Existence)
            && baseline.iter().all(|answer| has(answer, *place))
    });
    facts.chain(always.filter(|place| !new.iter().all(|answer| has(answer, *place)))).collect()
}

const fn is_noise(basis: NoiseBasis) -> bool {
    // A difference is noise only if two baseline runs were observed to differ.
    matches!(basis, NoiseBasis::CaseSeen | NoiseBasis::PooledSeen)
}

/// The values at each place that any run has; empty if a side has no answer.
fn at_places(case: &CaseObservations, names: &Names) -> BTreeMap<u64, PlaceValues> {
    // A run without the call or action that a place belongs to is left out there.
    let (baseline, new) = (answers(&case.baseline), answers(&case.new));
    let mut found = BTreeMap::new();
    if baseline.is_empty() || new.is_empty() {
        return found;
    }
    let (baseline, new) = (with_owners(baseline, names), with_owners(new, names));
    for place in baseline.iter().chain(&new).flat_map(|(hashes, _)| hashes.places()) {
        found.entry(place).or_insert_with(|| {
            let owner = names.owner(place);
            let at = |side: &[(&PlaceHashes, HashSet<u64>)]| {
                // Otherwise the absent call or action would be a second difference at each of its arguments.
                let having = side.iter().filter(|(_, owners)| owner.is_none_or(|owner| owners.contains(&owner)));
                having.map(|(hashes, _)| hashes.at(place)).collect()
            };
            PlaceValues { baseline: at(&baseline), new: at(&new) }
        });
    }
    found
}

/// Runs, each with the calls and actions that it has.
fn with_owners<'a>(side: Vec<&'a PlaceHashes>, names: &Names) -> Vec<(&'a PlaceHashes, HashSet<u64>)> {
    let owners = |hashes: &PlaceHashes| hashes.places().filter_map(|place| names.owner(place)).collect();
    side.into_iter().map(|hashes| (hashes, owners(hashes))).collect()
}

fn answers(runs: &[RunOutcome]) -> Vec<&PlaceHashes> {
    runs.iter().filter_map(|run| run.answered().map(|answered| &answered.hashes)).collect()
}

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
        && !in_output(&found.output, Sides::new(baseline.loaded, new.loaded), rules);
    for row in &mut found.events {
        let Sides { baseline: old, new: other } = row.row.indexes();
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
            // The event of the final output has no separate places.
            places.clone_from(&output);
        }
        row.noise = !row.is_same() && are_noise(&places, is_noise) && !in_event(row, new.loaded, rules);
    }
    for row in &mut found.actions {
        let Sides { baseline: old, new: other } = row.row.indexes();
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
        row.noise = !row.is_same() && are_noise(&places, is_noise) && !in_action(row, new.loaded, rules);
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
    let output = found.output_is_noise.then(rows::output_pointers).into_iter().flatten();
    let rows = actions.chain(events).flat_map(|(list, row)| rows::row_pointers(list, row));
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
    baseline(&mut |place, value| place::add(&mut by_place.entry(place.key()).or_default()[0], value));
    new(&mut |place, value| place::add(&mut by_place.entry(place.key()).or_default()[1], value));
    by_place.into_iter().filter(|(_, [old, new])| old != new).map(|(place, _)| place).collect()
}

/// Whether the pair differs in a value that has the same hash on both sides.
pub(crate) fn differs_beyond_hashes(found: &Differences, sides: Sides<&LoadedAnswer>, rules: &Rules) -> bool {
    if rules.is_empty() {
        return false;
    }
    found.events.iter().any(|row| in_event(row, sides.new, rules))
        || found.actions.iter().any(|row| in_action(row, sides.new, rules))
        || in_output(&found.output, sides, rules)
}

/// Like [`differs_beyond_hashes`], for two events.
pub(super) fn in_event(row: &EventRow, new: &LoadedAnswer, rules: &Rules) -> bool {
    let Row::Both { new: index, .. } = row.row else { return false };
    let scope = rules.scope(EventKind::new(new, index).subject());
    among(&row.changes, &format!("/events/{index}"), &scope)
}

/// Like [`differs_beyond_hashes`], for two actions.
pub(super) fn in_action(row: &ActionRow, new: &LoadedAnswer, rules: &Rules) -> bool {
    let Row::Both { new: index, .. } = row.row else { return false };
    let subject = Subject { event: None, tool: Some(new.answer.proposed_actions[index].tool_name.as_str()) };
    among(&row.changes, &format!("/proposed_actions/{index}"), &rules.scope(subject))
}

/// Like [`differs_beyond_hashes`], for the final outputs.
pub(super) fn in_output(change: &OutputChange, Sides { baseline, new }: Sides<&LoadedAnswer>, rules: &Rules) -> bool {
    let scope = output::scope(rules);
    match change {
        OutputChange::Json(changes) => among(changes, output::POINTER, &scope),
        OutputChange::Text(_) => {
            let seen =
                |side: &LoadedAnswer| rules::coarse_view(&output::value(&side.answer.final_output.content), &scope);
            !scope.is_empty() && seen(baseline) == seen(new)
        }
        OutputChange::Same | OutputChange::Form => false,
    }
}

/// Whether the hashes hide one of the changes. `root` is the prefix of their pointers in new, to which `scope` belongs.
fn among(changes: &JsonChanges, root: &str, scope: &Scope<'_>) -> bool {
    !scope.is_empty() && changes.iter().any(|change| is_beyond_hashes(change, root, scope))
}

// Equal coarse views mean that the hashes at this place are equal, although the values are not.
fn is_beyond_hashes(change: &JsonChange, root: &str, scope: &Scope<'_>) -> bool {
    let (Some(old), Some(new)) = (&change.baseline, &change.new) else { return false };
    let Some(path) = new.pointer.strip_prefix(root) else { return false };
    let key = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
    let here = path.split('/').skip(1).fold(scope.clone(), |scope, segment| scope.below(&key(segment)));
    rules::coarse_view(&old.value, &here) == rules::coarse_view(&new.value, &here)
}
