//! The joint null distribution of all cases of a suite.
//!
//! If nothing changed, the labels of the runs of a case are exchangeable. Within each case, the passes of new then have a
//! hypergeometric distribution given the passes of both sides, independent of the other cases. All probabilities here are
//! exact: cases with the same counts are grouped, and sums are convolutions, so nothing is sampled.

use std::collections::BTreeMap;

use super::exact::{CaseTests, Distribution, Method};
use super::tally::{CaseTallies, Tally, is_at_most};

/// The null distribution of the cases of a suite that have runs on both sides.
#[derive(Debug)]
pub(super) struct Family {
    shapes: Vec<Shape>,
    total: Distribution,
    seen: usize,
    weights: Levels,
}

/// A number for each of the two levels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Levels {
    suite: f64,
    smallest: f64,
}

/// How the false alarm rate is shared out where all cases have the same runs. Most of it goes to the suite: single cases seldom
/// have the runs to be significant, and a case that does is so by far.
const PLANNED: Levels = Levels { suite: 0.8, smallest: 0.2 };

/// The same for cases with confirmation runs: these are made to decide single cases.
const CONFIRMED: Levels = Levels { suite: 0.05, smallest: 0.95 };

/// Cases with equally many runs on each side and equally many passes together.
#[derive(Debug)]
struct Shape {
    cases: usize,
    draws: Distribution,
    /// The p-value of each number of passes of new, in ascending order.
    p: Vec<f64>,
}

impl Shape {
    /// The probability that the case's p-value is at most `p`.
    fn at_most(&self, p: f64) -> f64 {
        self.draws.iter().zip(&self.p).take_while(|(_, own)| is_at_most(**own, p)).map(|((_, mass), _)| mass).sum()
    }
}

/// The probabilities, under the null hypothesis, of a result at least as extreme as observed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chances {
    /// Of at most the observed number of passes of new, over all cases.
    pub(super) suite: f64,
    /// Of a smallest p-value over the cases that is at most the observed one.
    pub(super) smallest: f64,
    /// Of a result on either level, suite or case, that is at least as extreme as the more extreme of the two.
    pub(super) either: f64,
}

impl Family {
    /// Groups cases that all have runs on both sides.
    pub(super) fn new(cases: &[CaseTallies], tests: &mut CaseTests) -> Self {
        // Most cases of a suite share a few shapes, and a sum of equal terms takes a logarithmic number of convolutions.
        let mut counted: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
        for case in cases {
            let passed = case.baseline.passed.saturating_add(case.new.passed);
            *counted.entry((case.baseline.runs(), case.new.runs(), passed)).or_default() += 1;
        }
        let shapes = counted.into_iter().map(|((baseline, new, passed), cases)| {
            let draws = Distribution::hypergeometric(baseline, new, passed);
            let p = p_values(&draws, baseline, new, passed, tests);
            Shape { cases, draws, p }
        });
        Self::from_shapes(shapes.collect(), cases.iter().map(|case| case.new.passed as usize).sum(), PLANNED)
    }

    /// Takes the null distribution of the passes of new in each case, with the observed passes. The p-value of a case is the
    /// lower tail.
    pub(super) fn from_draws(cases: impl Iterator<Item = (Distribution, usize)>) -> Self {
        let (mut shapes, mut seen) = (Vec::new(), 0);
        for (draws, observed) in cases {
            let mut sum = 0.0;
            let tail = |(_, mass)| {
                sum += mass;
                f64::min(sum, 1.0)
            };
            let p = draws.iter().map(tail).collect();
            shapes.push(Shape { cases: 1, draws, p });
            seen += observed;
        }
        Self::from_shapes(shapes, seen, CONFIRMED)
    }

    fn from_shapes(shapes: Vec<Shape>, seen: usize, weights: Levels) -> Self {
        let total = sum(shapes.iter().map(|shape| shape.draws.times(shape.cases)));
        Self { shapes, total, seen, weights }
    }

    /// The probabilities of the observed result. `smallest` is the smallest p-value of a case.
    pub(super) fn chances(&self, smallest: f64) -> Chances {
        let suite = self.total.at_most(self.seen).min(1.0);
        let smallest = self.smallest_at_most(smallest);
        Chances { suite, smallest, either: self.either(Levels { suite, smallest }) }
    }

    /// The probability that the smallest p-value of all cases is at most `p` (Westfall & Young 1993, for exact tests).
    fn smallest_at_most(&self, p: f64) -> f64 {
        // Cases are independent. Logarithms keep the digits of probabilities that are far below 1.
        let none = self.shapes.iter().map(|shape| shape.cases as f64 * (-shape.at_most(p)).ln_1p());
        -none.sum::<f64>().exp_m1()
    }

