//! Sequential tests: judges the cases after each round of new against a fixed baseline. A decided case stops.
//!
//! Testing after every round and stopping at the first alarm raises more false alarms than testing once. Therefore a case is
//! tested by the smallest of its p-values over all looks, and that value is compared with its distribution under the null
//! hypothesis, over all rounds up to the maximum. This is the constant level of Pocock (1977), computed exactly; like Boschloo's
//! test, it maximises over the pass rates. The result is a valid p-value whenever and for whatever reason the case stops.

use std::collections::BTreeMap;

use super::correction::benjamini_hochberg;
use super::distribution::Distribution;
use super::exact::{CaseTests, Method, fisher, golden_section};
use super::family::Family;
use super::level::is_at_most;
use super::suite_decision::{CaseJudgement, SuiteDecision, SuiteJudgement, TestResult, Tier, rates, tier, untested};
use super::tally::{CaseTallies, Tally};
use super::thresholds::Thresholds;

/// The maximum number of runs of both sides for the exact computation. With more runs, p-values are multiplied by the number of
/// looks (Bonferroni): the cost of the exact computation grows with the runs and the square of the rounds.
const EXACT_UP_TO: u32 = 200;

/// The number of steps of the grid of pass rates. The best rate of the grid is then refined.
const RATES: u32 = 64;

/// Outcomes of baseline with a smaller probability are skipped. The error is far below any p-value that matters.
const NEGLIGIBLE: f64 = 1e-12;

/// One case: the runs of baseline, and the rounds of new.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaseRounds {
    /// The passes and failures of the known-good side.
    pub baseline: Tally,
    /// Whether new passed, in the order of the rounds. Rounds without a result of the case are left out.
    pub new: Vec<bool>,
    /// The number of full rounds without a result of the case.
    pub left_out: usize,
}

impl CaseRounds {
    /// The counts after this number of rounds.
    pub fn after(&self, rounds: usize) -> CaseTallies {
        CaseTallies { baseline: self.baseline, new: self.new.iter().copied().take(rounds).collect() }
    }

    /// The counts after this number of full rounds. Later rounds do not replace the rounds without a result: whether a case has
    /// later rounds depends on its results, which would bias the counts.
    pub fn whole(&self, rounds: usize) -> CaseTallies {
        self.after(rounds.saturating_sub(self.left_out))
    }
}

/// Judges all cases after some of at most `max` rounds. A case with the tier regression or steady is decided and needs no further
/// round; later rounds never withdraw a regression.
///
/// Half of the false alarm rate is spent on the cases, corrected by Benjamini & Hochberg (1995). The other half is spent on the
/// suite, which is tested once, on the full rounds: the number of later rounds of a case depends on its results and would bias the
/// test. The result for the suite is not valid before the full rounds are complete. A single case gets the whole rate.
pub fn judge_rounds(cases: &[CaseRounds], max: u32, thresholds: &Thresholds, tests: &mut RoundTests) -> SuiteDecision {
    let tallies: Vec<CaseTallies> = cases.iter().map(|case| case.after(usize::MAX)).collect();
    let tested: Vec<usize> = (0..cases.len()).filter(|index| tallies[*index].drop().is_some()).collect();
    let alone = cases.iter().filter(|case| case.baseline.runs() > 0).count() < 2;
    let level = thresholds.alpha.value() / if alone { 1.0 } else { 2.0 };

    // Every case with a baseline counts, even without a run of new yet; otherwise the family would grow with the rounds.
    let mut p: Vec<f64> = tested.iter().map(|index| tests.fall(&cases[*index], max)).collect();
    let waiting = cases.iter().filter(|case| case.baseline.runs() > 0 && case.new.is_empty()).count();
    let own = p.clone();
    p.extend(std::iter::repeat_n(1.0, waiting));
    let corrected = benjamini_hochberg(&p);

    let mut judged: Vec<CaseJudgement> = tallies.iter().map(|case| untested(*case, Method::Sequential)).collect();
    for ((index, p), corrected) in tested.into_iter().zip(own).zip(&corrected) {
        let case = &mut judged[index];
        (case.p, case.corrected) = (Some(p), Some(*corrected));
        case.tier = tier(case.tallies, TestResult { p, significant: is_at_most(*corrected, level) }, thresholds);
        // The correction can only make the case harder to decide, so testing without it is safe.
        let is_left = cases[index].new.len() < max as usize;
        case.undecidable = is_left && !case.is_decided() && !tests.can_decide(&cases[index], max, level, thresholds);
    }
    let suite = if alone { None } else { suite(cases, max, level, thresholds, &mut tests.cases) };
    let smallest = corrected.iter().copied().reduce(f64::min);
    let worst = suite.as_ref().map_or(smallest, |suite| smallest.map(|p| p.min(suite.p)));
    // Bonferroni over the two halves of the rate: cases and suite.
    let overall = if alone { worst } else { worst.map(|p| (2.0 * p).min(1.0)) };
    SuiteDecision { cases: judged, suite, p: overall }
}

