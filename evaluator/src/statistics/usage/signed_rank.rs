//! The one-sided signed-rank test (Wilcoxon 1945) that paired differences are larger than 0. Exact for up to
//! [`EXACT_UP_TO`] differences, with ties: the permutation distribution of the observed mid-ranks is computed, not looked up
//! for untied ones. Beyond that, the normal approximation with corrections for ties and continuity.

use std::f64::consts::PI;

use counterproof_artifact::evaluation::UsageMethod;

/// The most differences with an exact p-value. The work grows with the cube of their number: 8 million additions here.
pub(super) const EXACT_UP_TO: usize = 200;

/// Differences that are equal up to rounding are ties. Logarithms of equal ratios can differ in the last digits.
const EQUAL_WITHIN: f64 = 1e-12;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SignedRank {
    /// The p-value of the alternative that the differences are larger than 0; 1 without a difference.
    pub(super) p: f64,
    /// How it was computed.
    pub(super) method: UsageMethod,
}

/// Tests whether the differences are larger than 0. Differences of 0 are left out, as Wilcoxon does: they say nothing about the
/// direction, and the test stays exact given the others.
pub(super) fn test(differences: &[f64]) -> SignedRank {
    let nonzero: Vec<f64> = differences.iter().copied().filter(|difference| difference.abs() > EQUAL_WITHIN).collect();
    let Ranks { doubled, positive } = Ranks::new(nonzero);
    if doubled.len() <= EXACT_UP_TO {
        return SignedRank { p: exact(&doubled, positive), method: UsageMethod::Exact };
    }
    SignedRank { p: normal(&doubled, positive), method: UsageMethod::Normal }
}

/// The ranks of the absolute differences, doubled so that mid-ranks are whole numbers.
struct Ranks {
    doubled: Vec<usize>,
    /// The sum of the doubled ranks of positive differences.
    positive: usize,
}

impl Ranks {
    fn new(mut nonzero: Vec<f64>) -> Self {
        nonzero.sort_unstable_by(|left, right| left.abs().total_cmp(&right.abs()));
        let (mut doubled, mut positive) = (Vec::with_capacity(nonzero.len()), 0);
        for tied in nonzero.chunk_by(|left, right| right.abs() - left.abs() <= EQUAL_WITHIN * right.abs().max(1.0)) {
            // The ranks of a group run from `first` to `first + n − 1`; twice their mean is a whole number.
            let first = doubled.len() + 1;
            let rank = 2 * first + tied.len() - 1;
            positive += rank * tied.iter().filter(|difference| **difference > 0.0).count();
            doubled.resize(doubled.len() + tied.len(), rank);
        }
        Self { doubled, positive }
    }
}

/// The probability that the sum of the doubled ranks with random signs is at least `positive`.
fn exact(doubled: &[usize], positive: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    let mut mass = vec![0.0; total + 1];
    mass[0] = 1.0;
    let mut reached = 0;
    for rank in doubled {
        reached += rank;
        // From the top down, so that each rank is added once. Halving keeps the numbers in range for any number of ranks.
        for sum in (0..=reached).rev() {
            let with = if sum >= *rank { mass[sum - rank] } else { 0.0 };
            mass[sum] = f64::midpoint(mass[sum], with);
        }
    }
    mass[positive..].iter().sum::<f64>().min(1.0)
}

/// The same by the normal distribution. The variance of the sum is a quarter of the sum of the squared ranks, which includes
/// the correction for ties.
fn normal(doubled: &[usize], positive: usize) -> f64 {
    let ranks = || doubled.iter().map(|rank| *rank as f64 / 2.0);
    let mean = ranks().sum::<f64>() / 2.0;
    let variance = ranks().map(|rank| rank * rank).sum::<f64>() / 4.0;
    // Half a rank towards the mean: the sum is a step function of whole ranks.
    upper_tail((positive as f64 / 2.0 - mean - 0.5) / variance.sqrt())
}

