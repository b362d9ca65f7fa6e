//! When a request is sent again, and after which time.

use std::time::{Duration, SystemTime};

/// The longest wait, also if the server asks for a longer one.
pub(super) const MAX_WAIT: Duration = Duration::from_mins(1);

/// How an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server or the network: another attempt may succeed. The time is what the server asks for.
    Passing(Option<Duration>),
    /// The answer cannot be used. Another one may be better, once.
    Malformed,
    /// Each attempt would fail in the same way.
    Final,
}

impl Failure {
    /// Classifies an error status.
    pub(super) fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            // A request that came too slowly, too many requests, and all errors of the server.
            408 | 429 | 500..=599 => Self::Passing(retry_after),
            _ => Self::Final,
        }
    }
}

/// Returns the wait before the next attempt; `None` if there is none. `attempt` is the number of the one that failed, from 1.
pub(super) fn wait_after(
    failure: Failure,
    attempt: u32,
    attempts: u32,
    malformed: u32,
    backoff: Duration,
) -> Option<Duration> {
    if attempt >= attempts {
        return None;
    }
    let asked_for = match failure {
        Failure::Final => return None,
        Failure::Malformed if malformed > 1 => return None,
        Failure::Malformed => None,
        Failure::Passing(asked_for) => asked_for,
    };
    let doubled = backoff.saturating_mul(2_u32.saturating_pow(attempt - 1));
    Some(asked_for.unwrap_or(doubled).min(MAX_WAIT))
}

/// Reads a `Retry-After` header: seconds, or a date.
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn only_passing_failures_are_retried_to_the_last_attempt() {
        let wait = |failure, attempt, malformed| wait_after(failure, attempt, 4, malformed, SECOND);
        let passing = Failure::Passing(None);
        assert_eq!(
            [1, 2, 3, 4].map(|attempt| wait(passing, attempt, 0)),
            [Some(SECOND), Some(2 * SECOND), Some(4 * SECOND), None]
        );
        assert_eq!(wait(Failure::Final, 1, 0), None);
        assert_eq!((wait(Failure::Malformed, 1, 1), wait(Failure::Malformed, 2, 2)), (Some(SECOND), None));
        assert_eq!(wait_after(passing, 40, 50, 0, SECOND), Some(MAX_WAIT));
    }

    #[test]
    fn the_server_sets_the_wait_within_a_bound() {
        let wait = |seconds| wait_after(Failure::Passing(Some(seconds * SECOND)), 1, 2, 0, SECOND);
        assert_eq!([0, 7, 1_000_000].map(wait), [Some(Duration::ZERO), Some(7 * SECOND), Some(MAX_WAIT)]);
    }

    #[test]
    fn a_retry_after_header_has_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + 1_000 * SECOND;
        for (value, expected) in [
            ("3", Some(3)),
            (" 0 ", Some(0)),
            ("Thu, 01 Jan 1970 00:17:00 GMT", Some(20)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("-1", None),
            ("soon", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(retry_after(value, now), expected.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn errors_of_the_request_are_final() {
        let is_final = |status| Failure::of_status(status, None) == Failure::Final;
        assert!([301, 400, 401, 403, 404, 422].into_iter().all(is_final));
        assert!(![408, 429, 500, 502, 503, 529].into_iter().any(is_final));
    }
}