/// The indexes of the open cases: undecided, and decidable by the remaining rounds.
pub fn open(decision: &SuiteDecision) -> impl Iterator<Item = usize> {
    decision
        .cases
        .iter()
        .enumerate()
        .filter(|(_, case)| !case.is_decided() && !case.undecidable)
        .map(|(index, _)| index)
}

/// Judges the suite on the rounds that include all cases.
fn suite(
    cases: &[CaseRounds],
    max: u32,
    level: f64,
    thresholds: &Thresholds,
    tests: &mut CaseTests,
) -> Option<SuiteJudgement> {
    let rounds = thresholds.full_rounds.min(max) as usize;
    let whole = cases.iter().map(|case| case.whole(rounds)).filter(|case| case.drop().is_some());
    let whole: Vec<CaseTallies> = whole.collect();
    if whole.len() < 2 {
        return None;
    }
    let family = Family::new(&whole, tests);
    let (p, p_better) = family.suite();
    let (baseline_rate, new_rate) = rates(&whole);
    let informative = family.informative();
    Some(SuiteJudgement { p, p_better, baseline_rate, new_rate, informative, rejected: is_at_most(p, level) })
}

/// The sequential tests of cases, with a cache of their tables.
#[derive(Debug, Default)]
pub struct RoundTests {
    plans: BTreeMap<(u32, u32), Plan>,
    cases: CaseTests,
}

impl RoundTests {
    /// The one-sided p-value for a fall over all looks so far, of at most `max`. 1 where a side has no run.
    pub fn fall(&mut self, case: &CaseRounds, max: u32) -> f64 {
        let runs = case.baseline.runs();
        if runs == 0 {
            return 1.0;
        }
        // More rounds than planned are looks too, so they count towards the maximum.
        let max = max.max(u32::try_from(case.new.len()).unwrap_or(u32::MAX));
        if runs.saturating_add(max) > EXACT_UP_TO {
            // Bonferroni over the planned looks, not the looks so far: the p-value must stay valid when more rounds follow.
            let looks = (1..=case.new.len()).map(|rounds| fisher(case.after(rounds)));
            return (looks.fold(1.0, f64::min) * f64::from(max)).min(1.0);
        }
        self.plans.entry((runs, max)).or_insert_with(|| Plan::new(runs, max)).fall(case)
    }

    /// Whether the remaining rounds, of at most `max`, can decide a case at `level`. Only the two extreme outcomes are tested: new
    /// fails in all remaining rounds, or passes in all. If neither decides the case, no other outcome does.
    pub fn can_decide(&mut self, case: &CaseRounds, max: u32, level: f64, thresholds: &Thresholds) -> bool {
        [false, true].into_iter().any(|passes| {
            let mut then = case.clone();
            then.new.resize(then.new.len().max(max as usize), passes);
            let p = self.fall(&then, max);
            let test = TestResult { p, significant: is_at_most(p, level) };
            matches!(tier(then.after(usize::MAX), test, thresholds), Tier::Regression | Tier::Steady)
        })
    }
}

/// The precomputed probabilities for one number of baseline runs and one maximum number of rounds.
#[derive(Debug)]
struct Plan {
    baseline_runs: u32,
    max: u32,
    /// Fisher's p-value by the passes of baseline, the round (from the first), and the passes of new.
    fisher: Vec<Vec<Vec<f64>>>,
    known: BTreeMap<u64, f64>,
}

impl Plan {
    fn new(baseline_runs: u32, max: u32) -> Self {
        let row = |round: u32| vec![1.0; round as usize + 1];
        let rows: Vec<Vec<f64>> = (1..=max).map(row).collect();
        let mut fisher = vec![rows; baseline_runs as usize + 1];
        for (index, round) in (1..=max).enumerate() {
            for passed in 0..=baseline_runs + round {
                let mut sum = 0.0;
                for (of_new, mass) in Distribution::hypergeometric(baseline_runs, round, passed).iter() {
                    sum += mass;
                    fisher[passed as usize - of_new][index][of_new] = sum;
                }
            }
        }
        Self { baseline_runs, max, fisher, known: BTreeMap::new() }
    }

