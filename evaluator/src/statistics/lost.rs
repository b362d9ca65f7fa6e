//! Lost cases: the baseline solved a case in every run, and new in none.
//!
//! Let an unchanged agent solve a case with probability `q`. It then shows the case as lost, with `a` runs of baseline and `b` of
//! new, with probability `q^a (1 − q)^b`. That is largest at `q = a / (a + b)`, so it is at most
//!
//! > m(a, b) = (a / (a + b))^a · (b / (a + b))^b
//!
//! whatever `q` is. The bound needs no correction for a selection: if further runs were made because the first ones failed, the case
//! is lost only if all the runs that were planned for such a case fail. The number of lost cases among independent cases is then
//! bounded by a Poisson binomial distribution with these probabilities (Hoeffding 1956: the tail grows with each of them).

use std::ops::RangeInclusive;

use counterproof_artifact::Sides;

use super::tally::is_at_most;

/// The runs of a case that count for the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostRuns {
    /// The runs of baseline.
    pub baseline: u32,
    /// The runs of new, with those that would have followed a failure.
    pub new: u32,
    /// Whether all runs of baseline passed and all of new failed.
    pub is_lost: bool,
}

/// The test of all cases together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LostTest {
    /// The number of lost cases.
    pub lost: usize,
    /// At most this many of them are expected if nothing changed.
    pub expected: f64,
    /// The probability of at least so many lost cases if nothing changed is at most this.
    pub p: f64,
    /// The same if an unchanged agent solves each case in at least half of its runs.
    pub p_of_usual: f64,
}

impl LostTest {
    /// Tests the cases that have runs on both sides; `None` without one.
    pub fn new(cases: &[LostRuns]) -> Option<Self> {
        let bounds: Vec<f64> = cases.iter().filter_map(|case| probability_bound(case.baseline, case.new)).collect();
        if bounds.is_empty() {
            return None;
        }
        let lost = cases.iter().filter(|case| case.is_lost).count();
        let usual: Vec<f64> = cases.iter().filter_map(|case| usual_bound(case.baseline, case.new)).collect();
        let (p, p_of_usual) = (poisson_binomial_tail(&bounds, lost), poisson_binomial_tail(&usual, lost));
        Some(Self { lost, expected: bounds.iter().sum(), p, p_of_usual })
    }

    /// Whether chance is excluded at this level.
    pub fn is_significant(&self, level: f64) -> bool {
        self.lost > 0 && is_at_most(self.p, level)
    }

    /// Whether chance is excluded for cases that an unchanged agent usually solves, and not for others: the baseline is too
    /// short to tell which these cases are.
    pub fn is_undecided(&self, level: f64) -> bool {
        self.lost > 0 && !self.is_significant(level) && is_at_most(self.p_of_usual, level)
    }
}

/// How many confirmation runs a night makes of a case that keeps failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfirmationCount {
    /// The number of runs.
    pub runs: u32,
    /// What they decide.
    pub decides: Decides,
}

/// What the confirmation runs of a night decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// One lost case is convicted.
    OneCase,
    /// The cases that flipped are convicted if all of them are lost.
    AllTogether,
    /// One lost case leaves the gate undecided: chance is excluded if an unchanged agent usually solves the case.
    Undecided,
    /// Chance is not excluded even if all of them are lost.
    Nothing,
}

impl ConfirmationCount {
    /// The smallest number of runs for which one lost case is convicted at this level; if there is none, the smallest for which
    /// the `flipped` cases together are, and one leaves the gate undecided. `first` are the runs of all cases before the confirmation.
    pub fn new(
        first: &[Sides<u32>],
        flipped: usize,
        repeats_baseline: bool,
        numbers: RangeInclusive<u32>,
        level: f64,
    ) -> Self {
        let excludes = |bound: fn(u32, u32) -> Option<f64>, runs: u32, lost: usize| {
            let case =
                |case: &Sides<u32>| bound(case.baseline + if repeats_baseline { runs } else { 0 }, case.new + runs);
            let bounds: Vec<f64> = first.iter().filter(|case| case.baseline > 0).filter_map(case).collect();
            lost > 0 && is_at_most(poisson_binomial_tail(&bounds, lost), level)
        };
        let smallest =
            |bound: fn(u32, u32) -> Option<f64>, lost: usize| numbers.clone().find(|runs| excludes(bound, *runs, lost));
        if let Some(runs) = smallest(probability_bound, 1) {
            return Self { runs, decides: Decides::OneCase };
        }
        let undecided = smallest(usual_bound, 1);
        match (smallest(probability_bound, flipped), undecided) {
            // Some of the cases may pass again.
            (Some(runs), undecided) => {
                Self { runs: runs.max(undecided.unwrap_or_default()), decides: Decides::AllTogether }
            }
            (None, Some(runs)) => Self { runs, decides: Decides::Undecided },
            (None, None) => Self { runs: *numbers.end(), decides: Decides::Nothing },
        }
    }
}

