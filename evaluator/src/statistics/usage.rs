//! Time, size and cost over all cases: the sums, the test and the typical ratio.

use std::cmp::Ordering;
use std::f64::consts::PI;

use counterproof_artifact::Quantity;
use counterproof_artifact::evaluation::{CaseEvaluation, UsageCode, UsageMeasure, UsageMethod, UsageRatio};

/// Compares each quantity over the cases in which both sides have it; quantities without such a case are left out.
pub(crate) fn compare_all(cases: &[CaseEvaluation]) -> Vec<UsageMeasure> {
    UsageCode::ALL.into_iter().filter_map(|code| compare_one(code, cases)).collect()
}

/// The p-value of the one-sided signed-rank test that a quantity grew by more than this share; 1 without a case.
pub(crate) fn growth_p(code: UsageCode, cases: &[CaseEvaluation], growth: f64) -> f64 {
    let Some((values, _)) = pairs(code, cases) else { return 1.0 };
    let allowed = growth.ln_1p();
    let beyond: Vec<_> = values.iter().map(|(baseline, new)| log_ratio(*baseline, *new) - allowed).collect();
    signed_rank_test(&beyond).p
}

/// The p-value of the one-sided signed-rank test that a quantity fell; 1 without a case.
pub(crate) fn fall_p(code: UsageCode, cases: &[CaseEvaluation]) -> f64 {
    let Some((values, _)) = pairs(code, cases) else { return 1.0 };
    let falls: Vec<_> = values.iter().map(|(baseline, new)| log_ratio(*new, *baseline)).collect();
    signed_rank_test(&falls).p
}

/// The values of both sides, in the order of the cases.
type Values = Vec<(f64, f64)>;

/// The values of a quantity in the cases in which both sides have it, and their currency; `None` without such a case.
fn pairs(code: UsageCode, cases: &[CaseEvaluation]) -> Option<(Values, Option<&str>)> {
    let mut pairs = cases.iter().filter_map(|case| {
        let usage = case.usage.as_ref()?;
        Some((usage.compared(code)?, usage.new.as_ref()?.currency_of(code)))
    });
    let ((first, currency), others) = (pairs.next()?, pairs);
    // Sums of several currencies mean nothing: the first currency counts, the cases in others are left out.
    let same = others.filter(|(_, other)| *other == currency).map(|(values, _)| values);
    Some((std::iter::once(first).chain(same).collect(), currency))
}

fn compare_one(code: UsageCode, cases: &[CaseEvaluation]) -> Option<UsageMeasure> {
    let (values, currency) = pairs(code, cases)?;
    let logs: Vec<f64> = values.iter().map(|(baseline, new)| log_ratio(*baseline, *new)).collect();
    let tested = signed_rank_test(&logs);
    let count = |is: fn(&f64) -> bool| logs.iter().filter(|log| is(log)).count() as u64;
    Some(UsageMeasure {
        code,
        cases: values.len() as u64,
        baseline: sum(values.iter().map(|(baseline, _)| *baseline)),
        new: sum(values.iter().map(|(_, new)| *new)),
        currency: currency.map(str::to_owned),
        rose: count(|log| *log > 0.0),
        fell: count(|log| *log < 0.0),
        p: tested.p,
        method: tested.method,
        ratio: typical(logs),
    })
}

/// The sum, rounded to 15 significant digits, which hides the rounding errors of decimal fractions.
fn sum(values: impl Iterator<Item = f64>) -> Quantity {
    let sum: f64 = values.sum();
    format!("{sum:.14e}").parse().unwrap_or(sum).into()
}

/// The probability outside of the interval at each end.
const TAIL: f64 = 0.025;

/// The standard normal quantile of [`TAIL`].
const QUANTILE: f64 = 1.959_963_984_540_054;

/// The logarithm of a ratio with a zero on one side: larger than for any two numbers, and finite, so that two opposite ones
/// have the mean 0.
const UNBOUNDED: f64 = 2000.0;

/// The logarithm of `new / baseline`, for values of zero or more.
fn log_ratio(baseline: f64, new: f64) -> f64 {
    // Exactly antisymmetric, so that equal ratios in opposite directions are ties.
    let (smaller, larger) = if baseline < new { (baseline, new) } else { (new, baseline) };
    let size = if smaller > 0.0 { (larger / smaller).ln() } else { UNBOUNDED };
    match baseline.partial_cmp(&new) {
        Some(Ordering::Less) => size,
        Some(Ordering::Greater) => -size,
        Some(Ordering::Equal) | None => 0.0,
    }
}

