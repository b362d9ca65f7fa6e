//! Shards: which cases of a run or a comparison belong to which machine.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use counterproof_artifact::{CaseId, Sha256Digest};
use serde::{Deserialize, Serialize};

/// A shard, such as 2 of 4.
///
/// The shard of a case depends on its id alone: the first eight bytes of the id's SHA-256, read as a big-endian number,
/// modulo the number of shards, plus one. Adding or removing other cases does not move it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: NonZeroU32,
    count: NonZeroU32,
}

/// An invalid shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// The text is not `K/N`.
    #[error("invalid shard: use K/N, such as 2/4")]
    Form,
    /// K is not in 1 to N.
    #[error("shard {index}/{count} is out of range: shards are numbered from 1 to the number of shards")]
    Range {
        /// K.
        index: u32,
        /// N.
        count: u32,
    },
}

impl Shard {
    /// Creates the shard `index` of `count`, counted from 1.
    pub fn new(index: u32, count: u32) -> Result<Self, ShardError> {
        match (NonZeroU32::new(index), NonZeroU32::new(count)) {
            (Some(index), Some(count)) if index <= count => Ok(Self { index, count }),
            _ => Err(ShardError::Range { index, count }),
        }
    }

    /// Returns the number of the shard, counted from 1.
    pub const fn index(self) -> u32 {
        self.index.get()
    }

    /// Returns the number of shards.
    pub const fn count(self) -> u32 {
        self.count.get()
    }

    /// Reports whether the case belongs to this shard.
    pub fn contains(self, case: &CaseId) -> bool {
        // A cryptographic digest spreads ids evenly even if they differ in one digit only, and it is the same on every platform
        // and in every version.
        let digest = Sha256Digest::from_bytes(case.as_str().as_bytes());
        digest.leading() % u64::from(self.count.get()) == u64::from(self.index.get() - 1)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (index, count) = text.split_once('/').ok_or(ShardError::Form)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| ShardError::Form);
        Self::new(number(index)?, number(count)?)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl TryFrom<String> for Shard {
    type Error = ShardError;

    fn try_from(text: String) -> Result<Self, ShardError> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_numbers_start_at_one() {
        assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
        for text in ["", "2", "0/4", "5/4", "1/0", "-1/4", "a/b", "1/4/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_case_has_one_shard_and_shards_have_similar_sizes() {
        for count in [1, 2, 3, 7, 16] {
            let mut sizes = vec![0; count as usize];
            for number in 0..4000 {
                let case: CaseId = format!("case_{number:04}").parse().unwrap();
                let of: Vec<u32> =
                    (1..=count).filter(|&index| Shard::new(index, count).unwrap().contains(&case)).collect();
                assert_eq!(of.len(), 1);
                sizes[of[0] as usize - 1] += 1;
            }
            let fair = 4000 / count;
            assert!(sizes.iter().all(|size| (fair * 3 / 4..=fair * 5 / 4).contains(size)), "{sizes:?}");
        }
    }

    /// The hash is part of the documented format: with another one, two machines would split a run differently.
    #[test]
    fn the_hash_is_the_documented_one() {
        // printf refund_001 | sha256sum | cut -c1-16
        let case: CaseId = "refund_001".parse().unwrap();
        let expected = Sha256Digest::from_bytes(b"refund_001").short();
        let expected = u64::from_str_radix(&expected, 16).unwrap() % 4;
        assert!(Shard::new(u32::try_from(expected).unwrap() + 1, 4).unwrap().contains(&case));
    }
}