    fn fall(&mut self, case: &CaseRounds) -> f64 {
        let rounds = &self.fisher[case.baseline.passed as usize];
        let (mut passed, mut smallest) = (0, f64::INFINITY);
        for (round, outcome) in rounds.iter().zip(&case.new) {
            passed += usize::from(*outcome);
            smallest = round[passed].min(smallest);
        }
        // Under the null hypothesis, such a p-value occurs in nearly every case.
        if smallest > 0.5 { 1.0 } else { self.p(smallest) }
    }

    /// The probability under the null hypothesis that the smallest of Fisher's p-values over all rounds is at most `smallest`.
    fn p(&mut self, smallest: f64) -> f64 {
        if let Some(known) = self.known.get(&smallest.to_bits()) {
            return *known;
        }
        // For each number of passes of baseline and each round, the number of outcomes of new that raise an alarm. These are the
        // outcomes with the fewest passes, because Fisher's p-value grows with the passes of new.
        let alarms = self.fisher.iter().map(|rounds| {
            rounds.iter().map(|round| round.partition_point(|p| is_at_most(*p, smallest))).collect::<Vec<_>>()
        });
        let alarms: Vec<_> = alarms.collect();
        let chance = |step: f64| self.chance(&alarms, (step / f64::from(RATES)).clamp(1e-6, 1.0 - 1e-6));
        let at = |step: u32| (f64::from(step), chance(f64::from(step)));
        let best = (1..RATES).map(at).fold((0.0, 0.0), |best, now| if now.1 > best.1 { now } else { best });
        let p = best.1.max(golden_section(best.0 - 1.0, best.0 + 1.0, chance)).clamp(smallest.min(best.1), 1.0);
        self.known.insert(smallest.to_bits(), p);
        p
    }

