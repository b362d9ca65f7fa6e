//! Whether and when an attempt that failed is tried again: a pure policy. Waiting is done elsewhere.

use std::time::{Duration, SystemTime};

use counterproof_artifact::{Backoff, FailureClass};
use jiff::Timestamp;

use super::retry_budget::RetryBudget;

/// Which failures are tried again, and how soon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often one case may be tried again.
    pub retries: u32,
    /// The longest first wait; it doubles with every attempt.
    pub base: Duration,
    /// The longest wait that doubling leads to.
    pub cap: Duration,
    /// The longest wait that the agent can ask for.
    pub retry_after_cap: Duration,
    /// Whether status 429 is tried again; where calls cost money, a limit may be there to be kept.
    pub rate_limited: bool,
    /// How often all cases of a run together may be tried again.
    pub budget: RetryBudget,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 2,
            base: Duration::from_millis(250),
            cap: Duration::from_secs(30),
            retry_after_cap: Duration::from_mins(1),
            rate_limited: true,
            budget: RetryBudget::default(),
        }
    }
}

/// What the policy needs to know of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed {
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// Its class.
    pub class: FailureClass,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// How long the agent asks to wait.
    pub retry_after: Option<Duration>,
}

/// What the policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Try again after this wait.
    Retry(Duration),
    /// It would fail in the same way again.
    StopFinal,
    /// It could go well, but has been tried often enough.
    StopExhausted,
}

impl RetryPolicy {
    /// Decides what follows a failed attempt. `fraction` is random, at least 0 and less than 1.
    ///
    /// The wait is a random part of the doubled base ("full jitter": AWS Architecture Blog, "Exponential Backoff And
    /// Jitter", 2015), so that cases which failed together do not come back together. It is never shorter than what the
    /// agent asks for, up to the cap on that.
    ///
    /// The budget of the run is not looked at: it is what all cases share, and is taken from once this says to retry.
    pub(crate) fn decide(&self, failed: &Failed, fraction: f64) -> Decision {
        if !is_transient(failed.class, failed.status) || (failed.status == Some(429) && !self.rate_limited) {
            return Decision::StopFinal;
        }
        if failed.attempt > self.retries {
            return Decision::StopExhausted;
        }
        let doublings = failed.attempt.saturating_sub(1).min(31);
        let longest = self.base.saturating_mul(1 << doublings).min(self.cap);
        let asked = failed.retry_after.unwrap_or_default().min(self.retry_after_cap);
        Decision::Retry(longest.mul_f64(fraction.clamp(0.0, 1.0)).max(asked))
    }

    /// What `run.json` says of the policy.
    pub(crate) fn document(&self) -> counterproof_artifact::RetryPolicy {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX).into();
        let classes = ["timeout", "network_error", "http_408", "http_429", "http_5xx"];
        let classes = classes.into_iter().filter(|class| self.rate_limited || *class != "http_429");
        counterproof_artifact::RetryPolicy {
            classes: Some(classes.map(str::to_owned).collect()),
            backoff: Some(Backoff::Exponential),
            jitter: Some(true),
            extra: [
                ("base_ms".to_owned(), millis(self.base)),
                ("cap_ms".to_owned(), millis(self.cap)),
                ("retry_after_cap_ms".to_owned(), millis(self.retry_after_cap)),
                ("budget".to_owned(), self.budget.to_string().into()),
            ]
            .into_iter()
            .collect(),
        }
    }
}

/// True for failures that may be gone the next time.
fn is_transient(class: FailureClass, status: Option<u16>) -> bool {
    match class {
        FailureClass::Timeout | FailureClass::NetworkError => true,
        FailureClass::HttpError => matches!(status, Some(408 | 429 | 500..=599)),
        FailureClass::InvalidJson | FailureClass::SchemaMismatch | FailureClass::Other => false,
    }
}

