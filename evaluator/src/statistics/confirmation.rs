//! Confirmation: cases that look worse are run again, and then judged by all their runs.
//!
//! A case is selected for confirmation because its first runs look bad, so these runs are biased against it. The test therefore
//! conditions on the selection: given how often the case passed in all its runs, every arrangement of the passes over the runs
//! that would have led to a confirmation is equally likely if nothing changed. The p-value is the share of these arrangements in
//! which new passes as seldom. A baseline run and a new run that contradict each other can only be arranged in one way, so they
//! add nothing to the confirmation runs; of twenty baseline runs, nearly everything remains.
//!
//! The null distributions of different cases are independent, so they form a [`Family`], with the same correction and the same
//! joint test of all cases as runs without a selection.

use std::collections::BTreeMap;

use counterproof_artifact::evaluation::Tier;

use super::exact::{CaseTests, Distribution};
use super::family::{self, Family};
use super::suite_decision::Thresholds;
use super::suite_decision::{SuiteDecision, TestResult, is_hint, judge_with, tier};
use super::tally::{CaseTallies, is_at_most};

/// The share of `alpha` for the test without the confirmation runs. With one run of new it can only find a fall of many cases at
/// once, which the confirmation runs show more clearly.
const INITIAL_SHARE: f64 = 0.1;

/// The same where new has several runs before the confirmation.
const INITIAL_SHARE_OF_SEVERAL: f64 = 0.5;

/// One case with the runs that decided about its confirmation, and the confirmation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaseRuns {
    /// The runs before the confirmation.
    pub initial: CaseTallies,
    /// The confirmation runs; zero on the sides that were not run again.
    pub confirmation: CaseTallies,
}

impl CaseRuns {
    /// All runs.
    pub fn all(self) -> CaseTallies {
        self.initial.plus(self.confirmation)
    }

    /// Whether the confirmation runs can decide anything: new ran again, and the baseline has runs that did not select the case.
    fn is_confirmed(self, tests: &mut CaseTests, thresholds: &Thresholds) -> bool {
        // A single baseline run that passed and a new run that failed can be arranged in one way only, so that they decide
        // nothing.
        let has_reference = self.confirmation.baseline.runs() > 0 || self.initial.baseline.runs() > 1;
        self.confirmation.new.runs() > 0 && has_reference && is_hint(self.initial, tests, thresholds)
    }
}

/// Judges all cases of a suite, of which some have confirmation runs. Both tests together, with and without the confirmation
/// runs, have the false alarm rate `alpha`.
pub fn judge_confirmed(cases: &[CaseRuns], thresholds: &Thresholds, tests: &mut CaseTests) -> SuiteDecision {
    let initial: Vec<CaseTallies> = cases.iter().map(|case| case.initial).collect();
    let confirmed: Vec<usize> =
        (0..cases.len()).filter(|index| cases[*index].is_confirmed(tests, thresholds)).collect();
    if confirmed.is_empty() {
        let mut decision = judge_with(&initial, thresholds, tests);
        count_all_runs(&mut decision, cases);
        return decision;
    }
    let alpha = thresholds.alpha.value();
    let is_repeated = initial.iter().any(|case| case.new.runs() > 1);
    // Both tests can fail the gate, so that `alpha` is divided between them.
    let share = if is_repeated { INITIAL_SHARE_OF_SEVERAL } else { INITIAL_SHARE };
    let mut decision = judge_with(&initial, &thresholds.with_alpha(alpha * share), tests);
    let mut outcomes = Vec::new();
    for index in &confirmed {
        outcomes.push(Outcome::new(cases[*index], tests, thresholds));
    }
    add_confirmation(&mut decision, &confirmed, &outcomes, Levels { share, alpha, thresholds });
    count_all_runs(&mut decision, cases);
    decision
}

/// Judges all cases by the runs before the confirmation, with the whole of `alpha`. For confirmation runs that ended when a case could
/// no longer be lost: their number depends on their results, so that only the test of lost cases may count them.
pub fn judge_first_runs(cases: &[CaseRuns], thresholds: &Thresholds, tests: &mut CaseTests) -> SuiteDecision {
    let initial: Vec<CaseTallies> = cases.iter().map(|case| case.initial).collect();
    let mut decision = judge_with(&initial, thresholds, tests);
    count_all_runs(&mut decision, cases);
    let again = cases.iter().map(|case| case.confirmation.new.runs() > 0);
    for (judged, _) in decision.cases.iter_mut().zip(again).filter(|(_, again)| *again) {
        // A hint of the first runs is withdrawn if the case passed again.
        if let (Some(p), true) = (judged.p, judged.tier != Tier::Regression) {
            judged.tier = tier(judged.tallies, TestResult { p, significant: false }, thresholds);
        }
    }
    decision
}

/// Shows all runs of the cases that were run again, also of those that their runs cannot confirm.
fn count_all_runs(decision: &mut SuiteDecision, cases: &[CaseRuns]) {
    for (judged, case) in decision.cases.iter_mut().zip(cases) {
        if case.confirmation.new.runs() > 0 {
            judged.tallies = case.all();
        }
    }
}

