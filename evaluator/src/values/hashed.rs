//! Maps and sets whose keys are keyed hashes already. Hashing them again would cost time and add nothing.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are hashes.
pub(crate) type HashedMap<V> = HashMap<u64, V, BuildHasherDefault<AsIs>>;

pub(crate) type HashedSet = HashSet<u64, BuildHasherDefault<AsIs>>;

/// A hasher that returns the hash unchanged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, bytes: &[u8]) {
        // Required by the trait. Keys are `u64`, so only `write_u64` runs.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
