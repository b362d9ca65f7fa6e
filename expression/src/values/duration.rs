//! Durations: 64 bits of nanoseconds, about 292 years in both directions.

use std::fmt;

/// A duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Duration(pub(crate) i64);

/// Units, longer names before their beginnings.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
];

const SECOND: i128 = 1_000_000_000;

impl Duration {
    pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;

    /// Parses a sign and numbers with units, such as `1h30m`, `-1.5s` or `100ms`. `0` needs no unit.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (sign, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        if unsigned == "0" {
            return Some(Self(0));
        }
        let (mut total, mut rest) = component(unsigned)?;
        while !rest.is_empty() {
            let (nanos, after) = component(rest)?;
            total = total.checked_add(nanos)?;
            rest = after;
        }
        i64::try_from(sign * total).ok().map(Self)
    }
}

/// Parses one number with its unit at the start of a text. Returns nanoseconds and the rest of the text.
fn component(text: &str) -> Option<(i128, &str)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() || whole.len() > 20 {
        return None;
    }
    let (name, unit) = UNITS.into_iter().find(|(name, _)| rest.starts_with(name))?;
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Digits below a nanosecond are dropped.
    let fraction: String = fraction.chars().take(18).collect();
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<i128>().ok()? * unit / scale };
    Some((whole.checked_mul(unit)?.checked_add(part)?, &rest[name.len()..]))
}

/// Writes seconds, such as `90s` or `0.5s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        let per_second = Self::NANOS_PER_SECOND.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", nanos / per_second)?;
        if !nanos.is_multiple_of(per_second) {
            let fraction = format!("{:09}", nanos % per_second);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str("s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_printed() {
        for (text, printed) in [
            ("0", "0s"),
            ("1h30m", "5400s"),
            ("-1.5s", "-1.5s"),
            ("+100ms", "0.1s"),
            (".5h", "1800s"),
            ("1.s", "1s"),
            ("2us3µs4ns", "0.000005004s"),
            ("-999999999ns", "-0.999999999s"),
            ("9223372036s", "9223372036s"),
        ] {
            assert_eq!(Duration::parse(text).map(|duration| duration.to_string()).as_deref(), Some(printed), "{text}");
        }
        for text in ["", "-", "+", "1", "s", ".s", "1d", "1s ", " 1s", "1h-30m", "9223372037s", "1e3s", "1ä"] {
            assert_eq!(Duration::parse(text), None, "{text}");
        }
    }
}