#[derive(Clone, Copy)]
struct Levels<'a> {
    /// The share of the initial test.
    share: f64,
    alpha: f64,
    thresholds: &'a Thresholds,
}

impl Levels<'_> {
    /// The p-value of both tests together (Bonferroni, with weights).
    fn combined(self, initial: f64, confirmed: f64) -> f64 {
        (initial / self.share).min(confirmed / (1.0 - self.share)).min(1.0)
    }
}

fn add_confirmation(decision: &mut SuiteDecision, confirmed: &[usize], outcomes: &[Outcome], levels: Levels<'_>) {
    let level = levels.alpha * (1.0 - levels.share);
    let family = Family::from_draws(outcomes.iter().map(|outcome| (outcome.draws.clone(), outcome.seen)));
    let p: Vec<f64> = outcomes.iter().map(Outcome::p).collect();
    let chances = family.chances(p.iter().copied().fold(1.0, f64::min));
    let open = is_at_most(chances.either, level);
    for ((index, outcome), (p, corrected)) in
        confirmed.iter().zip(outcomes).zip(p.iter().zip(family::discrete(&p, &family)))
    {
        let case = &mut decision.cases[*index];
        // The initial test has a share of `alpha` for itself, and confirmation runs do not withdraw its result.
        let was_significant = case.tier == Tier::Regression;
        let significant = was_significant || (open && is_at_most(corrected, level));
        (case.p, case.corrected) = (Some(*p), Some(corrected));
        case.tier = tier(outcome.all, TestResult { p: *p, significant }, levels.thresholds);
    }
    if let Some(suite) = &mut decision.suite {
        suite.rejected |= open && is_at_most(chances.suite, level);
        suite.p = levels.combined(suite.p, chances.suite);
    }
    decision.p = decision.p.map(|p| levels.combined(p, chances.either));
}

/// What a confirmed case shows, and what it could have shown.
struct Outcome {
    all: CaseTallies,
    /// The passes of new over all runs, given the passes of both sides and the selection.
    draws: Distribution,
    seen: usize,
}

impl Outcome {
    fn new(case: CaseRuns, tests: &mut CaseTests, thresholds: &Thresholds) -> Self {
        let all = case.all();
        let selects = |passed: (u32, u32), tests: &mut CaseTests| {
            is_hint(case.initial.with_passes(passed.0, passed.1), tests, thresholds)
        };
        Self { all, draws: draws(case, |passed| selects(passed, tests)), seen: all.new.passed as usize }
    }

    fn p(&self) -> f64 {
        self.draws.at_most(self.seen).min(1.0)
    }
}