/// The upper tail of the standard normal distribution.
pub(super) fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    let density = (-z * z / 2.0).exp() / (2.0 * PI).sqrt();
    // The series converges fast near 0, the continued fraction (Laplace) far from it.
    if z < 3.0 {
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > sum * 1e-17 {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let fraction = (1..=80).rev().fold(z, |below, level| z + f64::from(level) / below);
    density / fraction
}

#[cfg(test)]
#[expect(
    clippy::float_cmp,
    clippy::approx_constant,
    reason = "ties are equal numbers; 3.14 is a published measurement"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The p-value by enumeration of all signs.
    fn enumerated(differences: &[f64]) -> f64 {
        let nonzero: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
        let rank = |value: f64| {
            let below = nonzero.iter().filter(|other| other.abs() < value.abs()).count();
            let equal = nonzero.iter().filter(|other| other.abs() == value.abs()).count();
            2 * below + equal + 1
        };
        let ranks: Vec<usize> = nonzero.iter().map(|value| rank(*value)).collect();
        let seen: usize = nonzero.iter().zip(&ranks).filter(|(value, _)| **value > 0.0).map(|(_, rank)| rank).sum();
        let all = 1_u32 << ranks.len();
        let sum =
            |signs: u32| (0..ranks.len()).filter(|bit| signs >> bit & 1 == 1).map(|bit| ranks[bit]).sum::<usize>();
        let extreme = (0..all).filter(|signs| sum(*signs) >= seen).count();
        extreme as f64 / f64::from(all)
    }

    #[test]
    fn published_values_are_reproduced() {
        // Hollander & Wolfe, "Nonparametric Statistical Methods", 1973, table 3.1: depression scores of nine patients.
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let fall: Vec<f64> = before.iter().zip(after).map(|(before, after)| before - after).collect();
        let result = test(&fall);
        assert!((result.p - 0.019_531_25).abs() < 1e-12, "{result:?}");
        assert_eq!(result.method, UsageMethod::Exact);
        assert!((test(&[]).p - 1.0).abs() < 1e-12);
        assert!((test(&[0.0, 0.0]).p - 1.0).abs() < 1e-12);
        assert!((test(&[1.0; 6]).p - 1.0 / 64.0).abs() < 1e-12);
    }

    #[test]
    fn tails_of_the_normal_distribution_have_many_digits() {
        for (z, known) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (1.959_963_984_540_054, 0.025),
            (2.999, 1.354_336_533_727_106_6e-3),
            (3.0, 1.349_898_031_630_095_7e-3),
            (5.0, 2.866_515_718_791_946e-7),
            (10.0, 7.619_853_024_160_593e-24),
            (-1.0, 0.841_344_746_068_542_9),
        ] {
            let found = upper_tail(z);
            assert!((found / known - 1.0).abs() < 1e-11, "{z}: {found}");
        }
    }

    #[test]
    fn the_approximation_agrees_with_the_exact_test_at_its_bound() {
        // 200 differences of a skewed sample with ties; about 57 % of them rise.
        let sample: Vec<f64> = (0..200_i32).map(|i| f64::from((i * 37) % 23 - 10)).collect();
        let nonzero = sample.into_iter().filter(|value| *value != 0.0).collect();
        let Ranks { doubled, positive } = Ranks::new(nonzero);
        let (exact, approximate) = (exact(&doubled, positive), normal(&doubled, positive));
        assert!((exact - approximate).abs() < 5e-4, "{exact} {approximate}");
    }

    proptest! {
        #[test]
        fn p_values_equal_an_enumeration(halves in proptest::collection::vec(-6i32..=6, 0..13)) {
            let differences: Vec<f64> = halves.into_iter().map(|half| f64::from(half) / 2.0).collect();
            let found = test(&differences).p;
            prop_assert!((found - enumerated(&differences)).abs() < 1e-12, "{differences:?}: {found}");
        }
    }
}