/// The typical ratio, from the logarithms of the ratios of all cases; `None` without a case, or if it is not finite.
fn typical(mut logs: Vec<f64>) -> Option<UsageRatio> {
    logs.sort_unstable_by(f64::total_cmp);
    let means = logs.len() * (logs.len() + 1) / 2;
    let finite = |sum: f64| Some((sum / 2.0).exp()).filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    let middle = match means {
        0 => return None,
        odd if odd % 2 == 1 => kth_sum(&logs, odd / 2 + 1),
        even => f64::midpoint(kth_sum(&logs, even / 2), kth_sum(&logs, even / 2 + 1)),
    };
    let cut = outside(logs.len());
    // Closed intervals at the positions of untied ranks cover at least as often where there are ties (Noether 1967).
    let end = |position: usize| (cut > 0).then(|| kth_sum(&logs, position)).and_then(finite).map(four_digits);
    let estimate = four_digits(finite(middle)?);
    // The lower end of a ratio that is not finite upwards is 0, which is a number.
    Some(UsageRatio { estimate, low: end(cut), high: end(means + 1 - cut) })
}

fn four_digits(value: f64) -> f64 {
    // More digits are noise, and the last digits of logarithms differ between platforms.
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a finite number has three digits")]
    let exponent = value.log10().floor() as i32;
    let scale = 10_f64.powi(3 - exponent);
    if scale.is_finite() { (value * scale).round() / scale } else { value }
}

/// The position of the lower end of the interval among the sorted means of pairs, counted from 1; 0 if the cases are too
/// few for an interval.
fn outside(cases: usize) -> usize {
    if cases > EXACT_UP_TO {
        let n = cases as f64;
        let centre = n * (n + 1.0) / 4.0;
        let spread = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        // Rounded down, towards a wider interval.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to n² / 4, as there are many cases"
        )]
        return (centre - QUANTILE * spread).floor() as usize;
    }
    let (mut below, mut position) = (0.0, 0);
    for mass in untied(cases) {
        below += mass;
        if below > TAIL {
            return position;
        }
        position += 1;
    }
    position
}

/// The distribution of the sum of the ranks `1..=cases` with random signs, up to half of its range.
fn untied(cases: usize) -> Vec<f64> {
    let mut mass = vec![0.0; cases * (cases + 1) / 4 + 1];
    mass[0] = 1.0;
    for rank in 1..=cases {
        for sum in (0..mass.len()).rev() {
            let with = if sum >= rank { mass[sum - rank] } else { 0.0 };
            mass[sum] = f64::midpoint(mass[sum], with);
        }
    }
    mass
}

/// The `k`-th smallest sum of two of the sorted values, each pair once and each value with itself, counted from 1.
fn kth_sum(sorted: &[f64], k: usize) -> f64 {
    // Found by bisection over the possible numbers, because the 50 million pairs of 10,000 cases do not fit in memory.
    let (mut low, mut high) = (ordered(2.0 * sorted[0]), ordered(2.0 * sorted[sorted.len() - 1]));
    while low < high {
        let middle = low + (high - low) / 2;
        if sums_up_to(sorted, number(middle)) >= k { high = middle } else { low = middle + 1 }
    }
    number(low)
}

/// The number of pairs whose sum is at most `bound`, in linear time: as the first value grows, its last partner moves down.
fn sums_up_to(sorted: &[f64], bound: f64) -> usize {
    let (mut count, mut end) = (0, sorted.len());
    for (index, value) in sorted.iter().enumerate() {
        while end > index && value + sorted[end - 1] > bound {
            end -= 1;
        }
        if end <= index {
            break;
        }
        count += end - index;
    }
    count
}

/// A whole number in the order of the floats.
fn ordered(value: f64) -> i128 {
    let bits = i128::from(value.to_bits());
    if value.is_sign_negative() { (1 << 63) - bits } else { bits }
}

fn number(ordered: i128) -> f64 {
    let bits = if ordered < 0 { (1_i128 << 63) - ordered } else { ordered };
    f64::from_bits(u64::try_from(bits).unwrap_or(0))
}

/// The most differences with an exact p-value. The work grows with the cube of their number: 8 million additions here.
const EXACT_UP_TO: usize = 200;

/// Differences that are equal up to rounding are ties. Logarithms of equal ratios can differ in the last digits.
const EQUAL_WITHIN: f64 = 1e-12;

#[derive(Debug, Clone, Copy, PartialEq)]
struct SignedRank {
    /// The p-value of the alternative that the differences are larger than 0; 1 without a difference.
    p: f64,
    method: UsageMethod,
}

