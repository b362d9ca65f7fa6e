//! What `run --confirm` needs to know about lost cases: how many confirmation runs decide, and which cases are run again.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use counterproof_artifact::{CaseId, Side, Sides};
use counterproof_store::ReadError;
use rayon::prelude::*;

use super::analysis::LOST_SHARE;
use super::measures::{ConfirmationRuns, LostCounts};
use super::observations::{CaseObservations, Criteria};
use super::unseen::{self, LEVEL_SHARE};
use crate::judge::Expectations;
use crate::load::SideRuns;
use crate::load::case_input::comparable;
use crate::rules::Rules;
use crate::statistics::{ConfirmationCount, Decides, Thresholds, deciding_baseline};

/// The runs of cases that look lost, or that show a high-risk value that the baseline never shows; and of the cases that they are
/// judged with.
#[derive(Debug)]
pub struct LostCases {
    cases: Vec<Runs>,
    /// The level at which confirmation runs have to decide.
    level: f64,
    /// The largest number of baseline runs that is suggested.
    most: u32,
}

/// The runs of a case.
#[derive(Debug)]
struct Runs {
    id: CaseId,
    counts: LostCounts,
    /// Whether all runs of new so far show a high-risk value that no run of the baseline shows.
    is_unseen: bool,
}

impl Runs {
    fn is_open(&self) -> bool {
        self.is_unseen || self.counts.can_be_lost()
    }
}

impl LostCases {
    /// Reads the results of all runs, or only those of some cases. Confirmation runs count as such.
    pub fn read(
        runs: Sides<&SideRuns>,
        expectations: &Expectations,
        thresholds: &Thresholds,
        only: Option<&HashSet<CaseId>>,
    ) -> Result<Self, ReadError> {
        let Sides { baseline, new } = runs;
        let mut ids = comparable(baseline, new)?;
        ids.retain(|id| only.is_none_or(|only| only.contains(id)));
        // Rules of comparison do not affect pass rates.
        let rules = Rules::default();
        let criteria = Criteria { expectations, rules: &rules, side: Side::New };
        let confirms = ConfirmationRuns::from_runs(baseline, new);
        let read = |id: CaseId| {
            let case = CaseObservations::from_runs(baseline, new, criteria, &id).0;
            let counts = LostCounts::from_case(&case.results(), &confirms);
            // One run of the baseline is never enough for the test of these values.
            let is_unseen = baseline.is_repeated() && unseen::may_occur(&case.high_risk_values(&confirms));
            Runs { id, counts, is_unseen }
        };
        let cases: Vec<_> = ids.into_par_iter().map(read).collect();
        // The test of high-risk values has the smaller level.
        let share = if cases.iter().any(|case| case.is_unseen) { LEVEL_SHARE.min(LOST_SHARE) } else { LOST_SHARE };
        Ok(Self { cases, level: thresholds.alpha.value() * share, most: thresholds.more_runs_up_to })
    }

    /// The cases that are convicted if they keep failing, or keep showing their high-risk values.
    pub fn candidates(&self) -> HashSet<CaseId> {
        self.with(Runs::is_open)
    }

    /// The candidates that keep failing.
    pub fn lost(&self) -> HashSet<CaseId> {
        self.with(|case| case.counts.can_be_lost())
    }

    /// The candidates that have fewer results of confirmation runs than planned. A runner error may be no result.
    pub fn unfinished(&self, planned: Sides<u32>) -> HashSet<CaseId> {
        self.with(|case| case.is_open() && !case.counts.has_all(planned))
    }

    fn with(&self, holds: impl Fn(&Runs) -> bool) -> HashSet<CaseId> {
        self.cases.iter().filter(|case| holds(case)).map(|case| case.id.clone()).collect()
    }

    /// Chooses the number of confirmation runs from a range, if this many cases flipped.
    pub fn confirmation_count(
        &self,
        flipped: usize,
        repeats_baseline: bool,
        runs: RangeInclusive<u32>,
    ) -> ConfirmationCount {
        let first: Vec<Sides<u32>> = self.cases.iter().map(|case| case.counts.first()).collect();
        ConfirmationCount::new(&first, flipped, repeats_baseline, runs, self.level)
    }

    /// The smallest number of baseline runs with which this many lost cases are convicted after the planned confirmation runs. `None`
    /// if no reasonable number is enough.
    pub fn deciding_baseline(&self, lost: usize, planned: Sides<u32>) -> Option<u32> {
        let cases: Vec<_> = self.cases.iter().map(|case| case.counts.lost_runs(planned)).collect();
        deciding_baseline(&cases, lost, self.level, self.most)
    }
}