/// The passes of new over all runs of a case, if all arrangements of the passes over the runs are equally likely, among those in
/// which the initial passes of baseline and new select the case.
fn draws(case: CaseRuns, mut selects: impl FnMut((u32, u32)) -> bool) -> Distribution {
    let passed = case.all().baseline.passed + case.all().new.passed;
    // The number of ways to choose passes among runs, up to a factor that cancels: the mass of a fair coin.
    let ways = |runs: u32| Distribution::binomial(runs, 0.5).into_mass();
    let CaseRuns { initial, confirmation } = case;
    let (first, second) = (ways(initial.baseline.runs()), ways(initial.new.runs()));
    let (third, fourth) = (ways(confirmation.baseline.runs()), ways(confirmation.new.runs()));
    let mut masses: BTreeMap<u64, f64> = BTreeMap::new();
    for (of_baseline, mass) in (0..).zip(&first) {
        for (of_new, more) in (0..).zip(&second).filter(|(of_new, _)| of_baseline + of_new <= passed) {
            if !selects((of_baseline, of_new)) {
                continue;
            }
            let left = passed - of_baseline - of_new;
            for (confirmed, new_mass) in (0..=left).zip(&fourth) {
                let Some(baseline_mass) = third.get((left - confirmed) as usize) else { continue };
                *masses.entry(u64::from(of_new + confirmed)).or_default() += mass * more * new_mass * baseline_mass;
            }
        }
    }
    let total: f64 = masses.values().sum();
    for mass in masses.values_mut() {
        *mass /= total;
    }
    Distribution::from_masses(&masses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Tally, fisher};

    fn tallies(baseline: (u32, u32), new: (u32, u32)) -> CaseTallies {
        CaseTallies { baseline: Tally::new(baseline.0, baseline.1), new: Tally::new(new.0, new.1) }
    }

    fn flipped(baseline: (u32, u32), new: (u32, u32)) -> CaseRuns {
        CaseRuns { initial: tallies((1, 0), (0, 1)), confirmation: tallies(baseline, new) }
    }

    fn unflipped() -> CaseRuns {
        CaseRuns { initial: tallies((1, 0), (1, 0)), ..CaseRuns::default() }
    }

    fn p(case: CaseRuns) -> f64 {
        Outcome::new(case, &mut CaseTests::default(), &Thresholds::default()).p()
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn a_flip_of_one_run_adds_nothing_to_the_confirmation_runs() {
        for (baseline, new) in [((4, 0), (0, 4)), ((4, 0), (1, 3)), ((3, 1), (0, 4)), ((2, 2), (2, 2))] {
            let case = flipped(baseline, new);
            assert!(close(p(case), fisher(case.confirmation)), "{baseline:?} {new:?}: {}", p(case));
        }
    }

    #[test]
    fn the_p_value_is_the_share_of_selected_arrangements() {
        // Every arrangement of the passes over all runs, counted one by one.
        let thresholds = Thresholds::default();
        let mut tests = CaseTests::default();
        for (initial, confirmation) in [
            (tallies((5, 1), (1, 2)), tallies((0, 0), (0, 3))),
            (tallies((3, 0), (1, 2)), tallies((2, 1), (1, 2))),
            (tallies((6, 2), (0, 1)), tallies((0, 0), (1, 3))),
        ] {
            let case = CaseRuns { initial, confirmation };
            let sizes = [initial.baseline, initial.new, confirmation.baseline, confirmation.new].map(Tally::runs);
            let passed = case.all().baseline.passed + case.all().new.passed;
            let (mut selected, mut as_bad) = (0_u32, 0_u32);
            for arrangement in (0_u32..1 << sizes.iter().sum::<u32>()).filter(|bits| bits.count_ones() == passed) {
                let mut rest = arrangement;
                let [a, b, _, d] = sizes.map(|size| {
                    let group = rest & ((1 << size) - 1);
                    rest >>= size;
                    group.count_ones()
                });
                if is_hint(initial.with_passes(a, b), &mut tests, &thresholds) {
                    selected += 1;
                    as_bad += u32::from(b + d <= case.all().new.passed);
                }
            }
            let share = f64::from(as_bad) / f64::from(selected);
            assert!(close(p(case), share), "{case:?}: {} {share}", p(case));
        }
    }

    #[test]
    fn a_case_that_collapsed_is_confirmed_among_fifty_and_one_that_flips_back_is_not() {
        let mut cases = vec![unflipped(); 50];
        cases[3] = flipped((4, 0), (0, 4));
        cases[9] = flipped((3, 1), (3, 1));
        let decision = judge_confirmed(&cases, &Thresholds::default(), &mut CaseTests::default());
        assert_eq!((decision.cases[3].tier, decision.alarm()), (Tier::Regression, true));
        assert_ne!(decision.cases[9].tier, Tier::Regression);
        assert_eq!(decision.cases[3].tallies, tallies((5, 0), (0, 5)));
        cases[3] = flipped((4, 0), (3, 1));
        assert!(!judge_confirmed(&cases, &Thresholds::default(), &mut CaseTests::default()).alarm());
    }

    #[test]
    fn twenty_baseline_runs_and_four_failures_of_new_decide_without_a_second_baseline() {
        let quiet = CaseRuns { initial: tallies((20, 0), (1, 0)), ..CaseRuns::default() };
        let mut cases = vec![quiet; 50];
        cases[0] = CaseRuns { initial: tallies((20, 0), (0, 1)), confirmation: tallies((0, 0), (0, 4)) };
        let decision = judge_confirmed(&cases, &Thresholds::default(), &mut CaseTests::default());
        assert_eq!(decision.cases[0].tier, Tier::Regression);
    }

    #[test]
    fn one_baseline_run_that_is_not_repeated_confirms_nothing() {
        let mut cases = vec![unflipped(); 50];
        cases[0] = flipped((0, 0), (0, 4));
        assert!(!judge_confirmed(&cases, &Thresholds::default(), &mut CaseTests::default()).alarm());
    }

    #[test]
    fn the_false_alarm_rate_holds_at_every_pass_rate() {
        // Two cases at one rate, every outcome of their initial runs and of three confirmation runs a side.
        let (thresholds, mut tests) = (Thresholds::default(), CaseTests::default());
        for rate in [0.2, 0.4, 0.5, 0.6, 0.8, 0.9] {
            let of = |passed: bool| if passed { rate } else { 1.0 - rate };
            let binomial: Vec<f64> = Distribution::binomial(3, rate).into_mass();
            let mut outcomes = Vec::new();
            for (baseline, new) in [(true, true), (true, false), (false, true), (false, false)] {
                let initial = tallies((u32::from(baseline), u32::from(!baseline)), (u32::from(new), u32::from(!new)));
                let mass = of(baseline) * of(new);
                if baseline && !new {
                    for (old, more) in (0..).zip(&binomial) {
                        for (other, most) in (0..).zip(&binomial) {
                            let confirmation = tallies((old, 3 - old), (other, 3 - other));
                            outcomes.push((CaseRuns { initial, confirmation }, mass * more * most));
                        }
                    }
                } else {
                    outcomes.push((CaseRuns { initial, ..CaseRuns::default() }, mass));
                }
            }
            let mut alarm = 0.0;
            for (first, mass) in &outcomes {
                for (second, more) in &outcomes {
                    let decision = judge_confirmed(&[*first, *second], &thresholds, &mut tests);
                    alarm += if decision.alarm() { mass * more } else { 0.0 };
                }
            }
            assert!(alarm <= 0.05 + 1e-9, "{alarm} at {rate}");
        }
    }
}
