//! Noise: the differences that the baseline also has with itself.
//!
//! For each place, the share of pairs of baseline runs that differ there is compared with the share of pairs of a baseline run
//! and a new run: within the case, and over all cases that have the place. If a test rejects that both are equal, the difference
//! is not noise. Otherwise it is noise only if baseline was observed to differ from itself there.

use std::collections::{BTreeMap, HashSet};

use counterproof_artifact::evaluation::{DifferingPairs, NoiseBasis};
use rayon::prelude::*;

use super::labels::{Labels, Names};
use super::observations::{CaseObservations, RunOutcome};
use super::place::ActionAspect;
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
    let judged: Vec<Vec<(usize, DifferingPlace)>> = by_place
        .into_par_iter()
        .map(|(place, (indexes, values))| {
            let judged = statistics::judge_place(&values);
            let cases = indexes.into_iter().zip(&judged.cases).filter(|(_, case)| case.across.disagree > 0);
            let aspect = names.action_aspect(place);
            let differing_place = |case: &Disagreement| {
                let basis = decide(aspect, case, &judged.pooled, alpha);
                let noise = is_noise(basis);
                let pairs = |pairs: statistics::RunPairs| DifferingPairs { differ: pairs.disagree, of: pairs.all };
                DifferingPlace { place, baseline: pairs(case.baseline), new: pairs(case.across), noise, basis }
            };
            cases.map(|(index, case)| (index, differing_place(case))).collect()
        })
        .collect();
    let mut differing: Vec<Vec<DifferingPlace>> = cases.iter().map(|_| Vec::new()).collect();
    for (index, place) in judged.into_iter().flatten() {
        differing[index].push(place);
    }
    for places in &mut differing {
        // Sort by name, since the key of a place is different in every process.
        places.sort_by(|a, b| (a.noise, names.get(a.place)).cmp(&(b.noise, names.get(b.place))));
    }
    differing
}

/// Finds the basis on which a difference is judged. Noise in other cases never explains a proposed action, which may be harmless
/// there and harmful here. It explains parameters only where this case has no two baseline runs with the action.
fn decide(aspect: Option<ActionAspect>, case: &Disagreement, pooled: &Disagreement, alpha: f64) -> NoiseBasis {
    let differs_more = |test: &Disagreement| test.p.is_some_and(|p| p <= alpha);
    let differs_from_itself = case.baseline.disagree > 0;
    // The case itself is stronger evidence than all cases together, and a test is stronger than a single observation.
    if differs_more(case) {
        NoiseBasis::CaseTest
    } else if differs_from_itself {
        NoiseBasis::CaseSeen
    } else if differs_more(pooled) {
        NoiseBasis::PooledTest
    } else if aspect.is_some() && case.baseline.all > 0 {
        NoiseBasis::CaseNeverSeen
    } else if aspect == Some(ActionAspect::Existence) {
        NoiseBasis::NotKnown
    } else if pooled.baseline.disagree > 0 {
        NoiseBasis::PooledSeen
    } else if pooled.baseline.all > 0 {
        NoiseBasis::NeverSeen
    } else {
        NoiseBasis::NotKnown
    }
}

/// Whether a difference judged on this basis is noise. It is noise only if two baseline runs were observed to differ.
const fn is_noise(basis: NoiseBasis) -> bool {
    matches!(basis, NoiseBasis::CaseSeen | NoiseBasis::PooledSeen)
}

/// The values at each place that any run has; empty where a side has no answer. A run without the call or action that a place
/// belongs to is left out there.
fn at_places(case: &CaseObservations, names: &Names) -> BTreeMap<u64, PlaceValues> {
    let (baseline, new) = (answers(&case.baseline), answers(&case.new));
    let mut found = BTreeMap::new();
    if baseline.is_empty() || new.is_empty() {
        return found;
    }
    let (baseline, new) = (with_owners(baseline, names), with_owners(new, names));
    for place in baseline.iter().chain(&new).flat_map(|(labels, _)| labels.places()) {
        found.entry(place).or_insert_with(|| {
            let owner = names.owner(place);
            let at = |side: &[(&Labels, HashSet<u64>)]| {
                // Otherwise the absent call or action would be a second difference at each of its arguments.
                let having = side.iter().filter(|(_, owners)| owner.is_none_or(|owner| owners.contains(&owner)));
                having.map(|(labels, _)| labels.at(place)).collect()
            };
            PlaceValues { baseline: at(&baseline), new: at(&new) }
        });
    }
    found
}

/// Runs, each with the calls and actions that it has.
fn with_owners<'a>(side: Vec<&'a Labels>, names: &Names) -> Vec<(&'a Labels, HashSet<u64>)> {
    let owners = |labels: &Labels| labels.places().filter_map(|place| names.owner(place)).collect();
    side.into_iter().map(|labels| (labels, owners(labels))).collect()
}

fn answers(runs: &[RunOutcome]) -> Vec<&Labels> {
    runs.iter().filter_map(|run| run.answered().map(|answered| &answered.labels)).collect()
}
