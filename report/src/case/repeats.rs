//! Numbers of a case: pass rates over repeated runs with their tests, the differences that are noise, and time, size and cost.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{
    CaseMeasure, CaseRepeats, CaseUsage, DifferingPairs, NoiseBasis, PlaceNoise, Rate, SideUsage, Tier, UsageCode,
};
use counterproof_evaluator::messages::{self, usage};

use super::context::CaseContext;
use crate::view::display;

#[derive(Debug, Clone)]
pub(crate) struct RepeatsView {
    /// The runs that the rest of the page shows.
    pub(crate) runs: String,
    pub(crate) measures: Vec<MeasureView>,
    /// Whether the rates are tested. Nothing that a deterministic agent does is chance.
    pub(crate) is_tested: bool,
    pub(crate) locations: Vec<LocationView>,
    /// What is not listed; empty where everything is.
    pub(crate) more: String,
}

#[derive(Debug, Clone)]
pub(crate) struct MeasureView {
    pub(crate) name: &'static str,
    pub(crate) baseline: String,
    pub(crate) new: String,
    /// The p-value and the corrected p-value.
    pub(crate) p_value: String,
    pub(crate) conclusion: String,
}

#[derive(Debug, Clone)]
pub(crate) struct LocationView {
    pub(crate) name: String,
    /// The pairs of baseline runs that differ here.
    pub(crate) baseline: String,
    /// The pairs of a baseline run and a new run that differ here.
    pub(crate) new: String,
    pub(crate) noise: bool,
    /// The basis of that decision.
    pub(crate) basis: &'static str,
}

/// The section, where a side has several runs.
pub(crate) fn repeats(context: &CaseContext<'_>) -> Option<RepeatsView> {
    let repeats = context.case.row.repeats.as_ref()?;
    let site = context.site;
    let is_tested = !context.case.is_deterministic;
    let run = |index: u64, all: usize| format!("run {} of {all}", index + 1);
    Some(RepeatsView {
        runs: format!(
            "This page shows {} of baseline and {} of new.",
            run(repeats.shown.baseline, site.files(Side::Baseline).len()),
            run(repeats.shown.new, site.files(Side::New).len())
        ),
        measures: repeats.measures.iter().map(|found| measure(found, is_tested)).collect(),
        is_tested,
        locations: repeats.places.iter().map(location).collect(),
        more: omitted(repeats),
    })
}

fn omitted(repeats: &CaseRepeats) -> String {
    let notes = [
        (repeats.places_omitted, "more locations differ"),
        (repeats.noise_omitted, "more differences below are noise, but not marked as such"),
    ];
    let notes = notes.into_iter().filter(|(count, _)| *count > 0);
    notes.map(|(count, note)| format!("{} {note}", display::number(count))).collect::<Vec<_>>().join("; ")
}

fn measure(measure: &CaseMeasure, is_tested: bool) -> MeasureView {
    let rate = |side: &Rate| if is_tested { rate(side) } else { counted(side) };
    let conclusion = match (measure.tier, measure.more_runs) {
        // How many more runs would decide is of use only where more runs could change the conclusion.
        (Tier::Likely | Tier::Watch | Tier::Unknown, Some(more)) => {
            format!("{}; {}", measure.tier.as_str(), messages::more_runs(more, measure.more_baseline_runs))
        }
        (tier, _) => tier.as_str().to_owned(),
    };
    MeasureView {
        name: messages::measure(measure.code),
        baseline: rate(&measure.baseline),
        new: rate(&measure.new),
        p_value: format!(
            "{} (corrected {})",
            messages::probability(measure.p),
            messages::probability(measure.corrected)
        ),
        conclusion,
    }
}

/// A rate with its interval: `4 of 5 (38–96 %)`.
fn rate(rate: &Rate) -> String {
    match rate.interval {
        Some([low, high]) => format!("{} ({:.0}–{:.0} %)", counted(rate), low * 100.0, high * 100.0),
        None => counted(rate),
    }
}

fn counted(rate: &Rate) -> String {
    format!("{} of {}", display::number(rate.passed), display::number(rate.runs))
}

fn location(place: &PlaceNoise) -> LocationView {
    let pairs = |pairs: DifferingPairs| format!("{} of {}", display::number(pairs.differ), display::number(pairs.of));
    LocationView {
        name: display::visible(&place.place),
        baseline: pairs(place.baseline),
        new: pairs(place.new),
        noise: place.noise,
        basis: basis(place.basis),
    }
}

