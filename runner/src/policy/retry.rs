//! The retry policy: decides whether and when a failed attempt is retried. The retry budget of a run is here too. Pure: the case runner does the waiting.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use counterproof_artifact::{Backoff, FailureClass};
use jiff::Timestamp;

use crate::failure::Reason;

/// Which failures are retried, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of retries per case.
    pub retries: u32,
    /// The upper bound of the first wait. It doubles with every attempt.
    pub base: Duration,
    /// The cap on the doubled wait.
    pub cap: Duration,
    /// The cap on the wait that the agent requests with `Retry-After`.
    pub retry_after_cap: Duration,
    /// Whether status 429 is retried. Disable it if the rate limit protects a spending budget.
    pub rate_limited: bool,
    /// The maximum number of retries over all cases of a run.
    pub budget: RetryBudget,
    /// The failures that are retried.
    pub on: Vec<RetryOn>,
}

/// A kind of failure that can be retried: a class, a status, or one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryOn(&'static str);

/// An unknown kind of failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown failure `{0}`: expected a class (`timeout`, `network_error`), `http_408`, `http_429`, `http_5xx`, or an error name such as `response_timeout`"
)]
pub struct RetryOnError(String);

impl RetryOn {
    /// The classes and statuses. All other kinds are the names of reasons.
    const GROUPS: [&'static str; 5] = ["timeout", "network_error", "http_408", "http_429", "http_5xx"];

    /// The default: failures that show that the agent did not do the work, or refused it. After the other timeouts, the agent
    /// may still be at work, and a second request would do it twice.
    pub const DEFAULT: [Self; 5] =
        [Self("network_error"), Self("connect_timeout"), Self("http_408"), Self("http_429"), Self("http_5xx")];

    fn includes(self, failed: &FailedAttempt) -> bool {
        match self.0 {
            "http_408" => failed.status == Some(408),
            "http_429" => failed.status == Some(429),
            "http_5xx" => failed.class == FailureClass::HttpError && matches!(failed.status, Some(500..=599)),
            name => failed.reason.name() == name || failed.class.as_str() == name,
        }
    }
}

impl FromStr for RetryOn {
    type Err = RetryOnError;

    fn from_str(text: &str) -> Result<Self, RetryOnError> {
        let names = Self::GROUPS.into_iter().chain(Reason::ALL.into_iter().map(Reason::name));
        let name = names.into_iter().find(|name| *name == text);
        name.map(Self).ok_or_else(|| RetryOnError(text.to_owned()))
    }
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
            on: RetryOn::DEFAULT.to_vec(),
        }
    }
}

/// A failed attempt, as input of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailedAttempt {
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The failure class.
    pub class: FailureClass,
    /// The reason within the class.
    pub reason: Reason,
    /// The HTTP status, if a response arrived.
    pub status: Option<u16>,
    /// The wait that the agent requested.
    pub retry_after: Option<Duration>,
}

/// The decision of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Retry after this wait.
    Retry(Duration),
    /// Do not retry: the failure is not transient.
    StopFinal,
    /// Do not retry: the failure is transient, but no retries are left.
    StopExhausted,
}

impl RetryPolicy {
    /// Decides whether a failed attempt is retried. `fraction` is random, at least 0 and less than 1.
    ///
    /// It is never shorter than the wait that the agent requested, up to the cap on that.
    ///
    /// The decision ignores the retry budget of the run. The caller takes a token from it after a [`Decision::Retry`].
    pub(crate) fn decide(&self, failed: &FailedAttempt, fraction: f64) -> Decision {
        let is_retried = self.on.iter().any(|on| on.includes(failed));
        if !is_retried || (failed.status == Some(429) && !self.rate_limited) {
            return Decision::StopFinal;
        }
        // Attempts count from 1, so attempt n would be followed by retry n.
        if failed.attempt > self.retries {
            return Decision::StopExhausted;
        }
        // 31 doublings fit into the `u32` factor, and the cap applies long before.
        let doublings = failed.attempt.saturating_sub(1).min(31);
        let longest = self.base.saturating_mul(1 << doublings).min(self.cap);
        let requested = failed.retry_after.unwrap_or_default().min(self.retry_after_cap);
        // "Full jitter" (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015): cases that failed at the same time
        // are not retried at the same time.
        Decision::Retry(longest.mul_f64(fraction.clamp(0.0, 1.0)).max(requested))
    }

