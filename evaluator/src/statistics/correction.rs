//! Correction for multiple tests: when many cases are tested, some look worse by chance.
//!
//! Controls the false discovery rate of Benjamini & Hochberg (1995): among the cases reported as regressions, the expected share
//! of false ones stays below the level. Their procedure assumes uniformly distributed p-values. With few runs that is far off:
//! a case that passed in all but one of its runs cannot get a small p-value at all. [`discrete`] uses the exact distribution of
//! each case instead (Döhler, Durand & Roquain 2018, step-down procedure), so it needs fewer runs to detect a regression.

use super::family::Family;

/// Returns the adjusted p-values of Benjamini & Hochberg (1995), in the order of `p`. A case is significant at every level not
/// below its adjusted value.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let count = p.len() as f64;
    let mut adjusted = vec![1.0; p.len()];
    let mut smallest: f64 = 1.0;
    // From the largest p-value down, so that no adjusted value exceeds that of a larger p-value (step-up procedure).
    for (rank, index) in ascending(p).into_iter().enumerate().rev() {
        smallest = smallest.min(p[index] * count / (rank + 1) as f64);
        adjusted[index] = smallest;
    }
    adjusted
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
    use crate::statistics::tally::{CaseTallies, Tally};

    #[test]
    fn the_published_example_rejects_what_was_published() {
        // Benjamini & Hochberg 1995, section 4.1: fifteen p-values; at 5 % the first four are rejected.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0000,
        ];
        let adjusted = benjamini_hochberg(&p);
        assert_eq!(adjusted.iter().filter(|value| **value <= 0.05).count(), 4);
        assert!((adjusted[0] - 0.0015).abs() < 1e-12 && (adjusted[14] - 1.0).abs() < 1e-12);
        assert!(adjusted.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn order_does_not_matter() {
        assert_eq!(benjamini_hochberg(&[0.04, 0.01]), [0.04, 0.02]);
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
            (discrete(&p, &family).pop().unwrap(), benjamini_hochberg(&p).pop().unwrap())
        };
        let (few, many) = (corrected(2), corrected(200));
        assert!((few.0 - many.0).abs() < 1e-12);
        assert!(many.0 < 0.01 && many.1 > 0.03, "{many:?}");
    }
}
