//! What runs say, in words.

use std::fmt::Write as _;

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{CaseMeasure, NoiseBasis, PlaceNoise, Rate, Reason, Tier};

use super::survey::Lost;
use crate::judge::ReasonCode;
use crate::messages;
use crate::values::text;

/// Places that one sentence names.
const PLACES_NAMED: usize = 3;

/// True where new has the lower rate.
pub(super) fn is_lower(measure: &CaseMeasure) -> bool {
    // Cross-multiplied, so that no rounding makes equal rates differ.
    let product = |passed: &Rate, runs: &Rate| u128::from(passed.passed) * u128::from(runs.runs);
    product(&measure.new, &measure.baseline) < product(&measure.baseline, &measure.new)
}

/// Why a measure decides a case, or leaves it open.
pub(super) fn measure_reason(measure: &CaseMeasure) -> Reason {
    let code = match measure.tier {
        Tier::Regression => ReasonCode::PassRateFell,
        Tier::Improvement => ReasonCode::PassRateRose,
        Tier::Likely | Tier::Watch => ReasonCode::PassRateMayHaveFallen,
        Tier::Unknown | Tier::Steady => ReasonCode::PassRateUndecided,
    };
    let mut message = measured(measure);
    match (measure.tier, measure.more_runs) {
        (Tier::Likely | Tier::Watch | Tier::Unknown, Some(more)) => {
            let more = text::count(usize::try_from(more).unwrap_or(usize::MAX), "more run", "more runs");
            let _ = write!(message, "; {more} a side would decide");
        }
        (Tier::Unknown, None) => message.push_str("; too few runs to say"),
        _ => {}
    }
    code.reason(message, Vec::new())
}

/// The counts of a measure, and how likely they are by chance.
pub(super) fn measured(measure: &CaseMeasure) -> String {
    let (old, new) = (&measure.baseline, &measure.new);
    format!(
        "{} in {} of {}, baseline in {} of {} ({})",
        messages::measure(measure.code),
        new.passed,
        text::count(usize::try_from(new.runs).unwrap_or(usize::MAX), "run", "runs"),
        old.passed,
        old.runs,
        chance(measure),
    )
}

fn chance(measure: &CaseMeasure) -> String {
    if measure.tier == Tier::Improvement {
        return "a rise that chance hardly gives".to_owned();
    }
    format!("p {}, corrected {}", messages::probability(measure.p), messages::probability(measure.corrected))
}

/// In how many runs of a side a case has no artifact.
pub(super) fn lost_reason(side: Side, lost: Lost) -> Reason {
    let of = text::count(lost.of, "run that set out to ask it", "runs that set out to ask it");
    let message =
        format!("{side} has no artifact of the case in {} of {of}: what it would have said is not known", lost.runs);
    ReasonCode::ArtifactAbsent.reason(message, Vec::new())
}

/// At which places new differs, and which of that is noise; `None` where nothing differs. Places beyond noise come first.
pub(super) fn places_reason(places: &[PlaceNoise]) -> Option<Reason> {
    let beyond = places.iter().filter(|place| !place.noise).count();
    let (code, message) = match (beyond, places.first()) {
        (_, None) => return None,
        (0, Some(first)) => {
            let others = match places.len() - 1 {
                0 => String::new(),
                others => format!(", and so at {}", text::count(others, "other place", "other places")),
            };
            (ReasonCode::Noise, format!("no more than baseline differs from itself: {}{others}", place_words(first)))
        }
        (beyond, Some(_)) => {
            let mut named: Vec<_> = places[..beyond].iter().take(PLACES_NAMED).map(place_words).collect();
            if beyond > named.len() {
                named.push(text::count(beyond - named.len(), "more place", "more places"));
            }
            let noise = match places.len() - beyond {
                0 => String::new(),
                noise => format!("; noise at {}", text::count(noise, "other place", "other places")),
            };
            // One run of the baseline has nothing to differ from.
            let is_known = places[..beyond].iter().any(|place| place.basis != NoiseBasis::NotKnown);
            let differs = if is_known { "differs more than baseline from itself" } else { "differs from baseline" };
            (ReasonCode::BeyondNoise, format!("{differs}: {}{noise}", text::list(&named)))
        }
    };
    Some(code.reason(message, Vec::new()))
}

fn place_words(place: &PlaceNoise) -> String {
    let (new, old) = (place.new, place.baseline);
    let elsewhere = if place.basis == NoiseBasis::PooledSeen { ", but in other cases" } else { "" };
    let itself = match old.of {
        0 => "; its own noise is not known".to_owned(),
        of => format!(", with itself {} of {of}{elsewhere}", old.differ),
    };
    format!("{} ({} of {} pairs{itself})", place.place, new.differ, new.of)
}