    /// Returns the policy as `run.json` records it.
    pub(crate) fn document(&self) -> counterproof_artifact::RetryPolicy {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX).into();
        let classes = self.on.iter().map(|on| on.0).filter(|class| self.rate_limited || *class != "http_429");
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

/// Parses a `Retry-After` header: whole seconds or an HTTP date (RFC 9110, section 10.2.3). A date in the past means zero.
pub(crate) fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that do not fit into 64 bits mean a wait beyond any cap.
        return Some(Duration::from_secs(header.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(header).ok()?;
    Some(date.duration_since(SystemTime::from(now)).unwrap_or_default())
}

/// A percentage budget allows at least this many retries. In small runs, a percentage would allow almost none.
const MIN_OF_PERCENTAGE: u64 = 10;

/// The maximum number of retries over all cases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryBudget {
    /// An absolute number.
    Retries(u64),
    /// A percentage of the number of cases, rounded up; at least ten retries, unless the percentage is zero.
    Percent(u32),
}

impl Default for RetryBudget {
    /// One retry per case on average.
    fn default() -> Self {
        Self::Percent(100)
    }
}

impl RetryBudget {
    /// Returns the number of retries for this many cases.
    pub fn for_cases(self, cases: usize) -> u64 {
        match self {
            RetryBudget::Retries(retries) => retries,
            RetryBudget::Percent(0) => 0,
            RetryBudget::Percent(percent) => {
                (cases as u64).saturating_mul(percent.into()).div_ceil(100).max(MIN_OF_PERCENTAGE)
            }
        }
    }
}

/// An invalid retry budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid retry budget: expected a number of retries such as 50, or a percentage of the cases such as 20%")]
pub struct RetryBudgetError;

impl FromStr for RetryBudget {
    type Err = RetryBudgetError;

    fn from_str(text: &str) -> Result<Self, RetryBudgetError> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.strip_suffix('%') {
            Some(percent) if digits(percent) => percent.parse().map(Self::Percent).map_err(|_| RetryBudgetError),
            None if digits(text) => text.parse().map(Self::Retries).map_err(|_| RetryBudgetError),
            _ => Err(RetryBudgetError),
        }
    }
}

impl fmt::Display for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RetryBudget::Retries(retries) => write!(f, "{retries}"),
            RetryBudget::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The remaining retries of a run, shared by all cases.
#[derive(Debug)]
pub(crate) struct RetryTokens(AtomicU64);

impl RetryTokens {
    pub(crate) const fn new(retries: u64) -> Self {
        Self(AtomicU64::new(retries))
    }

    /// Takes one retry. Returns `false` if none is left.
    pub(crate) fn take(&self) -> bool {
        // Relaxed: the counter guards no other memory. A plain subtraction could wrap below zero when two cases fail together.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn failed(attempt: u32, class: FailureClass, status: Option<u16>) -> FailedAttempt {
        let reason = Reason::ALL.into_iter().find(|reason| reason.class() == class).unwrap();
        FailedAttempt { attempt, class, reason, status, retry_after: None }
    }

