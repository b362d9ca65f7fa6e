//! Reproducible random numbers: `SplitMix64` (Steele, Lea & Flood: "Fast splittable pseudorandom number generators", 2014).

/// A generator with a fixed seed.
pub(super) struct Random(u64);

impl Random {
    /// Starts a sequence of its own for each seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// True with this probability.
    pub(super) fn happens(&mut self, chance: f64) -> bool {
        ((self.next() >> 11) as f64) < chance * (1_u64 << 53) as f64
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
