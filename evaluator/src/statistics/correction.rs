//! Correction for multiple tests: when many cases are tested, some look worse by chance.
//!
//! Controls the false discovery rate of Benjamini & Hochberg (1995): among the cases reported as regressions, the expected share
//! of false ones stays below the level. Their procedure assumes uniformly distributed p-values. With few runs that is far off:
//! a case that passed in all but one of its runs cannot get a small p-value at all. [`discrete`] uses the exact distribution of
//! each case instead (Döhler, Durand & Roquain 2018, step-down procedure), so it needs fewer runs to detect a regression.

use super::family::Family;

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
    use crate::statistics::tally::{CaseTallies, Tally};

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