/// The smallest number of baseline runs, at most `most`, with which this many lost cases are convicted, if new has the runs of `cases`.
pub fn deciding_baseline(cases: &[LostRuns], lost: usize, level: f64, most: u32) -> Option<u32> {
    (1..=most).find(|baseline| {
        let bounds: Vec<f64> = cases.iter().filter_map(|case| probability_bound(*baseline, case.new)).collect();
        is_at_most(poisson_binomial_tail(&bounds, lost), level)
    })
}

/// The largest probability, over all pass rates, that `baseline` runs all pass and `new` runs all fail. `None` without runs on both
/// sides.
pub fn probability_bound(baseline: u32, new: u32) -> Option<f64> {
    let (a, b) = (f64::from(baseline), f64::from(new));
    // As logarithms, since the powers of many runs are below the smallest number.
    (baseline > 0 && new > 0).then(|| (a * (a / (a + b)).ln() + b * (b / (a + b)).ln()).exp())
}

/// The largest probability, over pass rates of at least one half, that `baseline` runs all pass and `new` runs all fail. `None`
/// without runs on both sides.
fn usual_bound(baseline: u32, new: u32) -> Option<f64> {
    // The probability falls on both sides of its maximum, at `a / (a + b)`.
    if baseline >= new { probability_bound(baseline, new) } else { halves(baseline, new) }
}

fn halves(baseline: u32, new: u32) -> Option<f64> {
    (baseline > 0 && new > 0).then(|| 0.5_f64.powi(baseline.saturating_add(new).cast_signed()))
}

/// The largest probability, over all rates, with which all runs of each side agree and the sides differ. `None` without runs on
/// both sides.
pub(crate) fn division_bound(baseline: u32, new: u32) -> Option<f64> {
    const STEPS: u32 = 1000;
    let (a, b) = (f64::from(baseline), f64::from(new));
    let probability = |step: u32| {
        let (q, rest) = (f64::from(step) / f64::from(STEPS), f64::from(STEPS - step) / f64::from(STEPS));
        // Either value may be the one of the baseline.
        q.powf(a) * rest.powf(b) + rest.powf(a) * q.powf(b)
    };
    (baseline > 0 && new > 0).then(|| (0..=STEPS).map(probability).fold(0.0, f64::max))
}

