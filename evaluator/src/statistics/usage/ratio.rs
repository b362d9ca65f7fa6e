//! The ratio of new to baseline in a typical case: the Hodges–Lehmann estimate (1963) on the logarithms of the paired ratios,
//! with the interval that belongs to the signed-rank test.

use std::cmp::Ordering;

use counterproof_artifact::evaluation::UsageRatio;

use super::signed_rank::EXACT_UP_TO;

/// The probability outside of the interval at each end.
const TAIL: f64 = 0.025;

/// The standard normal quantile of [`TAIL`].
const QUANTILE: f64 = 1.959_963_984_540_054;

/// The logarithm of a ratio with a zero on one side: larger than that of any two numbers, and finite, so that two opposite ones
/// have the mean 0.
pub(super) const UNBOUNDED: f64 = 2000.0;

/// The logarithm of `new / baseline`, for values of zero or more. Exactly antisymmetric, so that equal ratios in opposite
/// directions are ties.
pub(super) fn log_ratio(baseline: f64, new: f64) -> f64 {
    let (smaller, larger) = if baseline < new { (baseline, new) } else { (new, baseline) };
    let size = if smaller > 0.0 { (larger / smaller).ln() } else { UNBOUNDED };
    match baseline.partial_cmp(&new) {
        Some(Ordering::Less) => size,
        Some(Ordering::Greater) => -size,
        Some(Ordering::Equal) | None => 0.0,
    }
}

/// The typical ratio, from the logarithms of the ratios of all cases; `None` without a case, or where it is not finite.
pub(super) fn typical(mut logs: Vec<f64>) -> Option<UsageRatio> {
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

/// Rounds to four significant digits. More are noise, and the last digits of logarithms differ between platforms.
fn four_digits(value: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a finite number has three digits")]
    let exponent = value.log10().floor() as i32;
    let scale = 10_f64.powi(3 - exponent);
    if scale.is_finite() { (value * scale).round() / scale } else { value }
}

/// The position of the lower end of the interval among the sorted means of pairs, counted from 1; 0 where the cases are too
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

/// The `k`-th smallest sum of two of the sorted values, each pair once and each value with itself, counted from 1. Found by
/// bisection over the possible numbers, because the 50 million pairs of 10,000 cases do not fit in memory.
fn kth_sum(sorted: &[f64], k: usize) -> f64 {
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

/// The inverse of [`ordered`].
fn number(ordered: i128) -> f64 {
    let bits = if ordered < 0 { (1_i128 << 63) - ordered } else { ordered };
    f64::from_bits(u64::try_from(bits).unwrap_or(0))
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "both sides are computed in the same way")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all_sums(values: &[f64]) -> Vec<f64> {
        let pairs = (0..values.len()).flat_map(|i| (i..values.len()).map(move |j| (i, j)));
        let mut sums: Vec<f64> = pairs.map(|(i, j)| values[i] + values[j]).collect();
        sums.sort_unstable_by(f64::total_cmp);
        sums
    }

    #[test]
    fn the_position_of_the_interval_is_that_of_the_tables() {
        // qsignrank(0.025, n) of R; 0 where no 95 % interval exists.
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
}
