//! What several runs a side say of a case: how often things hold, and which differences are the agent's own noise.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{CaseMeasure, DifferingPairs, NoiseBasis, PlaceNoise, Rate, Tier};

use super::case_page::CaseView;
use super::shown;
use crate::messages;
use crate::values::text;

/// The section, ready to be shown.
#[derive(Debug, Clone)]
pub(super) struct RepeatsShown {
    /// Which runs the rest of the page is about.
    pub(super) runs: String,
    /// How often things hold.
    pub(super) measures: Vec<MeasureShown>,
    /// Where the sides differ.
    pub(super) places: Vec<PlaceShown>,
    /// How many places are not listed, in words; empty where all are.
    pub(super) more: String,
}

/// How often something holds on both sides.
#[derive(Debug, Clone)]
pub(super) struct MeasureShown {
    /// What is counted.
    pub(super) name: &'static str,
    /// On the baseline.
    pub(super) baseline: String,
    /// On new.
    pub(super) new: String,
    /// How likely that is by chance.
    pub(super) chance: String,
    /// What is concluded.
    pub(super) conclusion: String,
}

/// A place at which runs differ.
#[derive(Debug, Clone)]
pub(super) struct PlaceShown {
    /// The place.
    pub(super) name: String,
    /// Pairs of baseline runs that differ there.
    pub(super) baseline: String,
    /// Pairs of a baseline run and a new run that differ there.
    pub(super) new: String,
    /// True where it is noise.
    pub(super) noise: bool,
    /// Why it is called so.
    pub(super) why: &'static str,
}

/// What the runs say, where a side has several.
pub(super) fn show(view: &CaseView<'_>) -> Option<RepeatsShown> {
    let repeats = view.case.row.repeats.as_ref()?;
    let report = view.report;
    let run = |index: u64, all: usize| format!("run {} of {all}", index + 1);
    Some(RepeatsShown {
        runs: format!(
            "This page shows {} of baseline and {} of new.",
            run(repeats.shown.baseline, report.files(Side::Baseline).len()),
            run(repeats.shown.new, report.files(Side::New).len())
        ),
        measures: repeats.measures.iter().map(measure).collect(),
        places: repeats.places.iter().map(place).collect(),
        more: [
            (repeats.places_omitted, "more places differ"),
            (repeats.noise_omitted, "more places of the pair shown are noise, and not marked below"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{} {words}", shown::number(count)))
        .collect::<Vec<_>>()
        .join("; "),
    })
}

fn measure(measure: &CaseMeasure) -> MeasureShown {
    let conclusion = match (measure.tier, measure.more_runs) {
        (Tier::Likely | Tier::Watch | Tier::Unknown, Some(more)) => {
            let more = text::count(usize::try_from(more).unwrap_or(usize::MAX), "more run", "more runs");
            format!("{}; {more} a side would decide", measure.tier.as_str())
        }
        (tier, _) => tier.as_str().to_owned(),
    };
    MeasureShown {
        name: messages::measure(measure.code),
        baseline: rate(&measure.baseline),
        new: rate(&measure.new),
        chance: format!(
            "p {}, corrected {}",
            messages::probability(measure.p),
            messages::probability(measure.corrected)
        ),
        conclusion,
    }
}

/// A rate with its interval: `4 of 5 (38–96 %)`.
fn rate(rate: &Rate) -> String {
    let counted = format!("{} of {}", shown::number(rate.passed), shown::number(rate.runs));
    match rate.interval {
        Some([low, high]) => format!("{counted} ({:.0}–{:.0} %)", low * 100.0, high * 100.0),
        None => counted,
    }
}

fn place(place: &PlaceNoise) -> PlaceShown {
    let pairs = |pairs: DifferingPairs| format!("{} of {}", shown::number(pairs.differ), shown::number(pairs.of));
    PlaceShown {
        name: shown::visible(&place.place),
        baseline: pairs(place.baseline),
        new: pairs(place.new),
        noise: place.noise,
        why: why(place.basis),
    }
}

const fn why(basis: NoiseBasis) -> &'static str {
    match basis {
        NoiseBasis::CaseTest => "a test on this case's runs",
        NoiseBasis::PooledTest => "a test on this place in all cases",
        NoiseBasis::CaseSeen => "baseline differs from itself here",
        NoiseBasis::PooledSeen => "baseline differs from itself here in other cases",
        NoiseBasis::CaseNeverSeen => "baseline never differs from itself here in this case",
        NoiseBasis::NeverSeen => "baseline never differs from itself here",
        NoiseBasis::NotKnown => "there are no two baseline runs to tell",
    }
}