    /// The probability of an alarm in any round, if every run of either side passes at the same rate.
    fn chance(&self, alarms: &[Vec<usize>], share: f64) -> f64 {
        let rate = (share * std::f64::consts::FRAC_PI_2).sin().powi(2);
        let baseline = Distribution::binomial(self.baseline_runs, rate);
        let mut sum = 0.0;
        for ((_, mass), alarms) in baseline.iter().zip(alarms) {
            if mass < NEGLIGIBLE || alarms.iter().all(|count| *count == 0) {
                continue;
            }
            // The probability of each number of passes on new without an alarm so far.
            let mut quiet = vec![0.0; self.max as usize + 1];
            quiet[0] = 1.0;
            for (round, count) in alarms.iter().enumerate() {
                // In descending order, because each entry still needs the old value of the entry below it.
                for passed in (0..=round + 1).rev() {
                    let from_below = if passed > 0 { quiet[passed - 1] * rate } else { 0.0 };
                    quiet[passed] = quiet[passed] * (1.0 - rate) + from_below;
                }
                // An alarm stops the case, so its probability leaves the random walk.
                quiet[..*count].fill(0.0);
            }
            sum += mass * (1.0 - quiet.iter().sum::<f64>()).max(0.0);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(baseline: Tally, new: &[(bool, usize)]) -> CaseRounds {
        CaseRounds {
            baseline,
            new: new.iter().flat_map(|(passed, count)| vec![*passed; *count]).collect(),
            left_out: 0,
        }
    }

    #[test]
    fn one_look_is_as_good_as_a_test_that_looks_once() {
        let mut tests = RoundTests::default();
        for (baseline, passed) in [(Tally::new(1, 0), false), (Tally::new(6, 1), false), (Tally::new(5, 2), true)] {
            let case = CaseRounds { baseline, new: vec![passed], left_out: 0 };
            let once = CaseTests::default().fall(case.after(1)).0;
            let over_looks = tests.fall(&case, 1);
            assert!((once - over_looks).abs() < 1e-6 || once > 0.5, "{once} {over_looks}");
        }
    }

    #[test]
    fn more_looks_cost_more() {
        let mut tests = RoundTests::default();
        let case = rounds(Tally::new(20, 0), &[(false, 3)]);
        let p: Vec<f64> = [3, 10, 30].into_iter().map(|max| tests.fall(&case, max)).collect();
        assert!(p[0] < p[1] && p[1] < p[2] && p[2] < 0.05, "{p:?}");
    }

    #[test]
    fn a_regression_stays_a_regression_in_later_rounds() {
        let mut tests = RoundTests::default();
        let mut case = rounds(Tally::new(20, 0), &[(false, 4)]);
        let before = tests.fall(&case, 20);
        case.new.extend([true; 16]);
        assert!(tests.fall(&case, 20) <= before);
    }

    #[test]
    fn the_chance_of_an_alarm_over_all_looks_is_never_above_the_p_value() {
        // Every course of five rounds against every outcome of five baseline runs, at several rates.
        let (runs, max, mut tests) = (5, 5, RoundTests::default());
        let mut courses = Vec::new();
        for passed in 0..=runs {
            for course in 0u32..1 << max {
                let new: Vec<bool> = (0..max).map(|round| course >> round & 1 == 1).collect();
                let case = CaseRounds { baseline: Tally::new(passed, runs - passed), new, left_out: 0 };
                let p = tests.fall(&case, max);
                courses.push((case, p));
            }
        }
        for rate in [0.3, 0.5, 0.7, 0.8, 0.9, 0.97] {
            for level in [0.01, 0.05, 0.1, 0.2] {
                let alarm: f64 = courses
                    .iter()
                    .filter(|(_, p)| *p <= level)
                    .map(|(case, _)| {
                        let ways = Distribution::binomial(runs, rate).iter().nth(case.baseline.passed as usize);
                        let course: f64 = case.new.iter().map(|pass| if *pass { rate } else { 1.0 - rate }).product();
                        ways.map_or(0.0, |(_, mass)| mass) * course
                    })
                    .sum();
                assert!(alarm <= level + 1e-6, "{alarm} at {rate}, {level}");
            }
        }
    }

    #[test]
    fn a_case_is_decided_when_it_collapses_and_when_it_keeps_passing() {
        let thresholds = Thresholds::default();
        let mut tests = RoundTests::default();
        let mut judge = |case: CaseRounds| judge_rounds(&[case], 20, &thresholds, &mut tests);
        let fell = judge(rounds(Tally::new(20, 0), &[(false, 4)]));
        assert_eq!((fell.cases[0].tier, open(&fell).count()), (Tier::Regression, 0));
        let kept = judge(rounds(Tally::new(20, 0), &[(true, 7)]));
        assert_eq!((kept.cases[0].tier, open(&kept).count()), (Tier::Steady, 0));
        let early = judge(rounds(Tally::new(20, 0), &[(true, 3)]));
        assert_eq!(open(&early).collect::<Vec<_>>(), [0]);
        assert!(!early.alarm() && fell.alarm());
    }

    #[test]
    fn a_case_is_given_up_only_where_nothing_that_may_come_decides_it() {
        const MAX: u32 = 6;
        let (thresholds, mut tests) = (Thresholds::default(), RoundTests::default());
        let mut given_up = 0;
        for (passed, failed) in (0..=4).flat_map(|passed| (0..=4).map(move |failed| (passed, failed))) {
            for course in 0..1_u32 << MAX {
                let mut new = Vec::new();
                let mut undecidable = false;
                for round in 0..MAX {
                    new.push(course >> round & 1 == 1);
                    let case = CaseRounds { baseline: Tally::new(passed, failed), new: new.clone(), left_out: 0 };
                    let judged = judge_rounds(&[case], MAX, &thresholds, &mut tests).cases.remove(0);
                    assert!(!(undecidable && judged.is_decided()), "{passed} and {failed}, then {new:?}: {judged:?}");
                    undecidable |= judged.undecidable;
                }
                given_up += usize::from(undecidable);
            }
        }
        assert!(given_up > 0);
    }

    #[test]
    fn the_suite_rests_on_the_rounds_that_ask_all_cases() {
        let thresholds = Thresholds { full_rounds: 2, ..Thresholds::default() };
        let mut cases = vec![rounds(Tally::new(5, 0), &[(true, 2)]); 30];
        let before = judge_rounds(&cases, 10, &thresholds, &mut RoundTests::default()).suite.unwrap();
        cases[0].new.extend([false; 8]);
        let after = judge_rounds(&cases, 10, &thresholds, &mut RoundTests::default()).suite.unwrap();
        assert_eq!(before, after);
    }

    #[test]
    fn many_runs_are_corrected_by_the_number_of_looks() {
        let case = rounds(Tally::new(190, 0), &[(true, 4), (false, 16)]);
        let smallest = (1..=20).map(|rounds| fisher(case.after(rounds))).fold(1.0, f64::min);
        let p = RoundTests::default().fall(&case, 20);
        assert!((p - smallest * 20.0).abs() < 1e-12);
    }
}
