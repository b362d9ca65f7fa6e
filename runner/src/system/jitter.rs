//! Seeded random fractions for the waits between attempts. Not suitable for cryptography.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random fractions: `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub struct Jitter(AtomicU64);

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

impl Jitter {
    /// Creates a source. The same seed returns the same fractions in the same order.
    pub const fn from_seed(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Creates a source with a seed from the system's randomness.
    pub fn from_system() -> Self {
        // Every `RandomState` has random keys from the system, so the hash of any value is a random seed.
        Self::from_seed(RandomState::new().hash_one(0))
    }

    /// Returns the next fraction, at least 0 and less than 1.
    pub fn fraction(&self) -> f64 {
        let mut bits = self.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // 32 bits are precise enough for a wait, and an `f64` represents them exactly.
        f64::from((bits >> 32) as u32) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_repeat_with_their_seed_and_stay_below_one() {
        let take = |seed| {
            let jitter = Jitter::from_seed(seed);
            (0..1000).map(|_| jitter.fraction()).collect::<Vec<_>>()
        };
        let fractions = take(7);
        assert_eq!(fractions, take(7));
        assert_ne!(fractions, take(8));
        assert!(fractions.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let mean = fractions.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }
}
