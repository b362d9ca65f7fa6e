//! Judges the repeats of a whole suite: each case, and all cases at once, with one false alarm rate for both levels; and the thresholds
//! of the tiers, the `[statistics]` table of `counterproof.toml`. `docs/statistics.md` has the methods and the reasons for the defaults.

use counterproof_artifact::Share;
use counterproof_artifact::evaluation::Tier;
use serde::Deserialize;

use super::exact::CaseTests;
use super::family::{self, Family};
use super::tally::{CaseTallies, ONE_SIDED_95, is_at_most, newcombe};

/// The result for one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseJudgement {
    /// The passes and failures of both sides.
    pub tallies: CaseTallies,
    /// The conclusion, the first tier that applies.
    pub tier: Tier,
    /// One-sided p-value for a fall; `None` if a side has no run.
    pub p: Option<f64>,
    /// The p-value corrected over the cases.
    pub corrected: Option<f64>,
}

impl CaseJudgement {
    /// Whether the case is decided, so that further runs are not needed.
    pub const fn is_decided(&self) -> bool {
        matches!(self.tier, Tier::Regression | Tier::Steady)
    }
}

/// The test of all cases together.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteJudgement {
    /// One-sided p-value for a fall, stratified by case.
    pub p: f64,
    /// Whether the suite as a whole regressed.
    pub rejected: bool,
}

/// The decision on a suite: on each case, and on all cases together.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteDecision {
    /// The result for each case, in the order of the cases.
    pub cases: Vec<CaseJudgement>,
    /// `None` if fewer than two cases have runs on both sides, since the only case is then the suite.
    pub suite: Option<SuiteJudgement>,
    /// The p-value of the worst result on either level, if nothing changed. Above the level, neither a case nor the suite is
    /// reported as a regression. `None` if no case has runs on both sides.
    pub p: Option<f64>,
}

impl SuiteDecision {
    /// Whether a case or the suite regressed.
    pub fn alarm(&self) -> bool {
        let regressed = self.cases.iter().any(|case| case.tier == Tier::Regression);
        regressed || self.suite.as_ref().is_some_and(|suite| suite.rejected)
    }
}

/// Judges all cases of a suite. Assumes that the runs of a case on a side are independent with equal pass probability.
pub fn judge(cases: &[CaseTallies], thresholds: &Thresholds) -> SuiteDecision {
    judge_with(cases, thresholds, &mut CaseTests::default())
}

/// Like [`judge`], with cached test tables that the next suite can reuse.
pub fn judge_with(cases: &[CaseTallies], thresholds: &Thresholds, tests: &mut CaseTests) -> SuiteDecision {
    let level = thresholds.alpha.value();
    // Cases without runs on both sides carry no information and would only weaken the correction.
    let tested: Vec<usize> = (0..cases.len()).filter(|index| cases[*index].drop().is_some()).collect();
    let tallies: Vec<CaseTallies> = tested.iter().map(|index| cases[*index]).collect();
    let p: Vec<f64> = tallies.iter().map(|case| tests.fall(*case).0).collect();

    let (corrected, suite, overall) = match *p {
        [] => (Vec::new(), None, None),
        // A single case needs no correction, and its own test has more power than the test of the suite.
        [p] => (vec![p], None, Some(p)),
        _ => {
            // Two levels are tested, each case and the suite. `either` is their joint p-value, so that the rate of false alarms holds
            // for both together.
            let family = Family::new(&tallies, tests);
            let chances = family.chances(p.iter().copied().fold(1.0, f64::min));
            let suite = SuiteJudgement {
                p: chances.suite,
                rejected: is_at_most(chances.either, level) && is_at_most(chances.suite, level),
            };
            (family::discrete(&p, &family), Some(suite), Some(chances.either))
        }
    };

    // The joint test gates both levels: no case is significant unless it is, even if its own corrected p-value is small.
    let open = overall.is_some_and(|overall| is_at_most(overall, level));
    let mut judged: Vec<CaseJudgement> = cases.iter().map(|case| untested(*case)).collect();
    for ((index, p), corrected) in tested.into_iter().zip(p).zip(corrected) {
        let case = &mut judged[index];
        case.p = Some(p);
        case.corrected = Some(corrected);
        case.tier = tier(case.tallies, TestResult { p, significant: open && is_at_most(corrected, level) }, thresholds);
    }
    SuiteDecision { cases: judged, suite, p: overall }
}

/// The one-sided p-value for a fall of these cases together, all of which have runs on both sides.
pub(crate) fn suite_p(cases: &[CaseTallies]) -> f64 {
    Family::new(cases, &mut CaseTests::default()).chances(1.0).suite
}

