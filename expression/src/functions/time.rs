//! The parts of timestamps and durations. Timestamps take an optional time zone, and UTC without one.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::{Duration, Value, shortened};

/// Steps for a part of a timestamp: its local time is computed.
const LOCAL_TIME_STEPS: u64 = 10;

const NANOS_PER_MILLISECOND: i64 = 1_000_000;

/// Returns the local date and time of a timestamp.
fn local(budget: &mut Budget, arguments: &[Value<'_>]) -> Result<DateTime, Stop> {
    budget.charge(LOCAL_TIME_STEPS)?;
    match arguments {
        [Value::Timestamp(time)] => Ok(time.utc()),
        [Value::Timestamp(time), Value::String(zone)] => match time.local(&parse_zone(zone.as_str())?) {
            Some(local) => Ok(local),
            None => failed("the local time is after the year 9999"),
        },
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn full_year<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    local(budget, arguments).map(|time| Value::Int(time.year().into()))
}

/// Returns the month, from 0 for January.
pub(super) fn month<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    local(budget, arguments).map(|time| Value::Int(i64::from(time.month()) - 1))
}

/// Returns the day of the month, from 1.
pub(super) fn date<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    local(budget, arguments).map(|time| Value::Int(time.day().into()))
}

/// Returns the day of the month, from 0.
pub(super) fn day_of_month<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    local(budget, arguments).map(|time| Value::Int(i64::from(time.day()) - 1))
}

/// Returns the day of the week, from 0 for Sunday.
pub(super) fn day_of_week<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    local(budget, arguments).map(|time| Value::Int(time.weekday().to_sunday_zero_offset().into()))
}

/// Returns the day of the year, from 0.
pub(super) fn day_of_year<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    local(budget, arguments).map(|time| Value::Int(i64::from(time.day_of_year()) - 1))
}

/// Returns the hour of the day, or the whole hours of a duration.
pub(super) fn hours<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Duration(Duration(nanos))] => Ok(Value::Int(nanos / Duration::NANOS_PER_SECOND / 3600)),
        _ => local(budget, arguments).map(|time| Value::Int(time.hour().into())),
    }
}

/// Returns the minute of the hour, or the whole minutes of a duration.
pub(super) fn minutes<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Duration(Duration(nanos))] => Ok(Value::Int(nanos / Duration::NANOS_PER_SECOND / 60)),
        _ => local(budget, arguments).map(|time| Value::Int(time.minute().into())),
    }
}

/// Returns the second of the minute, or the whole seconds of a duration.
pub(super) fn seconds<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Duration(Duration(nanos))] => Ok(Value::Int(nanos / Duration::NANOS_PER_SECOND)),
        _ => local(budget, arguments).map(|time| Value::Int(time.second().into())),
    }
}

/// Returns the millisecond of the second, also of a duration.
pub(super) fn milliseconds<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Duration(Duration(nanos))] => {
            Ok(Value::Int(nanos % Duration::NANOS_PER_SECOND / NANOS_PER_MILLISECOND))
        }
        _ => local(budget, arguments).map(|time| Value::Int(time.millisecond().into())),
    }
}

/// Longest name or offset that is looked up, in bytes.
const MAX_BYTES: usize = 64;

fn parse_zone(name: &str) -> Result<TimeZone, Stop> {
    // First, because an offset is not a name in the database of zones.
    if let Some(offset) = fixed_offset(name) {
        return Ok(TimeZone::fixed(offset));
    }
    // Longer names are refused before the lookup, whose work grows with the name.
    let known = (name.len() <= MAX_BYTES).then(|| TimeZone::get(name).ok()).flatten();
    match known {
        Some(zone) => Ok(zone),
        None => failed(format!("“{}” is not a time zone, such as Europe/Berlin or +01:00", shortened(name))),
    }
}

/// Parses `+01:30`, `-01:30` and `01:30`.
fn fixed_offset(text: &str) -> Option<Offset> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = unsigned.split_once(':')?;
    let number = |digits: &str| {
        // Exactly two digits: `parse` alone would accept `+1` and `001`.
        let valid = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        valid.then(|| digits.parse::<i32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}
