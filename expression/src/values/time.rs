//! Timestamps from year 1 to 9999, and durations: 64 bits of nanoseconds, about 292 years in both directions.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp as Instant};

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
        // Zero is the same in every unit, and CEL takes it without one.
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
    // More digits than a duration can have would overflow the product with the unit.
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

/// A point in time, as its date and time in UTC. The library's own points in time end some hours before the year 9999 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(DateTime);

/// The start of the count of seconds.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

const FIRST_YEAR: i16 = 1;

impl Timestamp {
    /// Returns the timestamp with this distance from 1970, or `None` outside of the years 1 to 9999.
    fn at(distance: SignedDuration) -> Option<Self> {
        EPOCH.checked_add(distance).ok().filter(|time| time.year() >= FIRST_YEAR).map(Self)
    }

    fn distance(self) -> SignedDuration {
        self.0.duration_since(EPOCH)
    }

    pub(crate) fn from_second(second: i64) -> Option<Self> {
        Self::at(SignedDuration::from_secs(second))
    }

    /// Parses a timestamp of RFC 3339, such as `2026-01-31T08:30:00.5+01:00`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let zone = zone_start(text.as_bytes())?;
        // The form is checked before, because the library accepts more than RFC 3339.
        let time: DateTime = text[..zone].parse().ok()?;
        let offset = offset_seconds(&text[zone..])?;
        Self::at(time.duration_since(EPOCH).checked_sub(SignedDuration::from_secs(offset))?)
    }

    /// Returns whole seconds since 1970, rounded down.
    pub(crate) fn second(self) -> i64 {
        let distance = self.distance();
        // The library rounds towards zero, and a second before 1970 is negative.
        distance.as_secs() - i64::from(distance.subsec_nanos() < 0)
    }

    pub(crate) fn checked_add(self, duration: Duration) -> Option<Self> {
        Self::at(self.distance().checked_add(SignedDuration::from_nanos(duration.0))?)
    }

    pub(crate) fn checked_sub(self, other: Self) -> Option<Duration> {
        i64::try_from(self.0.duration_since(other.0).as_nanos()).ok().map(Duration)
    }

    /// Returns the local date and time in a zone, or `None` outside of the years -9999 to 9999.
    pub(crate) fn local(self, zone: &TimeZone) -> Option<DateTime> {
        // The library's last instant is hours before the end of the year 9999. Its offset stands for those.
        let instant = Instant::from_duration(self.distance()).unwrap_or(Instant::MAX);
        let offset = zone.to_offset(instant).seconds();
        self.0.checked_add(SignedDuration::from_secs(offset.into())).ok()
    }

    /// Returns the date and time in UTC.
    pub(crate) fn utc(self) -> DateTime {
        self.0
    }
}

/// Returns the position of the zone in a timestamp, or `None` if the text does not have the form of RFC 3339.
fn zone_start(text: &[u8]) -> Option<usize> {
    const FORM: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let (date, rest) = text.split_at_checked(FORM.len())?;
    // A leap second has no place in a count of seconds.
    if !has_form(FORM, date) || date.ends_with(b"60") {
        return None;
    }
    let fraction = match rest.strip_prefix(b".") {
        Some(rest) => match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 | 10.. => return None,
            digits => 1 + digits,
        },
        None => 0,
    };
    Some(FORM.len() + fraction)
}

/// Parses `Z`, or an offset such as `+01:30`.
fn offset_seconds(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    if !has_form(b"sdd:dd", zone.as_bytes()) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (zone[1..3].parse().ok()?, zone[4..].parse().ok()?);
    let seconds = hours * 3600 + minutes * 60;
    (hours < 24 && minutes < 60).then_some(if zone.starts_with('-') { -seconds } else { seconds })
}

/// Returns whether a text has digits for `d`, a sign for `s`, and equal characters elsewhere.
fn has_form(form: &[u8], text: &[u8]) -> bool {
    form.len() == text.len()
        && form.iter().zip(text).all(|(form, byte)| match form {
            b'd' => byte.is_ascii_digit(),
            b's' => matches!(byte, b'+' | b'-'),
            form => form == byte,
        })
}

/// Writes the timestamp in UTC.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", self.0)
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

    #[test]
    fn timestamps_are_parsed_and_printed() {
        for (text, printed) in [
            ("2009-02-13T23:31:30Z", "2009-02-13T23:31:30Z"),
            ("2009-02-13T23:31:30.500+01:30", "2009-02-13T22:01:30.5Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
        ] {
            assert_eq!(Timestamp::parse(text).map(|time| time.to_string()).as_deref(), Some(printed), "{text}");
        }
        for text in [
            "",
            "2009-02-13",
            "2009-02-13T23:31:30",
            "2009-02-13 23:31:30Z",
            "2009-02-13t23:31:30z",
            "2009-02-13T23:31:60Z",
            "2009-02-30T00:00:00Z",
            "2009-02-13T23:31:30.Z",
            "2009-02-13T23:31:30Z[UTC]",
            "0000-12-31T23:59:59Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "10000-01-01T00:00:00Z",
            "2009-02-13T23:31:30+24:00",
            "2009-02-13T23:31:30.1234567890Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