pub(super) fn untested(case: CaseTallies) -> CaseJudgement {
    CaseJudgement { tallies: case, tier: Tier::Unknown, p: None, corrected: None }
}

/// The result of the test for a fall of one case.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestResult {
    /// The uncorrected one-sided p-value.
    pub(super) p: f64,
    /// Whether the test is significant after correction.
    pub(super) significant: bool,
}

pub(super) fn tier(case: CaseTallies, test: TestResult, thresholds: &Thresholds) -> Tier {
    let Some(drop) = case.drop() else { return Tier::Unknown };
    // From the strongest conclusion to the weakest; the first that applies is the tier.
    if test.significant && fell_enough(case, thresholds) {
        Tier::Regression
    } else if is_likely(drop, test.p, thresholds) {
        Tier::Likely
    } else if reaches(drop, thresholds.watch_drop.value()) {
        Tier::Watch
    } else if steady(case, thresholds) {
        Tier::Steady
    } else {
        Tier::Unknown
    }
}

fn is_likely(drop: f64, p: f64, thresholds: &Thresholds) -> bool {
    is_at_most(p, thresholds.likely_p.value()) && reaches(drop, thresholds.likely_drop.value())
}

/// Whether a case looks worse in its own runs: it would have at least the tier `likely` or `watch`. These cases are worth a
/// confirmation.
pub fn is_hint(case: CaseTallies, tests: &mut CaseTests, thresholds: &Thresholds) -> bool {
    case.drop().filter(|drop| *drop > 0.0).is_some_and(|drop| {
        reaches(drop, thresholds.watch_drop.value()) || is_likely(drop, tests.fall(case).0, thresholds)
    })
}

/// Whether the fall is large enough for a regression.
pub(super) fn fell_enough(case: CaseTallies, thresholds: &Thresholds) -> bool {
    // A significant fall can be too small to matter, and a baseline that mostly fails has nothing to regress from.
    let passed = case.baseline.rate().unwrap_or(0.0);
    reaches(passed, thresholds.min_baseline.value())
        && case.drop().is_some_and(|drop| drop > 0.0 && reaches(drop, thresholds.min_drop.value()))
}

/// Whether a relevant fall is excluded.
pub(super) fn steady(case: CaseTallies, thresholds: &Thresholds) -> bool {
    newcombe(case, ONE_SIDED_95).is_some_and(|interval| interval.high < thresholds.relevant_drop.value())
}

/// Whether `share` is at least `threshold`, with a margin for rounding errors.
fn reaches(share: f64, threshold: f64) -> bool {
    share >= threshold - 1e-9
}

/// A number from 0 to 1. Parsed as a [`Share`], but without its resolution, which is too coarse for a significance level that
/// is divided by the number of tests.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Deserialize)]
#[serde(from = "Share")]
pub struct Fraction(f64);

impl Fraction {
    /// Returns the number.
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl From<Share> for Fraction {
    fn from(share: Share) -> Self {
        Self(share.value())
    }
}

/// The thresholds of the tiers. A drop is the observed pass rate of baseline minus the one of new.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// The false alarm rate: the maximum share of nights in which the statistics fail the gate although nothing changed, over all
    /// cases and the suite together.
    pub alpha: Fraction,
    /// The minimum drop of a regression. A smaller drop is not reported as one, even if it is significant.
    pub min_drop: Fraction,
    /// The minimum pass rate of baseline for a regression.
    pub min_baseline: Fraction,
    /// The maximum uncorrected p-value of the tier `likely`.
    pub likely_p: Fraction,
    /// The minimum drop of the tier `likely`.
    pub likely_drop: Fraction,
    /// The minimum drop of the tier `watch`, which applies at any p-value.
    pub watch_drop: Fraction,
    /// The drop that must be excluded with 95 % confidence for the tier `steady`.
    pub relevant_drop: Fraction,
    /// The probability with which the suggested number of further runs decides a case.
    pub power: Fraction,
    /// The maximum number of further runs that is suggested.
    pub more_runs_up_to: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            alpha: Fraction(0.05),
            min_drop: Fraction(0.10),
            min_baseline: Fraction(0.0),
            likely_p: Fraction(0.20),
            likely_drop: Fraction(0.15),
            watch_drop: Fraction(0.35),
            relevant_drop: Fraction(0.30),
            power: Fraction(0.80),
            more_runs_up_to: 100,
        }
    }
}

