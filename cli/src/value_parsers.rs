//! Values of options, as they are typed.

use std::num::NonZeroU32;
use std::time::Duration;

use jiff::SignedDuration;

/// Reads a time-out.
pub(crate) fn time_span(text: &str) -> Result<Duration, String> {
    let span: SignedDuration = text.parse().map_err(|_| "a time is a number with its unit, such as 15s or 500ms")?;
    match Duration::try_from(span) {
        Ok(span) if span >= Duration::from_millis(1) => Ok(span),
        _ => Err("a time-out is at least one millisecond, such as 15s or 500ms".to_owned()),
    }
}

/// Reads a number of things of which there has to be one.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    let number: u32 = text.parse().map_err(|_| format!("a whole number from 1 to {}", u32::MAX))?;
    NonZeroU32::new(number).ok_or_else(|| "it has to be at least 1".to_owned())
}

/// Reads a number of bytes.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "a size is a number of bytes without a unit, such as 2097152 for 2 MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_outs_are_written_with_their_unit() {
        assert_eq!(time_span("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(time_span("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time_span("1m 30s"), Ok(Duration::from_secs(90)));
        for text in ["", "15", "0s", "-1s", "soon"] {
            assert!(time_span(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_number_that_may_not_be_zero_is_refused_in_words() {
        assert_eq!(at_least_one("3"), Ok(NonZeroU32::MIN.saturating_add(2)));
        assert_eq!(at_least_one("0"), Err("it has to be at least 1".to_owned()));
        for text in ["", "-1", "1.5", "many", "4294967296"] {
            assert!(at_least_one(text).unwrap_err().starts_with("a whole number from 1"), "{text:?}");
        }
    }

    #[test]
    fn sizes_are_bytes() {
        assert_eq!(bytes("2097152"), Ok(2_097_152));
        for text in ["", "2MB", "-1", "1.5"] {
            assert!(bytes(text).is_err(), "{text:?}");
        }
    }
}
