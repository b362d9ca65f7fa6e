//! Numbers and keys of maps. A number is one type to JSON and three to CEL; numbers compare by their exact value.

use std::cmp::Ordering;

use super::containers::Str;
use super::value::Value;

/// A number of any type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Uint(u64),
    Double(f64),
}

impl Number {
    /// Returns the nearest double.
    pub(crate) fn to_double(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Uint(value) => value as f64,
            Number::Double(value) => value,
        }
    }

    /// Returns the whole number that this number is equal to, if there is one within the range of both integer types.
    pub(crate) fn to_whole(self) -> Option<i128> {
        match self {
            Number::Int(value) => Some(value.into()),
            Number::Uint(value) => Some(value.into()),
            Number::Double(value) if value.fract() == 0.0 && value.abs() < TWO_POW_64 => Some(truncated(value)),
            Number::Double(_) => None,
        }
    }
}

/// All integers of both types are below this double, and above its negative.
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

/// Removes the fraction of a double below 2^64.
#[expect(clippy::cast_possible_truncation, reason = "the callers check the range")]
fn truncated(value: f64) -> i128 {
    value.trunc() as i128
}

/// Compares two numbers exactly, also an integer with a double. Returns `None` for NaN.
pub(crate) fn compare_numbers(left: Number, right: Number) -> Option<Ordering> {
    match (left, right) {
        (Number::Double(left), Number::Double(right)) => left.partial_cmp(&right),
        (Number::Double(left), right) => integer_with_double(right, left).map(Ordering::reverse),
        (left, Number::Double(right)) => integer_with_double(left, right),
        (left, right) => Some(left.to_whole().cmp(&right.to_whole())),
    }
}

fn integer_with_double(integer: Number, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Beyond both integer types, only the sign decides. The conversion below would saturate.
    if double.abs() >= TWO_POW_64 {
        return Some(if double > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    // As integers and not as doubles: above 2^53 a conversion of the integer would round it to another one.
    match integer.to_whole().cmp(&Some(truncated(double))) {
        Ordering::Equal => 0.0_f64.partial_cmp(&double.fract()),
        other => Some(other),
    }
}

pub(crate) fn double_text(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    value.to_string()
}

/// A key. Numbers of different types that are equal are one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key<'j> {
    Bool(bool),
    Int(i64),
    /// Only above the range of `Int`.
    Uint(u64),
    String(Str<'j>),
}

impl<'j> Key<'j> {
    /// Returns the key that a value stands for. A number with a fraction and a value of another type are no key.
    pub(crate) fn of(value: &Value<'j>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Key::Bool(*value)),
            Value::String(text) => Some(Key::String(text.clone())),
            other => other.number().and_then(Self::of_number),
        }
    }

    fn of_number(number: Number) -> Option<Self> {
        // The smaller type wins, so that `1` and `1u` are one key.
        let whole = number.to_whole()?;
        i64::try_from(whole).map(Key::Int).or_else(|_| u64::try_from(whole).map(Key::Uint)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_doubles_compare_exactly() {
        let compare = |int: i64, double: f64| compare_numbers(Number::Int(int), Number::Double(double));
        assert_eq!(compare(50, 50.0), Some(Ordering::Equal));
        assert_eq!((compare(50, 50.5), compare(-50, -50.5)), (Some(Ordering::Less), Some(Ordering::Greater)));
        assert_eq!(compare(9_007_199_254_740_993, 9_007_199_254_740_992.0), Some(Ordering::Greater));
        assert_eq!(
            (compare(i64::MAX, 1e300), compare(i64::MIN, -1e300)),
            (Some(Ordering::Less), Some(Ordering::Greater))
        );
        assert_eq!(
            (compare(i64::MIN, -9_223_372_036_854_775_808.0), compare(0, f64::NAN)),
            (Some(Ordering::Equal), None)
        );
        let unsigned = |uint: u64, double: f64| compare_numbers(Number::Uint(uint), Number::Double(double));
        assert_eq!(unsigned(u64::MAX, 18_446_744_073_709_551_616.0), Some(Ordering::Less));
        assert_eq!(unsigned(1 << 63, 9_223_372_036_854_775_808.0), Some(Ordering::Equal));
        assert_eq!(compare_numbers(Number::Int(-1), Number::Uint(u64::MAX)), Some(Ordering::Less));
    }
}
