//! Distributions of whole numbers: binomial, hypergeometric, and sums of independent ones by convolution.

use std::collections::BTreeMap;

/// Smaller mass at either end is dropped. In a sum of a million terms, the dropped mass stays far below any p-value that
/// matters.
const NEGLIGIBLE: f64 = 1e-60;

/// The mass of each whole number from `first` on. The mass need not add up to one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Distribution {
    first: usize,
    mass: Vec<f64>,
}

impl Distribution {
    /// All mass on zero: the sum of no terms.
    pub(super) fn zero() -> Self {
        Self { first: 0, mass: vec![1.0] }
    }

    /// The number of passes in `runs` runs that each pass with probability `rate`, above 0 and below 1.
    pub(super) fn binomial(runs: u32, rate: f64) -> Self {
        let odds = rate / (1.0 - rate);
        Self::from_ratios(0, runs, |passed| f64::from(runs - passed) / f64::from(passed + 1) * odds)
    }

    /// The number of the `passed` passes that fall on `drawn` runs if the labels of all `drawn + others` runs are permuted.
    pub(super) fn hypergeometric(others: u32, drawn: u32, passed: u32) -> Self {
        let (others, drawn, passed) = (u64::from(others), u64::from(drawn), u64::from(passed));
        let (lowest, highest) = (passed.saturating_sub(others), passed.min(drawn));
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Self::from_ratios(narrow(lowest), narrow(highest), |count| {
            let count = u64::from(count);
            let grows = (passed - count) as f64 * (drawn - count) as f64;
            grows / ((count + 1) as f64 * (others + count + 1 - passed) as f64)
        })
    }

    /// Builds a distribution from the ratio of each mass to the one before. It starts at the largest mass: no product overflows,
    /// and no digits are lost to logarithms.
    fn from_ratios(lowest: u32, highest: u32, ratio: impl Fn(u32) -> f64) -> Self {
        let ratios: Vec<f64> = (lowest..highest).map(ratio).collect();
        // The distributions are unimodal, so the ratios fall and the mass is largest where they first drop below 1.
        let mode = ratios.partition_point(|ratio| *ratio >= 1.0);
        let mut mass = vec![1.0; ratios.len() + 1];
        for index in mode..ratios.len() {
            mass[index + 1] = mass[index] * ratios[index];
        }
        for index in (0..mode).rev() {
            mass[index] = mass[index + 1] / ratios[index];
        }
        let total: f64 = mass.iter().sum();
        for share in &mut mass {
            *share /= total;
        }
        Self { first: lowest as usize, mass }
    }

    /// Builds a distribution from the masses of some numbers; all others have none.
    pub(super) fn from_masses(masses: &BTreeMap<u64, f64>) -> Self {
        let narrow = |number: &u64| usize::try_from(*number).unwrap_or(usize::MAX);
        let (Some(first), Some(last)) = (masses.keys().next().map(narrow), masses.keys().next_back().map(narrow))
        else {
            return Self { first: 0, mass: vec![0.0] };
        };
        let mut mass = vec![0.0; last - first + 1];
        for (number, share) in masses {
            mass[narrow(number) - first] = *share;
        }
        Self { first, mass }
    }

    /// Each number with its mass, from the smallest on.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        (self.first..).zip(self.mass.iter().copied())
    }

    /// The masses alone.
    pub(super) fn into_mass(self) -> Vec<f64> {
        self.mass
    }

    /// The mass of all numbers up to `number`.
    pub(super) fn at_most(&self, number: usize) -> f64 {
        self.iter().take_while(|(at, _)| *at <= number).map(|(_, mass)| mass).sum()
    }

    /// The mass of all numbers from `number` on.
    pub(super) fn at_least(&self, number: usize) -> f64 {
        self.iter().filter(|(at, _)| *at >= number).map(|(_, mass)| mass).sum()
    }

    /// Returns the distribution restricted to some numbers.
    pub(super) fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mass = self.iter().map(|(at, mass)| if keep(at) { mass } else { 0.0 }).collect();
        Self { first: self.first, mass }
    }

    /// The distribution of the sum of two independent numbers.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut mass = vec![0.0; self.mass.len() + other.mass.len() - 1];
        for (shift, share) in self.mass.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            for (at, more) in mass[shift..].iter_mut().zip(&other.mass) {
                *at += share * more;
            }
        }
        Self { first: self.first + other.first, mass }.trimmed()
    }

    /// The distribution of the sum of `count` independent numbers, in about log2(count) convolutions.
    pub(super) fn times(&self, count: usize) -> Self {
        let (mut sum, mut power, mut left) = (Self::zero(), self.clone(), count);
        while left > 0 {
            if left % 2 == 1 {
                sum = sum.plus(&power);
            }
            left /= 2;
            if left > 0 {
                power = power.plus(&power);
            }
        }
        sum
    }

    /// Drops the negligible mass at both ends, so that the length of a sum follows its spread.
    fn trimmed(mut self) -> Self {
        // Without trimming, the sum over n cases has n times the range, although its spread grows with the root of n only.
        let heavy = |mass: &f64| *mass > NEGLIGIBLE;
        let start = self.mass.iter().position(heavy).unwrap_or(0);
        let end = self.mass.iter().rposition(heavy).map_or(1, |last| last + 1);
        self.mass.truncate(end.max(start + 1));
        self.mass.drain(..start);
        self.first += start;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-12
    }

    #[test]
    fn small_distributions_are_those_of_the_textbook() {
        let coins = Distribution::binomial(3, 0.5);
        assert!(coins.iter().zip([0.125, 0.375, 0.375, 0.125]).all(|((_, mass), known)| close(mass, known)));
        // Five of ten runs passed: the tea-tasting table of Fisher (1935) has eight, of which four.
        let tea = Distribution::hypergeometric(4, 4, 4);
        let known = [1.0, 16.0, 36.0, 16.0, 1.0].map(|ways| ways / 70.0);
        assert!(tea.iter().zip(known).all(|((_, mass), known)| close(mass, known)));
        let forced = Distribution::hypergeometric(1, 3, 3);
        assert_eq!(forced.iter().map(|(at, _)| at).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_sum_of_binomials_is_a_binomial() {
        let (sum, whole) = (Distribution::binomial(7, 0.3).times(9), Distribution::binomial(63, 0.3));
        for number in 0..=63 {
            assert!(close(sum.at_most(number), whole.at_most(number)), "{number}");
            assert!(close(sum.at_least(number), whole.at_least(number)), "{number}");
        }
        assert_eq!(Distribution::binomial(7, 0.3).times(0), Distribution::zero());
    }

    #[test]
    fn a_sum_of_many_terms_stays_as_short_as_its_spread() {
        let sum = Distribution::hypergeometric(5, 5, 9).times(100_000);
        assert!(sum.mass.len() < 10_000, "{}", sum.mass.len());
        assert!((sum.at_most(usize::MAX) - 1.0).abs() < 1e-9);
        assert!((0.49..0.51).contains(&sum.at_most(450_000)));
    }
}
