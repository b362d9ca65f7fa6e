//! The reasons that several runs per side give.

use std::fmt::Write as _;

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{CaseMeasure, MeasureCode, NoiseBasis, PlaceNoise, Reason, Tier};

use super::observations::MissingArtifacts;
use crate::gate::Repeatability;
use crate::judge::ReasonCode;
use crate::messages;
use crate::values::text;

const PLACES_NAMED: usize = 3;

/// The measures without the combined one where a part has the same counts and so names the reason better.
pub(crate) fn explaining(measures: &[CaseMeasure]) -> Vec<&CaseMeasure> {
    let counts = |measure: &CaseMeasure| [&measure.baseline, &measure.new].map(|rate| (rate.passed, rate.runs));
    let is_explained = |solved: &CaseMeasure| {
        measures.iter().any(|part| part.code != MeasureCode::Solved && counts(part) == counts(solved))
    };
    measures.iter().filter(|measure| measure.code != MeasureCode::Solved || !is_explained(measure)).collect()
}

pub(super) fn measure_reason(measure: &CaseMeasure) -> Reason {
    let code = match measure.tier {
        Tier::Regression => ReasonCode::PassRateFell,
        Tier::Improvement => ReasonCode::PassRateRose,
        Tier::Likely | Tier::Watch => ReasonCode::PassRateMayHaveFallen,
        Tier::Unknown | Tier::Steady => ReasonCode::PassRateUndecided,
    };
    let mut message = measured(measure);
    if matches!(measure.tier, Tier::Likely | Tier::Watch | Tier::Unknown) {
        match measure.more_runs {
            Some(more) => {
                message.push_str("; ");
                message.push_str(&messages::more_runs(more, measure.more_baseline_runs));
            }
            None if measure.more_baseline_runs.is_some() => {
                let more = measure.more_baseline_runs.unwrap_or_default();
                let runs = text::count(usize::try_from(more).unwrap_or(usize::MAX), "more run", "more runs");
                let _ = write!(message, "; {runs} of the baseline would confirm it");
            }
            None if measure.baseline.runs == 1 && measure.new.runs > 1 => {
                message.push_str("; one run of the baseline cannot confirm it: repeat the baseline");
            }
            None => {}
        }
    }
    code.reason(message, Vec::new())
}

/// The counts of a measure, and whether they may be chance. The numbers of the test are in the record of the measure.
pub(super) fn measured(measure: &CaseMeasure) -> String {
    let chance = match measure.tier {
        Tier::Regression | Tier::Improvement => "not chance",
        Tier::Likely | Tier::Watch | Tier::Unknown | Tier::Steady => "may be chance",
    };
    format!("{} ({chance})", messages::counts(measure))
}

/// The reason for runs of a side that selected a case but have no artifact of it.
pub(super) fn missing_reason(side: Side, missing: MissingArtifacts) -> Reason {
    let of = text::count(missing.of, "run that selected it", "runs that selected it");
    let message =
        format!("{side} has no artifact of the case in {} of {of}, so the result there is unknown", missing.runs);
    ReasonCode::ArtifactAbsent.reason(message, Vec::new())
}

/// The reason with the places at which new differs, and which of these are noise; `None` if there are none. Expects places
/// beyond noise first.
pub(super) fn places_reason(places: &[PlaceNoise], agent: Repeatability) -> Option<Reason> {
    // Places beyond noise come first, so that this number splits the list.
    let beyond = places.iter().filter(|place| !place.noise).count();
    let (code, message) = match (beyond, places.first()) {
        (_, None) => return None,
        (0, Some(first)) => {
            let others = match places.len() - 1 {
                0 => String::new(),
                others => format!(", and at {}", text::count(others, "other place", "other places")),
            };
            (ReasonCode::Noise, format!("differs no more than baseline from itself: {}{others}", place_words(first)))
        }
        (beyond, Some(_)) => {
            let noise = match places.len() - beyond {
                0 => String::new(),
                noise => format!("; noise at {}", text::count(noise, "other place", "other places")),
            };
            let all: Vec<_> = places[..beyond].iter().collect();
            // Where a test has shown some places, they are named alone: the others may be chance.
            let shown: Vec<_> = all.iter().copied().filter(|place| is_shown(place)).collect();
            let (code, differs, named) = match (agent, shown.is_empty()) {
                (Repeatability::Deterministic, _) => {
                    (ReasonCode::BeyondNoise, "differs from baseline, which never differs from itself", all)
                }
                (Repeatability::Variable, false) => {
                    (ReasonCode::BeyondNoise, "differs more than baseline from itself", shown)
                }
                (Repeatability::Variable, true) => {
                    (ReasonCode::DifferenceUndecided, "differs from baseline, on too few runs to rule out chance", all)
                }
            };
            (code, format!("{differs}: {}{noise}", text::list(&first_named(&named))))
        }
    };
    Some(code.reason(message, Vec::new()))
}

/// The first places in words, and how many more there are.
fn first_named(places: &[&PlaceNoise]) -> Vec<String> {
    let mut named: Vec<_> = places.iter().take(PLACES_NAMED).map(|place| place_words(place)).collect();
    if places.len() > named.len() {
        named.push(text::count(places.len() - named.len(), "more place", "more places"));
    }
    named
}

/// Whether a test has shown that new differs more from the baseline at a place than the baseline from itself.
pub(super) const fn is_shown(place: &PlaceNoise) -> bool {
    matches!(place.basis, NoiseBasis::CaseTest | NoiseBasis::PooledTest)
}

fn place_words(place: &PlaceNoise) -> String {
    let (new, old) = (place.new, place.baseline);
    let elsewhere = match place.basis {
        NoiseBasis::PooledSeen => ", but in other cases",
        NoiseBasis::NeverInBaseline => ", but never so",
        _ => "",
    };
    let itself = match old.of {
        0 => "; baseline's own noise is unknown".to_owned(),
        of => format!("; baseline with itself {} of {of}{elsewhere}", old.differ),
    };
    format!("{} ({} of {} pairs{itself})", place.place, new.differ, new.of)
}
