//! The parts of timestamps and durations. Timestamps take an optional time zone, and UTC without one.

use jiff::civil::DateTime;

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::functions::zones;
use crate::values::{Duration, Value};

/// Steps for a part of a timestamp: its local time is computed.
const LOCAL_TIME_STEPS: u64 = 10;

const NANOS_PER_MILLISECOND: i64 = 1_000_000;

/// Returns the local date and time of a timestamp.
fn local(budget: &mut Budget, arguments: &[Value<'_>]) -> Result<DateTime, Stop> {
    budget.charge(LOCAL_TIME_STEPS)?;
    match arguments {
        [Value::Timestamp(time)] => Ok(time.utc()),
        [Value::Timestamp(time), Value::String(zone)] => match time.local(&zones::zone(zone.as_str())?) {
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