    /// The expected number of cases with a p-value of at most `p` under the null hypothesis, weighted for the step-down procedure
    /// of [`self`].
    pub(super) fn expected_at_most(&self, p: f64) -> f64 {
        let weighted = self.shapes.iter().map(|shape| {
            let chance = shape.at_most(p);
            // No 0 / 0: the division runs only if the chance is positive. A chance of 1 makes the sum infinite.
            if chance > 0.0 { shape.cases as f64 * chance / (1.0 - chance).max(0.0) } else { 0.0 }
        });
        weighted.sum()
    }

    /// The probability that at least one of the two levels is at least as extreme as the more extreme of the two now, in units of
    /// its weight.
    fn either(&self, observed: Levels) -> f64 {
        let Levels { suite: suite_weight, smallest: case_weight } = self.weights;
        let unit = (observed.suite / suite_weight).min(observed.smallest / case_weight);
        let (suite, smallest) = (unit * suite_weight, unit * case_weight);
        // One of the two is observed, so the probability is at least this.
        let chance = if is_at_most(observed.suite, suite) { observed.suite } else { observed.smallest };
        let mut below = 0.0;
        // The suite level: the largest sum of passes whose cumulative probability is at most the one of the suite.
        let mut worst = None;
        for (number, mass) in self.total.iter() {
            if !is_at_most(below + mass, suite) {
                break;
            }
            below += mass;
            worst = Some(number);
        }
        // The case level: the largest attainable p-value whose minimum over the cases has at most its probability.
        let mut attainable: Vec<f64> = self.shapes.iter().flat_map(|shape| shape.p.iter().copied()).collect();
        attainable.sort_by(f64::total_cmp);
        let last = attainable.partition_point(|p| is_at_most(self.smallest_at_most(*p), smallest));
        let Some(p) = last.checked_sub(1).map(|last| attainable[last]) else {
            return below.max(chance).min(1.0);
        };
        // The complement: every case has a p-value above `p`, and the sum of passes is above `worst`.
        let neither = sum(self.shapes.iter().map(|shape| {
            let limit = shape.p.partition_point(|own| is_at_most(*own, p));
            let first = shape.draws.iter().next().map_or(0, |(first, _)| first);
            shape.draws.only(|number| number - first >= limit).times(shape.cases)
        }));
        let neither = neither.at_least(worst.map_or(0, |worst| worst + 1));
        // A tiny probability loses its digits in the difference from 1, so it is clamped to its known bounds: `chance` below, and
        // the sum of both levels above.
        (1.0 - neither).clamp(chance, (below + self.smallest_at_most(p)).max(chance)).min(1.0)
    }
}

/// The p-value of each possible number of passes of new.
fn p_values(draws: &Distribution, baseline: u32, new: u32, passed: u32, tests: &mut CaseTests) -> Vec<f64> {
    let mut sum: f64 = 0.0;
    let p = draws.iter().map(|(of_new, mass)| {
        sum += mass;
        let of_new = u32::try_from(of_new).unwrap_or(new);
        let of_baseline = passed - of_new;
        let case = CaseTallies {
            baseline: Tally::new(of_baseline, baseline - of_baseline),
            new: Tally::new(of_new, new - of_new),
        };
        // Fisher's p-value is this cumulative sum. Computing it again for each number would take quadratic time in the runs.
        match CaseTests::method(case) {
            Method::Boschloo => tests.fall(case).0,
            Method::Fisher => sum.min(1.0),
        }
    });
    p.collect()
}

fn sum(terms: impl Iterator<Item = Distribution>) -> Distribution {
    terms.fold(Distribution::zero(), |sum, term| sum.plus(&term))
}

/// Returns adjusted p-values for exact tests, in the order of `p`: the expected number of cases with a p-value this small under
/// the null hypothesis, divided by the observed number.
pub(super) fn discrete(p: &[f64], family: &Family) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    let mut before = None;
    for (rank, index) in ascending(p).into_iter().enumerate() {
        // Equal p-values get the value of the first.
        if before != Some(p[index]) {
            // The running maximum keeps the adjusted values in the order of the p-values (step-down procedure).
            largest = largest.max(family.expected_at_most(p[index]) / (rank + 1) as f64).min(1.0);
            before = Some(p[index]);
        }
        adjusted[index] = largest;
    }
    adjusted
}

