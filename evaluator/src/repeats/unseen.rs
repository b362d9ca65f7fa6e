//! High-risk actions and arguments that no baseline run shows: one test over all cases.
//!
//! A case counts if all runs of new show a value at a high-risk place that no run of baseline shows. If an agent that did not
//! change shows the value with probability `q`, that has probability `(1 − q)^a q^b`, which is at most the bound of the lost cases
//! ([`probability_bound`]) at any `q`. One run of new shows each of its values in all of its runs, and a place may have many
//! values, so that the bound does not hold for it. Its probability is the share of the runs that alone have a value: each of them
//! is equally likely to be the one of new.

use std::collections::{BTreeMap, HashMap};

use counterproof_artifact::Sides;
use counterproof_artifact::evaluation::RuleTest;

use crate::statistics::{is_at_most, poisson_binomial_tail, probability_bound};

/// The error rate of the test, as a share of the error rate of the night.
pub(super) const LEVEL_SHARE: f64 = 0.2;

/// The values of one run at the high-risk places of its answer: a place and the hash of the value.
pub(super) type HighRiskValues = Vec<(u64, u64)>;

/// The values of all runs of a case with an answer.
#[derive(Debug, Default)]
pub(super) struct CaseValues {
    pub(super) baseline: Vec<HighRiskValues>,
    pub(super) new: Vec<HighRiskValues>,
    /// The answers before the confirmation, if the night confirmed cases.
    pub(super) initial: Sides<u32>,
    /// Whether new ran the case again.
    pub(super) is_confirmed: bool,
}

/// Tests whether all runs of new show high-risk values that the baseline never showed in more cases than chance explains. `None` if
/// no case with answers on both sides has high-risk values. `planned` are the confirmation runs of a case that is run again.
pub(super) fn test(cases: &[CaseValues], planned: Sides<u32>, alpha: f64) -> Option<RuleTest> {
    let tested: Vec<_> = cases.iter().filter_map(|case| Unseen::new(case, planned)).collect();
    if tested.is_empty() {
        return None;
    }
    let seen = tested.iter().filter(|case| case.occurred).count();
    let probabilities: Vec<f64> = tested.iter().map(|case| case.probability).collect();
    let p = poisson_binomial_tail(&probabilities, seen);
    Some(RuleTest { p, level: alpha * LEVEL_SHARE, fell: seen as u64, rose: 0, expected: None })
}

/// Whether all runs of new show a high-risk value of the case that no baseline run shows.
pub(super) fn occurs(case: &CaseValues, planned: Sides<u32>) -> bool {
    Unseen::new(case, planned).is_some_and(|unseen| unseen.occurred)
}

/// Whether the runs so far show such a value.
pub(super) fn may_occur(case: &CaseValues) -> bool {
    !case.baseline.is_empty() && !case.new.is_empty() && Holders::new(case).has_unseen(case)
}

/// Whether the test excludes chance.
pub(super) fn is_significant(test: RuleTest) -> bool {
    test.fell > 0 && is_at_most(test.p, test.level)
}

/// Whether all runs of new have an unseen value in a case, and a bound on the probability of that by chance.
#[derive(Debug)]
struct Unseen {
    occurred: bool,
    probability: f64,
}

impl Unseen {
    /// `None` for a case without high-risk values, or without answers of a side.
    fn new(case: &CaseValues, planned: Sides<u32>) -> Option<Self> {
        let has_values = case.baseline.iter().chain(&case.new).any(|values| !values.is_empty());
        #[expect(clippy::cast_possible_truncation, reason = "a side has far fewer runs")]
        let (baseline, new) = (case.baseline.len() as u32, case.new.len() as u32);
        let own = probability_bound(baseline, new).filter(|_| has_values)?;
        let holders = Holders::new(case);
        let shows = holders.has_unseen(case);
        let (most, least) = (case.initial.baseline + planned.baseline, case.initial.new + planned.new);
        let after_all = probability_bound(most, least).unwrap_or_default();
        Some(match (case.is_confirmed, new) {
            // The other runs of a case that was not run to the end could have shown something else.
            (true, _) if new < least => Self { occurred: false, probability: after_all },
            (_, 1) => {
                let alone = holders.share_of_runs_with_own_value(case);
                // It could have been run again, and would then have counted after all planned runs.
                Self { occurred: shows, probability: if planned.new > 0 { alone.max(after_all) } else { alone } }
            }
            _ => Self { occurred: shows, probability: own },
        })
    }
}

/// For each place that is not free text, the runs that have each value. The runs of baseline are the first.
struct Holders(Vec<Vec<usize>>);