/// Reads a `Retry-After` header: whole seconds or an HTTP date (RFC 9110, section 10.2.3). A date in the past is no wait.
pub(crate) fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(header.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(header).ok()?;
    Some(date.duration_since(SystemTime::from(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn failed(attempt: u32, class: FailureClass, status: Option<u16>) -> Failed {
        Failed { attempt, class, status, retry_after: None }
    }

    #[test]
    fn only_failures_that_may_pass_are_tried_again() {
        let policy = RetryPolicy::default();
        let retried = |class, status| policy.decide(&failed(1, class, status), 0.5) != Decision::StopFinal;
        assert!(retried(FailureClass::Timeout, None));
        assert!(retried(FailureClass::NetworkError, None));
        for status in [408, 429, 500, 502, 503, 504, 599] {
            assert!(retried(FailureClass::HttpError, Some(status)), "{status}");
        }
        for status in [301, 400, 401, 404, 409, 418, 425, 499] {
            assert!(!retried(FailureClass::HttpError, Some(status)), "{status}");
        }
        for class in [FailureClass::InvalidJson, FailureClass::SchemaMismatch, FailureClass::Other] {
            assert!(!retried(class, Some(200)), "{class}");
        }
    }

    #[test]
    fn a_limit_can_be_left_alone() {
        let policy = RetryPolicy { rate_limited: false, ..RetryPolicy::default() };
        let decide = |status| policy.decide(&failed(1, FailureClass::HttpError, Some(status)), 0.5);
        assert_eq!(decide(429), Decision::StopFinal);
        assert_ne!(decide(503), Decision::StopFinal);
        assert!(!policy.document().classes.unwrap().contains(&"http_429".to_owned()));
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let policy = RetryPolicy { retries: 100, ..RetryPolicy::default() };
        let longest = |attempt| policy.decide(&failed(attempt, FailureClass::Timeout, None), 1.0);
        let millis = |millis| Decision::Retry(Duration::from_millis(millis));
        assert_eq!([1, 2, 3, 4].map(longest), [250, 500, 1000, 2000].map(millis));
        assert_eq!([8, 50, 99].map(longest), [30_000; 3].map(millis));
    }

    #[test]
    fn retry_after_is_kept_to_up_to_its_cap() {
        let policy = RetryPolicy::default();
        let wait = |seconds| {
            let asked = Failed {
                retry_after: Some(Duration::from_secs(seconds)),
                ..failed(1, FailureClass::HttpError, Some(429))
            };
            policy.decide(&asked, 0.0)
        };
        assert_eq!(wait(3), Decision::Retry(Duration::from_secs(3)));
        assert_eq!(wait(86_400), Decision::Retry(Duration::from_mins(1)));
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        let now: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
        let read = |header| retry_after(header, now);
        assert_eq!(read(" 120 "), Some(Duration::from_mins(2)));
        assert_eq!(read("99999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(read("Mon, 05 Jan 2026 09:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(read("Mon, 05 Jan 2026 08:00:00 GMT"), Some(Duration::ZERO));
        for header in ["", "-1", "1.5", "soon"] {
            assert_eq!(read(header), None, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn a_case_is_tried_at_most_once_more_than_its_retries(retries in 0..20_u32, fraction in 0.0..1.0) {
            let policy = RetryPolicy { retries, ..RetryPolicy::default() };
            let retried = |attempt: &u32| {
                let decision = policy.decide(&failed(*attempt, FailureClass::Timeout, None), fraction);
                matches!(decision, Decision::Retry(_))
            };
            prop_assert_eq!((1..=100).filter(retried).collect::<Vec<_>>(), (1..=retries).collect::<Vec<_>>());
        }

        #[test]
        fn no_wait_is_longer_than_the_caps(
            attempt in 1..u32::MAX, fraction: f64, asked in 0..u64::MAX, base in 0..u64::MAX, cap in 0..1_000_000_u64,
        ) {
            let policy = RetryPolicy {
                retries: u32::MAX,
                base: Duration::from_millis(base),
                cap: Duration::from_millis(cap),
                ..RetryPolicy::default()
            };
            let fraction = if fraction.is_nan() { 0.0 } else { fraction };
            let trouble = Failed {
                retry_after: Some(Duration::from_secs(asked)),
                ..failed(attempt, FailureClass::Timeout, None)
            };
            if let Decision::Retry(wait) = policy.decide(&trouble, fraction) {
                prop_assert!(wait <= policy.cap.max(policy.retry_after_cap));
            }
        }

        #[test]
        fn no_header_makes_the_reading_fail(header in "\\PC*") {
            let _ = retry_after(&header, Timestamp::UNIX_EPOCH);
        }
    }
}
