//! A part of a whole, exact to a millionth: what is written as a share is never rounded before it is held against a count.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The parts of the whole that are told apart.
const WHOLE: u32 = 1_000_000;

/// Digits of a percentage behind the point.
const DIGITS: usize = 4;

/// A share from 0 to 1. It is written as `"2 %"` by people, and stands in documents as the number `0.02`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share {
    millionths: u32,
}

/// A text that is no share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a share: expected a percentage from 0 to 100 with at most four digits behind the point, such as \"2 %\""
)]
pub struct ShareError(String);

impl Share {
    /// The greatest whole number that is not more than this share of a number.
    pub fn floor_of(self, whole: u64) -> u64 {
        self.of(whole, 0)
    }

    /// The least whole number that is not less than this share of a number.
    pub fn ceil_of(self, whole: u64) -> u64 {
        self.of(whole, WHOLE - 1)
    }

    fn of(self, whole: u64, up: u32) -> u64 {
        let parts = u128::from(whole) * u128::from(self.millionths) + u128::from(up);
        // A share is at most the whole, so nothing is lost.
        u64::try_from(parts / u128::from(WHOLE)).unwrap_or(whole)
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ShareError(text.to_owned());
        let number = text.trim().strip_suffix('%').ok_or_else(refused)?.trim_end();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > DIGITS {
            return Err(refused());
        }
        let part: u32 = format!("{part:0<DIGITS$}").parse().map_err(|_| refused())?;
        let percent: u32 = whole.parse().map_err(|_| refused())?;
        let millionths = percent.checked_mul(10_000).and_then(|whole| whole.checked_add(part)).ok_or_else(refused)?;
        if millionths > WHOLE { Err(refused()) } else { Ok(Self { millionths }) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.millionths / 10_000, self.millionths % 10_000);
        let part = format!("{part:04}");
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole} %"),
            part => write!(f, "{whole}.{part} %"),
        }
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.millionths) / f64::from(WHOLE))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        if !(0.0..=1.0).contains(&share) {
            return Err(serde::de::Error::custom(format!("{share} is not a share from 0 to 1")));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range, as was just seen")]
        let millionths = (share * f64::from(WHOLE)).round() as u32;
        Ok(Self { millionths })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Share {
        text.parse().unwrap()
    }

    #[test]
    fn a_percentage_is_read_exactly_and_written_as_it_was() {
        for (text, shown) in
            [("2 %", "2 %"), ("2%", "2 %"), (" 0.5 % ", "0.5 %"), ("100.0000%", "100 %"), ("0%", "0 %")]
        {
            assert_eq!(share(text).to_string(), shown);
        }
        for text in [
            "2",
            "",
            "%",
            "-1 %",
            "101 %",
            "100.0001 %",
            "0.00001 %",
            "1.2.3 %",
            "1e1 %",
            ".5 %",
            "2. %",
            "99999999999 %",
        ] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_of_a_number_is_never_rounded_the_wrong_way() {
        assert_eq!((share("2 %").floor_of(149), share("2 %").floor_of(150)), (2, 3));
        // 0.07 × 100 is 7.000000000000001 in floats.
        assert_eq!((share("7 %").floor_of(100), share("7 %").ceil_of(100)), (7, 7));
        assert_eq!((share("7 %").ceil_of(101), share("100 %").floor_of(u64::MAX)), (8, u64::MAX));
        assert_eq!((share("50 %").floor_of(0), share("50 %").ceil_of(0)), (0, 0));
    }

    #[test]
    fn documents_hold_it_as_a_number() {
        assert_eq!(serde_json::to_string(&share("2 %")).unwrap(), "0.02");
        assert_eq!(serde_json::from_str::<Share>("0.005").unwrap(), share("0.5 %"));
        assert_eq!(serde_json::from_str::<Share>("1").unwrap(), share("100 %"));
        assert!(serde_json::from_str::<Share>("1.5").is_err());
    }
}