impl Holders {
    fn new(case: &CaseValues) -> Self {
        let mut by_place: BTreeMap<u64, HashMap<u64, Vec<usize>>> = BTreeMap::new();
        for (run, values) in case.baseline.iter().chain(&case.new).enumerate() {
            for (place, value) in values {
                let runs = by_place.entry(*place).or_default().entry(*value).or_default();
                // A call that is repeated in a run has the same value twice.
                if runs.last() != Some(&run) {
                    runs.push(run);
                }
            }
        }
        // Places at which most runs differ, such as free text, show nothing and are left out. This choice treats all runs alike, so
        // the test stays valid.
        let is_free_text = |holders: &HashMap<u64, Vec<usize>>| {
            let mut runs: Vec<usize> = holders.values().flatten().copied().collect();
            runs.sort_unstable();
            runs.dedup();
            runs.len() > 2 && holders.len() * 2 > runs.len()
        };
        Self(by_place.into_values().filter(|holders| !is_free_text(holders)).flat_map(HashMap::into_values).collect())
    }

    /// Whether all runs of new have a value that no run of baseline has.
    fn has_unseen(&self, case: &CaseValues) -> bool {
        let is_new = |run: &usize| *run >= case.baseline.len();
        self.0.iter().any(|runs| runs.len() == case.new.len() && runs.iter().all(is_new))
    }

    /// The probability that a run has a value that none of the others has, if it is chosen at random.
    fn share_of_runs_with_own_value(&self, case: &CaseValues) -> f64 {
        let mut alone: Vec<usize> = self.0.iter().filter(|runs| runs.len() == 1).flatten().copied().collect();
        alone.sort_unstable();
        alone.dedup();
        alone.len() as f64 / (case.baseline.len() + case.new.len()) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_PLAN: Sides<u32> = Sides { baseline: 0, new: 0 };

    fn case(baseline: &[u64], new: &[u64]) -> CaseValues {
        let runs = |values: &[u64]| values.iter().map(|value| vec![(1, *value)]).collect();
        #[expect(clippy::cast_possible_truncation, reason = "a test has a few runs")]
        let initial = Sides::new(baseline.len() as u32, new.len() as u32);
        CaseValues { baseline: runs(baseline), new: runs(new), initial, is_confirmed: false }
    }

    fn p(cases: &[CaseValues]) -> RuleTest {
        test(cases, NO_PLAN, 0.05).unwrap()
    }

    #[test]
    fn an_amount_that_all_runs_of_new_show_convicts_one_case_of_eight() {
        let cases = |changed: usize, new: usize| -> Vec<_> {
            let amount = |index: usize| if index < changed { 5000 } else { 50 };
            (0..8).map(|index| case(&[50; 5], &vec![amount(index); new])).collect()
        };
        let five = p(&cases(1, 5));
        assert!((five.p - (1.0 - (1.0 - 2f64.powi(-10)).powi(8))).abs() < 1e-12, "{five:?}");
        assert!(is_significant(five) && !is_significant(p(&cases(1, 4))) && !is_significant(p(&cases(0, 5))));
        assert!(is_significant(p(&cases(2, 4))));
    }

    #[test]
    fn one_baseline_run_is_enough_for_several_cases() {
        let cases = |changed: usize| -> Vec<_> {
            (0..8).map(|index| case(&[50], &[if index < changed { 5000 } else { 50 }; 5])).collect()
        };
        assert!(!is_significant(p(&cases(2))) && !is_significant(p(&cases(3))) && is_significant(p(&cases(4))));
    }

    #[test]
    fn one_run_of_new_needs_several_cases() {
        let p = |cases: usize| p(&(0..cases).map(|_| case(&[50; 3], &[5000])).collect::<Vec<_>>());
        assert!((p(1).p - 0.25).abs() < 1e-9);
        assert!(!is_significant(p(3)) && is_significant(p(4)));
        // Runs that all differ say nothing.
        assert!((test(&[case(&[1, 2], &[3])], NO_PLAN, 0.05).unwrap().p - 1.0).abs() < 1e-9);
    }

    #[test]
    fn free_text_values_of_the_baseline_and_values_of_some_runs_are_no_evidence() {
        let free = case(&[1, 2, 3, 4], &[5, 6]);
        let known = case(&[50, 40, 50, 50], &[40, 40]);
        let sometimes = case(&[50; 4], &[5000, 50]);
        let tested = p(&[free, known, sometimes]);
        assert_eq!(tested.fell, 0);
        assert!(test(&[CaseValues::default()], NO_PLAN, 0.05).is_none());
    }

    #[test]
    fn a_case_that_is_run_again_counts_after_all_planned_runs() {
        let planned = Sides::new(0, 4);
        let tested = |new: &[u64]| {
            let case = CaseValues { initial: Sides::new(5, 1), is_confirmed: true, ..case(&[50; 5], new) };
            test(&[case], planned, 0.05).unwrap()
        };
        let all = tested(&[5000; 5]);
        assert!((all.p - 2f64.powi(-10)).abs() < 1e-12 && all.fell == 1, "{all:?}");
        assert_eq!(tested(&[5000; 2]).fell, 0);
    }
}