/// The indexes of the values, from the smallest to the largest value.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|left, right| p[*left].total_cmp(&p[*right]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::exact::CaseTests;
    use crate::statistics::tally::{CaseTallies, TIE, Tally};

    fn case(passed: u32, failed: u32, new_passed: u32, new_failed: u32) -> CaseTallies {
        CaseTallies { baseline: Tally::new(passed, failed), new: Tally::new(new_passed, new_failed) }
    }

    fn chances(cases: &[CaseTallies]) -> Chances {
        let mut tests = CaseTests::default();
        let smallest = cases.iter().map(|case| tests.fall(*case).0).fold(1.0, f64::min);
        Family::new(cases, &mut tests).chances(smallest)
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn with_one_run_a_side_the_suite_test_is_the_exact_test_of_mcnemar() {
        // Nine cases flipped to failed and one to passed: the lower tail of ten fair coins.
        let mut cases = vec![case(1, 0, 0, 1); 9];
        cases.push(case(0, 1, 1, 0));
        cases.extend([case(1, 0, 1, 0); 40]);
        assert!(close(chances(&cases).suite, 11.0 / 1024.0));
    }

    #[test]
    fn chances_are_those_of_dealing_out_the_labels_in_every_way() {
        let cases = [case(3, 0, 1, 2), case(2, 1, 2, 1), case(3, 1, 0, 2), case(2, 0, 1, 1)];
        let mut tests = CaseTests::default();
        let all_deals = cases.iter().fold(vec![(Vec::new(), 1.0)], |deals, case| {
            let passed = case.baseline.passed + case.new.passed;
            let draws = Distribution::hypergeometric(case.baseline.runs(), case.new.runs(), passed);
            let with = |(dealt, mass): &(Vec<CaseTallies>, f64)| -> Vec<(Vec<CaseTallies>, f64)> {
                let one = |(of_new, more): (usize, f64)| {
                    let of_new = u32::try_from(of_new).unwrap();
                    let mut dealt = dealt.clone();
                    dealt.push(CaseTallies {
                        baseline: Tally::new(passed - of_new, case.baseline.runs() + of_new - passed),
                        new: Tally::new(of_new, case.new.runs() - of_new),
                    });
                    (dealt, mass * more)
                };
                draws.iter().map(one).collect()
            };
            deals.iter().flat_map(with).collect()
        });
        let passes = |cases: &[CaseTallies]| cases.iter().map(|case| case.new.passed).sum::<u32>();
        let mut smallest = |cases: &[CaseTallies]| cases.iter().map(|case| tests.fall(*case).0).fold(1.0, f64::min);
        let measured: Vec<_> =
            all_deals.iter().map(|(dealt, mass)| (f64::from(passes(dealt)), smallest(dealt), *mass)).collect();
        let share = |bad: &dyn Fn(f64, f64) -> bool| -> f64 {
            measured.iter().filter(|(passes, p, _)| bad(*passes, *p)).map(|(_, _, mass)| mass).sum()
        };
        let (seen, p) = (f64::from(passes(&cases)), smallest(&cases));
        let found = chances(&cases);
        assert!(close(found.suite, share(&|passes, _| passes <= seen)));
        assert!(close(found.smallest, share(&|_, own| own <= p * TIE)));
        let unit = (found.suite / PLANNED.suite).min(found.smallest / PLANNED.smallest) * TIE;
        let either = share(&|passes, own| {
            share(&|other, _| other <= passes) <= unit * PLANNED.suite
                || share(&|_, other| other <= own * TIE) <= unit * PLANNED.smallest
        });
        assert!(close(found.either, either), "{} {either}", found.either);
    }

    #[test]
    fn tiny_chances_keep_their_digits() {
        let found = chances(&[case(10, 0, 0, 10); 3]);
        assert!(found.suite > 0.0 && found.suite < 1e-15, "{found:?}");
        assert!(found.either >= found.suite && found.either < 1e-4, "{found:?}");
        let found = chances(&vec![case(5, 0, 0, 5); 2000]);
        assert!(found.either <= found.suite.max(1e-300) * 2.0 + 1e-12, "{found:?}");
    }

    #[test]
    fn cases_that_always_pass_say_nothing() {
        let mut tests = CaseTests::default();
        let family = Family::new(&[case(3, 0, 3, 0), case(0, 2, 0, 2), case(2, 1, 1, 2)], &mut tests);
        assert!(close(family.chances(1.0).suite, 0.5));
    }

    #[test]
    fn cases_that_cannot_look_bad_cost_nothing() {
        let all_passed = CaseTallies { baseline: Tally::new(10, 0), new: Tally::new(10, 0) };
        let fell = CaseTallies { baseline: Tally::new(10, 0), new: Tally::new(3, 7) };
        let mut tests = CaseTests::default();
        let mut corrected = |stable: usize| {
            let mut cases = vec![all_passed; stable];
            cases.push(fell);
            let p: Vec<f64> = cases.iter().map(|case| tests.fall(*case).0).collect();
            let family = Family::new(&cases, &mut tests);
            discrete(&p, &family).pop().unwrap()
        };
        let (few, many) = (corrected(2), corrected(200));
        assert!((few - many).abs() < 1e-12);
        // The procedure of Benjamini & Hochberg, which assumes uniform p-values, would give more than 0.03 here.
        assert!(many < 0.01, "{many:?}");
    }
}
