//! The two variants of the agent. The caller decides which side of a comparison a variant is used for.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    Baseline,
    New,
}

impl Variant {
    pub const BOTH: [Variant; 2] = [Variant::Baseline, Variant::New];

    pub const fn as_str(self) -> &'static str {
        match self {
            Variant::Baseline => "baseline",
            Variant::New => "new",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a variant: expected `baseline` or `new`")]
pub struct UnknownVariant(String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        // Through the names, so that both directions agree.
        Variant::BOTH
            .into_iter()
            .find(|variant| variant.as_str() == text)
            .ok_or_else(|| UnknownVariant(text.to_owned()))
    }
}
