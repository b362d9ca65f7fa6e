//! Seeded random fractions for the waits between attempts. Not suitable for cryptography.

use std::sync::{Mutex, PoisonError};

use fastrand::Rng;

/// A source of random fractions. Threads can share it.
#[derive(Debug)]
pub struct Jitter(Mutex<Rng>);

impl Jitter {
    /// Creates a source. The same seed returns the same fractions in the same order.
    pub fn from_seed(seed: u64) -> Self {
        Self(Mutex::new(Rng::with_seed(seed)))
    }

    /// Creates a source with a seed from the system's randomness.
    pub fn from_system() -> Self {
        Self(Mutex::new(Rng::new()))
    }

    /// Returns the next fraction, at least 0 and less than 1.
    pub fn fraction(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).f64()
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