fn signed_rank_test(differences: &[f64]) -> SignedRank {
    // Differences of 0 are left out, as Wilcoxon does: they say nothing about the direction, and the test stays exact given the
    // others.
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

/// The same by the normal distribution.
fn normal(doubled: &[usize], positive: usize) -> f64 {
    // The variance of the sum is a quarter of the sum of the squared ranks, which includes the correction for ties.
    let ranks = || doubled.iter().map(|rank| *rank as f64 / 2.0);
    let mean = ranks().sum::<f64>() / 2.0;
    let variance = ranks().map(|rank| rank * rank).sum::<f64>() / 4.0;
    // Half a rank towards the mean: the sum is a step function of whole ranks.
    upper_tail((positive as f64 / 2.0 - mean - 0.5) / variance.sqrt())
}

fn upper_tail(z: f64) -> f64 {
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
    reason = "ties are equal numbers, both sides are computed in the same way, and 3.14 is a published measurement"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_sums(values: &[f64]) -> Vec<f64> {
        let pairs = (0..values.len()).flat_map(|i| (i..values.len()).map(move |j| (i, j)));
        let mut sums: Vec<f64> = pairs.map(|(i, j)| values[i] + values[j]).collect();
        sums.sort_unstable_by(f64::total_cmp);
        sums
    }

    #[test]
    fn the_position_of_the_interval_is_that_of_the_tables() {
        // qsignrank(0.025, n) of R; 0 if no 95 % interval exists.
        for (cases, position) in
            [(0, 0), (5, 0), (6, 1), (7, 3), (8, 4), (9, 6), (10, 9), (15, 26), (20, 53), (50, 435)]
        {
            assert_eq!(outside(cases), position, "{cases}");
        }
        let (exact, beyond) = (outside(EXACT_UP_TO), outside(EXACT_UP_TO + 1));
        assert!(beyond > exact && beyond - exact < 120, "{exact} {beyond}");
    }

    #[test]
    fn the_ratio_of_a_constant_factor_is_that_factor() {
        let logs = (1..=12_u32).map(|value| log_ratio(f64::from(value), f64::from(value) * 1.43)).collect();
        let ratio = typical(logs).unwrap();
        assert_eq!((ratio.estimate, ratio.low, ratio.high), (1.43, Some(1.43), Some(1.43)));
        assert_eq!(typical(vec![0.0; 3]), Some(UsageRatio { estimate: 1.0, low: None, high: None }));
        assert_eq!(typical(Vec::new()), None);
    }

    #[test]
    fn a_zero_on_one_side_counts_as_the_largest_change() {
        assert_eq!(log_ratio(0.0, 0.0), 0.0);
        assert_eq!((log_ratio(0.0, 3.0), log_ratio(3.0, 0.0)), (UNBOUNDED, -UNBOUNDED));
        assert_eq!(typical(vec![UNBOUNDED; 9]), None, "no finite ratio");
        let mut logs = vec![0.1; 20];
        logs.push(UNBOUNDED);
        let ratio = typical(logs).unwrap();
        assert_eq!((ratio.estimate, ratio.low), (1.105, Some(1.105)));
    }

    proptest! {
        #[test]
        fn selection_equals_sorting(values in proptest::collection::vec(-20i32..20, 1..14)) {
            let mut values: Vec<f64> = values.into_iter().map(|value| f64::from(value) / 7.0).collect();
            values.sort_unstable_by(f64::total_cmp);
            for (index, sum) in all_sums(&values).into_iter().enumerate() {
                prop_assert_eq!(kth_sum(&values, index + 1), sum);
            }
        }

        #[test]
        fn numbers_keep_their_order(left: f64, right: f64) {
            prop_assume!(!left.is_nan() && !right.is_nan());
            prop_assert_eq!(left.total_cmp(&right), ordered(left).cmp(&ordered(right)).then(left.total_cmp(&right)));
            prop_assert_eq!(number(ordered(left)), left);
        }

        #[test]
        fn ratios_in_opposite_directions_are_exact_opposites(left in 0u32..1000, right in 0u32..1000) {
            let (left, right) = (f64::from(left), f64::from(right));
            prop_assert_eq!(log_ratio(left, right), -log_ratio(right, left));
        }
    }

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
        let result = signed_rank_test(&fall);
        assert!((result.p - 0.019_531_25).abs() < 1e-12, "{result:?}");
        assert_eq!(result.method, UsageMethod::Exact);
        assert!((signed_rank_test(&[]).p - 1.0).abs() < 1e-12);
        assert!((signed_rank_test(&[0.0, 0.0]).p - 1.0).abs() < 1e-12);
        assert!((signed_rank_test(&[1.0; 6]).p - 1.0 / 64.0).abs() < 1e-12);
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
            let found = signed_rank_test(&differences).p;
            prop_assert!((found - enumerated(&differences)).abs() < 1e-12, "{differences:?}: {found}");
        }
    }
}