impl Thresholds {
    #[must_use]
    pub(crate) fn with_alpha(&self, alpha: f64) -> Self {
        Self { alpha: Fraction(alpha), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tally::Tally;

    fn case(passed: u32, failed: u32, new_passed: u32, new_failed: u32) -> CaseTallies {
        CaseTallies { baseline: Tally::new(passed, failed), new: Tally::new(new_passed, new_failed) }
    }

    fn tiers(cases: &[CaseTallies]) -> Vec<Tier> {
        judge(cases, &Thresholds::default()).cases.into_iter().map(|case| case.tier).collect()
    }

    #[test]
    fn counts_are_assigned_to_tiers() {
        for (case, tier) in [
            (case(10, 0, 5, 5), Tier::Regression),
            (case(5, 0, 4, 1), Tier::Unknown),
            (case(10, 0, 8, 2), Tier::Likely),
            (case(1, 0, 0, 1), Tier::Watch),
            (case(10, 0, 10, 0), Tier::Steady),
            (case(3, 0, 3, 0), Tier::Unknown),
            (case(0, 0, 3, 0), Tier::Unknown),
        ] {
            assert_eq!(tiers(&[case]), [tier], "{case:?}");
        }
    }

    #[test]
    fn a_significant_fall_below_the_minimum_drop_is_no_regression() {
        let small = case(199, 1, 185, 15);
        let judged = judge(&[small], &Thresholds::default());
        assert!(judged.p.unwrap() < 0.001);
        assert_eq!(judged.cases[0].tier, Tier::Steady);
        assert!(!judged.alarm());
    }

    #[test]
    fn with_one_run_per_side_only_the_suite_can_regress() {
        let mut cases = vec![case(1, 0, 0, 1); 12];
        cases.extend([case(1, 0, 1, 0); 88]);
        let judged = judge(&cases, &Thresholds::default());
        assert!(judged.cases.iter().all(|case| case.tier != Tier::Regression));
        let suite = judged.suite.clone().unwrap();
        assert!(suite.rejected && judged.alarm());
    }

    #[test]
    fn one_case_that_collapses_is_found_among_a_hundred_that_pass() {
        let mut cases = vec![case(10, 0, 10, 0); 99];
        cases.push(case(10, 0, 4, 6));
        assert_eq!(tiers(&cases)[99], Tier::Regression);
        assert_eq!(tiers(&cases)[0], Tier::Steady);
    }

    #[test]
    fn an_improvement_raises_no_alarm() {
        let judged = judge(&vec![case(2, 3, 5, 0); 30], &Thresholds::default());
        assert!(!judged.alarm());
    }

    #[test]
    fn a_suite_without_runs_on_both_sides_is_unknown() {
        let judged = judge(&[case(3, 0, 0, 0), case(0, 0, 2, 0)], &Thresholds::default());
        assert_eq!((judged.p, judged.suite.clone(), judged.alarm()), (None, None, false));
        assert!(judged.cases.iter().all(|case| case.p.is_none() && !case.is_decided()));
        assert_eq!(judge(&[], &Thresholds::default()).p, None);
    }

    #[test]
    fn the_minimum_drop_hides_no_significant_case_up_to_30_runs() {
        let mut tests = CaseTests::default();
        for runs in [10, 20, 30] {
            for passed in 0..=runs {
                for new in 0..passed {
                    let case = case(passed, runs - passed, new, runs - new);
                    let enough = fell_enough(case, &Thresholds::default());
                    assert!(enough || tests.fall(case).0 > 0.05, "{case:?}");
                }
            }
        }
    }

    #[test]
    fn thresholds_are_numbers_or_percentages_from_0_to_1() {
        let read = toml::from_str::<Thresholds>("alpha = 0.01\nmin_drop = 0\nmore_runs_up_to = 20").unwrap();
        assert!((read.alpha.value() - 0.01).abs() < 1e-12 && read.more_runs_up_to == 20);
        let percentages =
            toml::from_str::<Thresholds>("alpha = \"1 %\"\nmin_drop = \"0 %\"\nmore_runs_up_to = 20").unwrap();
        assert_eq!(read, percentages);
        assert_eq!(read.watch_drop, Thresholds::default().watch_drop);
        for wrong in ["alpha = 5", "alpha = -0.1", "alpha = nan", "alfa = 0.05", "power = \"high\""] {
            assert!(toml::from_str::<Thresholds>(wrong).is_err(), "{wrong}");
        }
        let error = toml::from_str::<Thresholds>("alpha = 5").unwrap_err().to_string();
        assert!(error.contains("5 is not a share from 0 to 1"), "{error}");
    }
}