/// The smallest number of cases of this many that are convicted if all of them keep failing: with this many runs of the baseline, and
/// one run of new that `most` confirmation runs follow. `None` if even all cases are not.
pub fn smallest_confirmable(cases: usize, baseline: u32, most: u32, thresholds: &Thresholds) -> Option<usize> {
    let first = vec![Sides::new(baseline, 1); cases];
    let level = thresholds.alpha.value() * LOST_SHARE;
    let convicts = |lost: &usize| {
        !matches!(
            ConfirmationCount::new(&first, *lost, false, most..=most, level).decides,
            Decides::Undecided | Decides::Nothing
        )
    };
    (1..=cases).find(convicts)
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::evaluation::Tier;
    use fastrand::Rng;

    use super::*;
    use crate::repeats::measures::{CaseResults, Measures, RunResult};
    use crate::statistics::LostTest;

    const ALPHA: f64 = 0.05;

    /// Nights of a synthetic agent that flipped cases are run again in, as by `--confirm auto`.
    struct Nights {
        /// The probabilities with which a case is solved, on the baseline and on new.
        rates: Vec<(f64, f64)>,
        baseline: u32,
        /// Whether the agent of the baseline runs the flipped cases again too.
        repeats_baseline: bool,
        /// The probability of a runner error.
        errors: f64,
    }

    impl Nights {
        /// The share of nights that the tests of the pass rates and of lost cases convict.
        fn convicted(&self, nights: u32) -> f64 {
            let red = (0..nights).filter(|seed| self.is_convicted(&mut Rng::with_seed(u64::from(*seed)))).count();
            red as f64 / f64::from(nights)
        }

        fn is_convicted(&self, random: &mut Rng) -> bool {
            let mut run = |rate: f64| match random.f64() {
                error if error < self.errors => RunResult::Failed,
                _ => RunResult::Answered { met: Some(random.f64() < rate), evidence_holds: None },
            };
            let mut confirms = ConfirmationRuns::one_run();
            confirms.confirms.baseline = vec![false; self.baseline as usize];
            let mut cases: Vec<CaseResults> = self
                .rates
                .iter()
                .map(|(old, new)| CaseResults {
                    baseline: (0..self.baseline).map(|_| run(*old)).collect(),
                    new: vec![run(*new)],
                })
                .collect();
            let counts = |cases: &[CaseResults], confirms: &ConfirmationRuns| -> Vec<LostCounts> {
                cases.iter().map(|case| LostCounts::from_case(case, confirms)).collect()
            };
            let first = counts(&cases, &confirms);
            let runs: Vec<_> = first.iter().map(LostCounts::first).collect();
            let flipped = first.iter().filter(|case| case.can_be_lost()).count();
            let count = ConfirmationCount::new(&runs, flipped, self.repeats_baseline, 1..=8, ALPHA * LOST_SHARE).runs;
            let planned = Sides::new(if self.repeats_baseline { count } else { 0 }, count);
            for _ in 0..8 {
                let open = counts(&cases, &confirms);
                for (index, case) in cases.iter_mut().enumerate() {
                    let runs_again = open[index].can_be_lost() && !open[index].has_all(planned);
                    let (old, new) = self.rates[index];
                    let mut again = |rate: f64| if runs_again { run(rate) } else { RunResult::Unknown };
                    if self.repeats_baseline {
                        case.baseline.push(again(old));
                    }
                    case.new.push(again(new));
                }
                confirms.confirms.new.push(true);
                if self.repeats_baseline {
                    confirms.confirms.baseline.push(true);
                }
            }
            (confirms.planned, confirms.ends_early) = (planned, true);
            let level = ALPHA * LOST_SHARE;
            let thresholds = Thresholds::default().with_alpha(ALPHA - level);
            let measures = Measures::new(&cases, &confirms, &thresholds, Some(level), None);
            let is_regression = |case: &Vec<_>| {
                case.iter()
                    .any(|measure: &counterproof_artifact::evaluation::CaseMeasure| measure.tier == Tier::Regression)
            };
            measures.lost.is_some_and(|test: LostTest| test.is_significant(level))
                || measures.by_case.iter().any(is_regression)
                || measures.suite.iter().any(|measure| measure.fell)
        }
    }

    fn nights(rates: &[f64], cases: usize, baseline: u32) -> Nights {
        let rates = rates.iter().map(|rate| (*rate, *rate)).cycle().take(cases).collect();
        Nights { rates, baseline, repeats_baseline: false, errors: 0.0 }
    }

    const MIXED: [f64; 10] = [1.0, 0.98, 0.95, 0.9, 0.7, 0.5, 0.3, 1.0, 0.0, 0.85];

    #[test]
    fn at_most_one_night_in_twenty_is_convicted_if_nothing_changed() {
        // The last rates are those at which most cases are lost by chance.
        let worst = |cases, baseline| nights(&[f64::from(baseline) / f64::from(baseline + 5)], cases, baseline);
        for (name, suite) in [
            ("mixed, five baseline runs", nights(&MIXED, 50, 5)),
            ("mixed, one baseline run", nights(&MIXED, 50, 1)),
            ("mixed, the baseline's agent too", Nights { repeats_baseline: true, ..nights(&MIXED, 50, 1) }),
            ("mixed, runner errors", Nights { errors: 0.02, ..nights(&MIXED, 50, 5) }),
            ("mixed, many runner errors", Nights { errors: 0.2, ..nights(&MIXED, 20, 5) }),
            ("worst, five baseline runs", worst(20, 5)),
            ("worst, one baseline run", worst(20, 1)),
        ] {
            let share = suite.convicted(600);
            // Four standard deviations of the count at 5 %.
            assert!(share <= ALPHA + 0.036, "{name}: {share}");
        }
    }

    #[test]
    fn one_case_of_fifty_that_always_fails_is_convicted() {
        for (baseline, repeats_baseline) in [(5, false), (1, true)] {
            for errors in [0.0, 0.02] {
                let mut suite = Nights { repeats_baseline, errors, ..nights(&[0.98], 50, baseline) };
                suite.rates[0] = (1.0, 0.0);
                let share = suite.convicted(100);
                assert!(share >= 0.95, "{baseline} {repeats_baseline} {errors}: {share}");
            }
        }
    }
}
