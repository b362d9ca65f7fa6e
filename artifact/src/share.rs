//! A share of a whole, exact to a millionth: a written share is not rounded before it is compared with a count.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Resolution: a share is a whole number of millionths.
const WHOLE: u32 = 1_000_000;

/// Maximum number of decimal places of a percentage.
const DIGITS: usize = 4;

/// A share from 0 to 1. The text `"2 %"` and the number `0.02` are equivalent; it is serialised as the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share {
    millionths: u32,
}

/// Invalid text of a share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a share: expected a percentage from 0 to 100 with at most four decimal places, such as \"2 %\"")]
pub struct ShareError(String);

impl Share {
    /// Returns the share as a number from 0 to 1. `"5 %"` gives exactly the `f64` literal `0.05`.
    pub fn value(self) -> f64 {
        f64::from(self.millionths) / f64::from(WHOLE)
    }

    /// Returns this share of a number, rounded down.
    pub fn floor_of(self, whole: u64) -> u64 {
        self.scale(whole, 0)
    }

    /// Returns this share of a number, rounded up.
    pub fn ceil_of(self, whole: u64) -> u64 {
        self.scale(whole, WHOLE - 1)
    }

    // In whole numbers: the product of two floats could round a limit of cases up or down by one.
    fn scale(self, whole: u64, up: u32) -> u64 {
        let parts = u128::from(whole) * u128::from(self.millionths) + u128::from(up);
        // A share is at most the whole, so the result fits.
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
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShareVisitor;

        impl Visitor<'_> for ShareVisitor {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as 0.02 or \"2 %\"")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Share, E> {
                Share::try_from(number).map_err(E::custom)
            }

            #[expect(clippy::cast_precision_loss, reason = "0 and 1 are exact, and all other integers are rejected")]
            fn visit_u64<E: Error>(self, number: u64) -> Result<Share, E> {
                self.visit_f64(number as f64)
            }

            #[expect(clippy::cast_precision_loss, reason = "0 and 1 are exact, and all other integers are rejected")]
            fn visit_i64<E: Error>(self, number: i64) -> Result<Share, E> {
                self.visit_f64(number as f64)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Share, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(ShareVisitor)
    }
}

/// A number that is not between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is not a share from 0 to 1")]
pub struct ShareRangeError(f64);

impl TryFrom<f64> for Share {
    type Error = ShareRangeError;

    fn try_from(number: f64) -> Result<Self, ShareRangeError> {
        // A range that contains the number, so that NaN is refused too.
        if !(0.0..=1.0).contains(&number) {
            return Err(ShareRangeError(number));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked above")]
        let millionths = (number * f64::from(WHOLE)).round() as u32;
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
    fn percentages_are_parsed_exactly() {
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
    fn shares_of_numbers_are_rounded_in_the_requested_direction() {
        assert_eq!((share("2 %").floor_of(149), share("2 %").floor_of(150)), (2, 3));
        // 0.07 × 100 is 7.000000000000001 in floats.
        assert_eq!((share("7 %").floor_of(100), share("7 %").ceil_of(100)), (7, 7));
        assert_eq!((share("7 %").ceil_of(101), share("100 %").floor_of(u64::MAX)), (8, u64::MAX));
        assert_eq!((share("50 %").floor_of(0), share("50 %").ceil_of(0)), (0, 0));
    }

    #[test]
    fn a_number_and_a_percentage_are_equivalent() {
        assert_eq!(serde_json::to_string(&share("2 %")).unwrap(), "0.02");
        for (text, percentage) in [("0.005", "0.5 %"), ("1", "100 %"), ("0", "0 %"), ("\"5 %\"", "5 %")] {
            assert_eq!(serde_json::from_str::<Share>(text).unwrap(), share(percentage), "{text}");
        }
        for text in ["1.5", "2", "-1", "-0.1", "\"2\"", "null"] {
            assert!(serde_json::from_str::<Share>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_value_of_a_percentage_is_exactly_the_number() {
        for (percentage, number) in [("5 %", 0.05), ("0.1 %", 0.001), ("35 %", 0.35), ("80 %", 0.8)] {
            assert_eq!(share(percentage).value().to_bits(), f64::to_bits(number), "{percentage}");
        }
    }
}