const fn basis(basis: NoiseBasis) -> &'static str {
    match basis {
        NoiseBasis::CaseTest => "test over the runs of this case",
        NoiseBasis::PooledTest => "test over this location in all cases",
        NoiseBasis::CaseSeen => "baseline runs differ from each other here",
        NoiseBasis::PooledSeen => "baseline runs differ from each other here in other cases",
        NoiseBasis::CaseNeverSeen => "baseline runs of this case never differ from each other here",
        NoiseBasis::NeverInBaseline => "no baseline run has this",
        NoiseBasis::NeverSeen => "baseline runs never differ from each other here",
        NoiseBasis::NotKnown => "needs at least two baseline runs",
    }
}

#[derive(Debug, Clone)]
pub(crate) struct UsageView {
    /// A row for each quantity.
    pub(crate) rows: Vec<UsageRow>,
    /// Whether the values are medians over several runs.
    pub(crate) is_median: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageRow {
    pub(crate) name: &'static str,
    /// The value on baseline; `–` if it is unknown.
    pub(crate) baseline: String,
    /// The value on new; `–` if it is unknown.
    pub(crate) new: String,
    /// The change from baseline to new; empty if a value is unknown.
    pub(crate) change: String,
}

/// The section, where a side has an answer.
pub(crate) fn usage_table(context: &CaseContext<'_>) -> Option<UsageView> {
    let row = &context.case.row;
    let sides = row.usage.as_ref()?;
    let rows = UsageCode::ALL.into_iter().map(|code| usage_row(code, sides)).collect();
    Some(UsageView { rows, is_median: row.repeats.is_some() })
}

/// The row of a quantity, also where no side reports it: that it is unknown is a fact as well.
fn usage_row(code: UsageCode, sides: &CaseUsage) -> UsageRow {
    // Tools that are simulated may state times that cannot be.
    let fits = |side: &SideUsage| match (side.get(UsageCode::ToolTime), side.get(UsageCode::Duration)) {
        (Some(tools), Some(whole)) => tools <= whole,
        _ => true,
    };
    let is_impossible =
        code == UsageCode::ToolTime && [&sides.baseline, &sides.new].into_iter().flatten().any(|side| !fits(side));
    if is_impossible {
        let unknown = || "–".to_owned();
        let change = usage::LONGER_THAN_WHOLE.to_owned();
        return UsageRow { name: usage::quantity(code), baseline: unknown(), new: unknown(), change };
    }
    let text = |side: &Option<SideUsage>| {
        let side = side.as_ref()?;
        Some(usage::amount(code, side.get(code)?, side.currency_of(code)))
    };
    let (baseline, new) = (text(&sides.baseline), text(&sides.new));
    let change = match sides.compared(code) {
        Some((before, after)) => usage::change(before, after),
        None if baseline.is_none() && new.is_none() => "not recorded".to_owned(),
        None => String::new(),
    };
    let known = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    UsageRow { name: usage::quantity(code), baseline: known(baseline), new: known(new), change }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(steps: f64, cost: Option<f64>, currency: &str) -> SideUsage {
        SideUsage {
            steps: steps.into(),
            cost: cost.map(Into::into),
            currency: Some(currency.to_owned()),
            ..SideUsage::default()
        }
    }

    fn row(code: UsageCode, baseline: Option<&SideUsage>, new: Option<&SideUsage>) -> [String; 3] {
        let UsageRow { baseline, new, change, .. } =
            usage_row(code, &CaseUsage { baseline: baseline.cloned(), new: new.cloned() });
        [baseline, new, change]
    }

    #[test]
    fn a_row_has_the_values_and_their_change_and_says_what_is_unknown() {
        let (old, new) = (side(5.0, Some(1.0), "USD"), side(95.0, Some(1.43), "USD"));
        let strings = |row: [&str; 3]| row.map(str::to_owned);
        assert_eq!(row(UsageCode::Steps, Some(&old), Some(&new)), strings(["5", "95", "×19"]));
        assert_eq!(row(UsageCode::Cost, Some(&old), Some(&new)), strings(["1 USD", "1.43 USD", "+43 %"]));
        assert_eq!(row(UsageCode::Steps, None, Some(&new)), strings(["–", "95", ""]));
        assert_eq!(row(UsageCode::Duration, Some(&old), Some(&new)), strings(["–", "–", "not recorded"]));
        let euro = side(5.0, Some(2.0), "EUR");
        assert_eq!(row(UsageCode::Cost, Some(&old), Some(&euro)), strings(["1 USD", "2 EUR", ""]));
    }
}
