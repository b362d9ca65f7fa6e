//! Parsers of option values: durations, counts and sizes.

use std::ffi::OsStr;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use counterproof_artifact::{CaseId, NameError, RunId};
use counterproof_ledger::location::{LedgerLocation, LocationError};
use jiff::SignedDuration;

pub(crate) fn new_run_id(text: &str) -> Result<RunId, NameError> {
    let id: RunId = text.parse()?;
    // Stricter than parsing, which also has to read the ids of existing runs.
    id.check_new().map(|()| id)
}

pub(crate) fn new_case_id(text: &str) -> Result<CaseId, NameError> {
    let id: CaseId = text.parse()?;
    id.check_new().map(|()| id)
}

/// Parses a timeout, such as `15s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let span: SignedDuration = text.parse().map_err(|_| "expected a number with a unit, such as 15s or 500ms")?;
    match Duration::try_from(span) {
        // Settings are recorded in milliseconds, and a limit of zero would fail every attempt.
        Ok(span) if span >= Duration::from_millis(1) => Ok(span),
        _ => Err("expected at least 1ms".to_owned()),
    }
}

/// Parses a whole number from 1 on.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    let number: u32 = text.parse().map_err(|_| format!("expected a whole number from 1 to {}", u32::MAX))?;
    NonZeroU32::new(number).ok_or_else(|| "expected a number of at least 1".to_owned())
}

/// Parses an amount of money: a number of zero or more.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "expected a number of zero or more, such as 0.5".to_owned())
}

/// Parses the location of a ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LedgerParser;

impl TypedValueParser for LedgerParser {
    type Value = LedgerLocation;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<LedgerLocation, clap::Error> {
        let location = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        let location = location.and_then(|text| text.parse().map_err(|error: LocationError| error.to_string()));
        location.map_err(|problem| {
            // Without the value, which may be a URL with a password. The errors of clap would quote it.
            let message = format!("invalid ledger (`--ledger` or COUNTERPROOF_LEDGER): {problem}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a number of bytes without a unit, such as 2097152 for 2 MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_needs_a_unit_and_is_at_least_one_millisecond() {
        assert_eq!(duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        for text in ["", "15", "0s", "-1s", "soon"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn zero_and_invalid_numbers_are_rejected_with_the_range() {
        assert_eq!(at_least_one("3"), Ok(NonZeroU32::MIN.saturating_add(2)));
        assert_eq!(at_least_one("0"), Err("expected a number of at least 1".to_owned()));
        for text in ["", "-1", "1.5", "many", "4294967296"] {
            assert!(at_least_one(text).unwrap_err().starts_with("expected a whole number from 1"), "{text:?}");
        }
    }

    #[test]
    fn sizes_have_no_unit() {
        assert_eq!(bytes("2097152"), Ok(2_097_152));
        for text in ["", "2MB", "-1", "1.5"] {
            assert!(bytes(text).is_err(), "{text:?}");
        }
    }
}
