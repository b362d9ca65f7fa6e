//! Numbers of the contract. JSON has one number type: `15000` and `15000.0` are equal.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

/// A duration or a point in time in milliseconds. Preserves the value, but not the notation (`1e3`, `1.50`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(Number);

impl Millis {
    /// The milliseconds, including any fraction.
    pub fn as_f64(&self) -> f64 {
        self.0.as_f64().unwrap_or(f64::MAX)
    }
}

impl From<Number> for Millis {
    fn from(millis: Number) -> Self {
        Self(millis)
    }
}

impl From<u64> for Millis {
    fn from(millis: u64) -> Self {
        Self(millis.into())
    }
}

/// A count: an integer from 0 to 2^53 − 1, which every JSON reader represents exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Count(u64);

impl Count {
    /// The largest count, 2^53 − 1. A float cannot represent every larger integer.
    pub const MAX: Count = Count((1 << 53) - 1);

    /// The count as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Saturates at [`Count::MAX`].
impl From<u64> for Count {
    fn from(count: u64) -> Self {
        // A larger integer is not exact in programs whose numbers are doubles.
        Self(count).min(Count::MAX)
    }
}

impl From<usize> for Count {
    fn from(count: usize) -> Self {
        (count as u64).into()
    }
}

impl PartialEq<u64> for Count {
    fn eq(&self, other: &u64) -> bool {
        self.0 == *other
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(deserializer)?;
        // Integers first: a float could not represent all of them.
        if let Some(count) = number.as_u64().filter(|count| *count <= Count::MAX.0) {
            return Ok(Self(count));
        }
        match number.as_f64() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole, not negative and in range"
            )]
            // JSON has one type of number, so that `3.0` is the count 3.
            Some(float) if float >= 0.0 && float.fract() == 0.0 && float <= Count::MAX.0 as f64 => {
                Ok(Self(float as u64))
            }
            _ => Err(serde::de::Error::custom(format!("{number} is not a whole number from 0 to {}", Count::MAX.0))),
        }
    }
}

/// A measured quantity, such as a mean. Written without a fraction where it is a whole number.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Deserialize)]
#[serde(transparent)]
pub struct Quantity(f64);

impl Quantity {
    /// The quantity as a number.
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl From<f64> for Quantity {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // As an integer where it is one, so that seven steps are `7` in the file and not `7.0`.
        let is_count = self.0 >= 0.0 && self.0.fract() == 0.0 && self.0 <= Count::MAX.0 as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, not negative and in range")]
        if is_count { serializer.serialize_u64(self.0 as u64) } else { serializer.serialize_f64(self.0) }
    }
}

/// Deserialises `u64` fields as [`Count`] does.
pub(crate) mod whole {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer};

    use super::Count;

    pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Count::deserialize(deserializer).map(Count::get)
    }

    pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Count>::deserialize(deserializer)?.map(Count::get))
    }

    pub(crate) fn by_key<'de, K, D>(deserializer: D) -> Result<BTreeMap<K, u64>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        D: Deserializer<'de>,
    {
        let counts = BTreeMap::<K, Count>::deserialize(deserializer)?;
        Ok(counts.into_iter().map(|(key, count)| (key, count.get())).collect())
    }
}

/// Returns a whole number with narrow spaces between groups of three digits.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            // Narrow and without a line break, so that a number stays in one piece.
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_quantities_have_no_fraction() {
        let written = |value: f64| serde_json::to_string(&Quantity::from(value)).unwrap();
        assert_eq!([written(7.0), written(7.5), written(0.0)], ["7", "7.5", "0"]);
        assert_eq!(serde_json::from_str::<Quantity>("7").unwrap(), Quantity::from(7.0));
    }

    #[test]
    fn the_largest_count_is_the_limit_of_the_schemas() {
        let read = |text: &str| serde_json::from_str::<Count>(text).ok().map(Count::get);
        assert_eq!(read("9007199254740991"), Some(Count::MAX.get()));
        assert_eq!(read("9007199254740991.0"), Some(Count::MAX.get()));
        for text in ["9007199254740992", "9007199254740992.0", "18446744073709551615", "1e300", "-1", "0.5"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!((Count::from(u64::MAX), Count::from(usize::MAX)), (Count::MAX, Count::MAX));
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(group_digits(1_234_567).replace('\u{202f}', " "), "1 234 567");
        assert_eq!(group_digits(999), "999");
    }
}
