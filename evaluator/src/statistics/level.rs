//! The comparison of a p-value with a level, in one place.
//!
//! P-values are sums of floating-point numbers. A p-value that equals the level in exact arithmetic, such as 1/20 at 5 %, may come
//! out a few units in the last place above it. Values within a relative distance of one part in a billion count as equal: far
//! more than the rounding error of any sum here, and far less than the distance of two different outcomes.

/// The factor within which two probabilities are equal.
pub(super) const TIE: f64 = 1.0 + 1e-9;

/// Whether a p-value is at most the level, within rounding errors.
pub fn is_at_most(p: f64, level: f64) -> bool {
    p <= level * TIE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p_value_that_equals_the_level_reaches_it_in_spite_of_rounding() {
        // 1/20 as a sum of fractions is not the nearest number to 0.05.
        let p: f64 = [1.0 / 60.0; 3].iter().sum();
        assert!(is_at_most(p, 0.05) && is_at_most(0.050_000_000_000_000_03, 0.05));
        assert!(!is_at_most(0.050_001, 0.05));
    }
}
