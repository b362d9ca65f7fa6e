//! The two sides of a comparison.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A side of a comparison: the known-good version, or the one under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The version that is known to be good.
    Baseline,
    /// The version under test.
    New,
}

impl Side {
    /// Both sides, in display order.
    pub const BOTH: [Side; 2] = [Side::Baseline, Side::New];

    /// The word used in files and folder names.
    pub const fn as_str(self) -> &'static str {
        match self {
            Side::Baseline => "baseline",
            Side::New => "new",
        }
    }

    /// The side it is compared with.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Baseline => Side::New,
            Side::New => Side::Baseline,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An unknown side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a side: expected `baseline` or `new`")]
pub struct UnknownSide(String);

impl FromStr for Side {
    type Err = UnknownSide;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Side::BOTH.into_iter().find(|side| side.as_str() == text).ok_or_else(|| UnknownSide(text.to_owned()))
    }
}