    #[test]
    fn only_transient_failures_are_retried() {
        let policy = RetryPolicy::default();
        let retried = |class, status| policy.decide(&failed(1, class, status), 0.5) != Decision::StopFinal;
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
    fn a_response_timeout_is_retried_only_if_it_is_asked_for() {
        let policy = |on: &str| RetryPolicy { on: vec![on.parse().unwrap()], ..RetryPolicy::default() };
        let decide = |policy: &RetryPolicy, reason: Reason| {
            policy.decide(&FailedAttempt { reason, ..failed(1, reason.class(), None) }, 0.5) != Decision::StopFinal
        };
        let default = RetryPolicy::default();
        assert!(decide(&default, Reason::ConnectTimeout));
        assert!(!decide(&default, Reason::ResponseTimeout));
        assert!(decide(&policy("timeout"), Reason::ResponseTimeout));
        assert!(decide(&policy("idle_timeout"), Reason::IdleTimeout));
        assert!(!decide(&policy("idle_timeout"), Reason::ResponseTimeout));
        assert!("soon".parse::<RetryOn>().is_err());
    }

    #[test]
    fn retries_of_status_429_can_be_disabled() {
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
    fn the_requested_wait_is_respected_up_to_its_cap() {
        let policy = RetryPolicy::default();
        let wait = |seconds| {
            let asked = FailedAttempt {
                retry_after: Some(Duration::from_secs(seconds)),
                ..failed(1, FailureClass::HttpError, Some(429))
            };
            policy.decide(&asked, 0.0)
        };
        assert_eq!(wait(3), Decision::Retry(Duration::from_secs(3)));
        assert_eq!(wait(86_400), Decision::Retry(Duration::from_mins(1)));
    }

    #[test]
    fn retry_after_is_parsed_as_seconds_and_as_a_date() {
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
        fn a_case_has_at_most_one_attempt_more_than_its_retries(retries in 0..20_u32, fraction in 0.0..1.0) {
            let policy = RetryPolicy { retries, ..RetryPolicy::default() };
            let retried = |attempt: &u32| {
                let decision = policy.decide(&failed(*attempt, FailureClass::Timeout, None), fraction);
                matches!(decision, Decision::Retry(_))
            };
            prop_assert_eq!((1..=100).filter(retried).collect::<Vec<_>>(), (1..=retries).collect::<Vec<_>>());
        }

        #[test]
        fn no_wait_exceeds_the_caps(
            attempt in 1..u32::MAX, fraction: f64, asked in 0..u64::MAX, base in 0..u64::MAX, cap in 0..1_000_000_u64,
        ) {
            let policy = RetryPolicy {
                retries: u32::MAX,
                base: Duration::from_millis(base),
                cap: Duration::from_millis(cap),
                ..RetryPolicy::default()
            };
            let fraction = if fraction.is_nan() { 0.0 } else { fraction };
            let failure = FailedAttempt {
                retry_after: Some(Duration::from_secs(asked)),
                ..failed(attempt, FailureClass::Timeout, None)
            };
            if let Decision::Retry(wait) = policy.decide(&failure, fraction) {
                prop_assert!(wait <= policy.cap.max(policy.retry_after_cap));
            }
        }

        #[test]
        fn no_header_makes_parsing_panic(header in "\\PC*") {
            let _ = retry_after(&header, Timestamp::UNIX_EPOCH);
        }
    }

    #[test]
    fn a_budget_is_parsed_as_a_number_or_a_percentage() {
        for text in ["0", "50", "0%", "20%", "250%"] {
            assert_eq!(text.parse::<RetryBudget>().map(|budget| budget.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "%", "-1", "1.5", "+3", "20 %", "many", "99999999999999999999"] {
            assert_eq!(text.parse::<RetryBudget>(), Err(RetryBudgetError), "{text:?}");
        }
    }

    #[test]
    fn a_percentage_grows_with_the_cases_but_has_a_minimum() {
        assert_eq!(RetryBudget::Percent(20).for_cases(1001), 201);
        assert_eq!(RetryBudget::Percent(20).for_cases(3), 10);
        assert_eq!(RetryBudget::Percent(0).for_cases(1000), 0);
        assert_eq!(RetryBudget::Retries(3).for_cases(1000), 3);
        assert_eq!(RetryBudget::default().for_cases(5000), 5000);
    }

    #[test]
    fn tokens_run_out() {
        let tokens = RetryTokens::new(2);
        assert_eq!([tokens.take(), tokens.take(), tokens.take(), tokens.take()], [true, true, false, false]);
    }
}