/// The probability of at least `least` successes among independent trials.
pub(crate) fn poisson_binomial_tail(probabilities: &[f64], least: usize) -> f64 {
    // The tail is summed directly: one minus the other sum would lose all digits of a small probability.
    let mut below = vec![0.0; least];
    let Some(first) = below.first_mut() else { return 1.0 };
    *first = 1.0;
    let mut at_least = 0.0;
    for p in probabilities {
        at_least += below[least - 1] * p;
        for count in (1..least).rev() {
            below[count] = below[count] * (1.0 - p) + below[count - 1] * p;
        }
        below[0] *= 1.0 - p;
    }
    at_least
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cases(total: usize, lost: usize, baseline: u32, new: u32) -> Vec<LostRuns> {
        (0..total).map(|index| LostRuns { baseline, new, is_lost: index < lost }).collect()
    }

    fn p(total: usize, lost: usize, baseline: u32, new: u32) -> f64 {
        LostTest::new(&cases(total, lost, baseline, new)).unwrap().p
    }

    #[test]
    fn three_lost_cases_of_eight_are_convicted_with_one_baseline_run_and_four_confirmations() {
        assert!(p(8, 3, 1, 5) < 0.0131, "{}", p(8, 3, 1, 5));
        assert!(p(8, 2, 1, 5) > 0.05);
    }

    #[test]
    fn five_runs_a_side_convict_one_case_of_eight() {
        assert!((p(8, 1, 5, 5) - (1.0 - (1.0 - 2f64.powi(-10)).powi(8))).abs() < 1e-12);
    }

    fn planned(cases: usize, baseline: u32, flipped: usize, repeats_baseline: bool) -> (u32, Decides) {
        let first = vec![Sides::new(baseline, 1); cases];
        let count = ConfirmationCount::new(&first, flipped, repeats_baseline, 1..=8, 0.02);
        (count.runs, count.decides)
    }

    #[test]
    fn the_number_of_confirmation_runs_convicts_one_case_if_it_can() {
        assert_eq!(planned(8, 5, 1, false), (3, Decides::OneCase));
        assert_eq!(planned(50, 5, 1, false), (6, Decides::OneCase));
        assert_eq!(planned(50, 1, 1, true), (5, Decides::OneCase));
        // One baseline run convicts several cases together.
        assert_eq!(planned(8, 1, 3, false), (7, Decides::AllTogether));
        // One is too few, but chance is excluded for what an agent usually solves.
        assert_eq!(planned(8, 1, 2, false), (7, Decides::Undecided));
        assert_eq!(planned(50, 1, 1, false), (8, Decides::Nothing));
        let lost: Vec<_> = cases(8, 1, 1, 9);
        assert_eq!(deciding_baseline(&lost, 1, 0.02, 100), Some(3));
        assert_eq!(deciding_baseline(&lost, 1, 0.02, 2), None);
    }

    /// The probability that a night convicts, if each of its cases passes with the probability `q` on both sides. The number of
    /// confirmation runs follows from the number of flipped cases.
    fn false_nights(total: usize, baseline: u32, repeats_baseline: bool, q: f64) -> f64 {
        let binomial = |n: usize, p: f64| -> Vec<f64> {
            let at_least = |k: usize| poisson_binomial_tail(&vec![p; n], k);
            (0..=n).map(|k| at_least(k) - if k < n { at_least(k + 1) } else { 0.0 }).collect()
        };
        let flips = binomial(total, q.powi(baseline.cast_signed()) * (1.0 - q));
        (1..=total.min(25))
            .map(|flipped| {
                let (runs, decides) = planned(total, baseline, flipped, repeats_baseline);
                let again = if repeats_baseline { q * (1.0 - q) } else { 1.0 - q };
                let lost = binomial(flipped, again.powi(runs.cast_signed()));
                let baseline = baseline + if repeats_baseline { runs } else { 0 };
                let convicts = |lost: usize| decides != Decides::Nothing && p(total, lost, baseline, 1 + runs) <= 0.02;
                flips[flipped] * (1..=flipped).filter(|lost| convicts(*lost)).map(|count| lost[count]).sum::<f64>()
            })
            .sum()
    }

    #[test]
    fn a_number_of_runs_that_follows_from_the_flips_keeps_the_error_rate() {
        // Every outcome of nights in which nothing changed, at the rates that make most false alarms and around them.
        for (total, baseline, repeats_baseline) in [
            (8, 1, false),
            (20, 1, false),
            (40, 1, false),
            (20, 2, false),
            (20, 3, false),
            (20, 1, true),
            (8, 5, false),
        ] {
            for rate in 1..20 {
                let q = f64::from(rate) / 20.0;
                let nights = false_nights(total, baseline, repeats_baseline, q);
                assert!(nights <= 0.0201, "{nights} with {total} cases, {baseline} baseline runs, rate {q}");
            }
        }
    }

    #[test]
    fn an_unchanged_agent_that_usually_solves_its_cases_is_seldom_undecided() {
        for (total, baseline) in [(1, 1), (8, 1), (50, 1), (50, 2), (200, 1)] {
            let first = vec![Sides::new(baseline, 1); total];
            let count = ConfirmationCount::new(&first, 1, false, 1..=12, 0.02);
            for rate in 10..20_u32 {
                let q = f64::from(rate) / 20.0;
                let lost = q.powi(baseline.cast_signed()) * (1.0 - q).powi((1 + count.runs).cast_signed());
                let nights = poisson_binomial_tail(&vec![lost; total], 1);
                assert!(nights <= 0.0201, "{nights} with {total} cases, {baseline} baseline runs, rate {q}");
            }
        }
    }

    #[test]
    fn a_case_that_always_fails_is_undecided_against_one_baseline_run() {
        let test = LostTest::new(&cases(50, 1, 1, 13)).unwrap();
        assert!(test.is_undecided(0.02) && !test.is_significant(0.02), "{test:?}");
        assert!(!LostTest::new(&cases(50, 1, 1, 2)).unwrap().is_undecided(0.02));
        assert!(!LostTest::new(&cases(50, 0, 1, 13)).unwrap().is_undecided(0.02));
        assert!(!LostTest::new(&cases(50, 1, 5, 7)).unwrap().is_undecided(0.02), "it is significant");
    }

    #[test]
    fn no_pass_rate_gives_more_than_the_bound() {
        for (a, b) in [(1, 1), (1, 5), (5, 1), (5, 5), (3, 9)] {
            let bound = probability_bound(a, b).unwrap();
            let most = (0..=1000)
                .map(|rate| f64::from(rate) / 1000.0)
                .map(|q| q.powi(a.cast_signed()) * (1.0 - q).powi(b.cast_signed()))
                .fold(0.0, f64::max);
            assert!(most <= bound + 1e-12 && bound - most < 1e-4, "{a} {b}: {most} {bound}");
        }
        assert_eq!((probability_bound(0, 3), probability_bound(3, 0)), (None, None));
        assert!(probability_bound(4000, 4000).unwrap() >= 0.0);
    }

    proptest! {
        #[test]
        fn one_more_lost_case_or_one_more_run_never_makes_chance_more_likely(
            runs in proptest::collection::vec((1_u32..12, 1_u32..12, any::<bool>()), 1..40),
            index in any::<prop::sample::Index>(),
        ) {
            let mut cases: Vec<LostRuns> =
                runs.into_iter().map(|(baseline, new, is_lost)| LostRuns { baseline, new, is_lost }).collect();
            let before = LostTest::new(&cases).unwrap();
            let index = index.index(cases.len());
            let mut longer = cases.clone();
            longer[index].new += 1;
            prop_assert!(LostTest::new(&longer).unwrap().p <= before.p + 1e-12);
            cases[index].is_lost = true;
            prop_assert!(LostTest::new(&cases).unwrap().p <= before.p + 1e-12);
        }
    }
}
