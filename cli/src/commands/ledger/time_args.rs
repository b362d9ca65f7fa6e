//! Points in time as options state them.

use counterproof_ledger::line::sortable_time;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// A point in time, or a duration before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    At(Timestamp),
    Ago(SignedDuration),
}

/// Parses a time, such as `2026-01-31T12:00:00Z`, or a duration before now, such as `2h`.
pub(super) fn since(text: &str) -> Result<Since, String> {
    if let Ok(time) = text.parse() {
        return Ok(Since::At(time));
    }
    age(text)
        .map(Since::Ago)
        .map_err(|_| "expected a time such as 2026-01-31T12:00:00Z, or a duration such as 2h".into())
}

/// Parses a duration in which a day has 24 hours.
pub(super) fn age(text: &str) -> Result<SignedDuration, String> {
    let span: Option<Span> = text.parse().ok();
    let age = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    age.filter(SignedDuration::is_positive)
        .ok_or_else(|| "expected a number with a unit, such as 30d or 12h".to_owned())
}

impl Since {
    /// Returns the time as the ledger stores it.
    pub(super) fn sortable(self, now: Timestamp) -> String {
        sortable_time(match self {
            Since::At(time) => time,
            Since::Ago(age) => now.saturating_sub(age).unwrap_or(now),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_stated_as_such_or_as_a_duration_before_now() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let at = |text: &str| since(text).unwrap().sortable(now);
        assert_eq!(at("2026-01-30T10:00:00+02:00"), "2026-01-30T08:00:00.000000000Z");
        assert_eq!(at("2h"), "2026-01-31T10:00:00.000000000Z");
        assert_eq!(at("30d"), "2026-01-01T12:00:00.000000000Z");
        for text in ["", "soon", "-1h", "0s", "2026"] {
            assert!(since(text).is_err(), "{text:?}");
        }
    }
}
