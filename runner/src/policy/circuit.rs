//! The circuit breaker: detects an agent that looks down, from consecutive cases without a reachable agent.

use std::num::NonZeroU32;

use counterproof_artifact::FailureClass;

/// Counts cases in the order in which they finish. Once open, it stays open.
#[derive(Debug, Clone)]
pub(crate) struct CircuitBreaker {
    limit: Option<NonZeroU32>,
    consecutive: u32,
}

impl CircuitBreaker {
    /// Creates a breaker that opens after `limit` consecutive failures, or never without a limit.
    pub(crate) const fn new(limit: Option<NonZeroU32>) -> Self {
        Self { limit, consecutive: 0 }
    }

    /// Counts a case that the agent answered.
    pub(crate) fn record_answer(&mut self) {
        // Answers of cases in flight must not close an open breaker: the run has already skipped cases.
        if self.open_after().is_none() {
            self.consecutive = 0;
        }
    }

    /// Counts a case that failed.
    pub(crate) fn record_failure(&mut self, class: FailureClass, status: Option<u16>) {
        if !looks_down(class, status) {
            self.record_answer();
        } else if self.open_after().is_none() {
            self.consecutive = self.consecutive.saturating_add(1);
        }
    }

    /// Returns the number of consecutive failures that opened the breaker, or `None` while it is closed.
    pub(crate) fn open_after(&self) -> Option<NonZeroU32> {
        self.limit.filter(|limit| self.consecutive >= limit.get())
    }
}

/// Reports whether a failure means that no agent is reachable: no connection, no response, or a gateway without a backend.
fn looks_down(class: FailureClass, status: Option<u16>) -> bool {
    // An agent that rejects requests, limits the rate or sends invalid answers is up.
    match class {
        FailureClass::NetworkError | FailureClass::Timeout => true,
        FailureClass::HttpError => matches!(status, Some(502..=504)),
        FailureClass::InvalidJson | FailureClass::SchemaMismatch | FailureClass::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type End = Option<(FailureClass, Option<u16>)>;

    fn opens_after(limit: u32, ends: &[End]) -> Option<usize> {
        let mut circuit = CircuitBreaker::new(NonZeroU32::new(limit));
        ends.iter().position(|end| {
            match *end {
                Some((class, status)) => circuit.record_failure(class, status),
                None => circuit.record_answer(),
            }
            circuit.open_after().is_some()
        })
    }

    #[test]
    fn it_opens_after_consecutive_failures() {
        let down = Some((FailureClass::NetworkError, None));
        assert_eq!(opens_after(3, &[down; 5]), Some(2));
        assert_eq!(opens_after(3, &[down, down, None, down, down, down]), Some(5));
        assert_eq!(opens_after(1, &[None, down]), Some(1));
        assert_eq!(opens_after(0, &[down; 100]), None, "no limit");
    }

    #[test]
    fn only_an_unreachable_agent_counts() {
        for status in [502, 503, 504] {
            assert_eq!(opens_after(1, &[Some((FailureClass::HttpError, Some(status)))]), Some(0), "{status}");
        }
        assert_eq!(opens_after(1, &[Some((FailureClass::Timeout, Some(200)))]), Some(0));
        for status in [401, 404, 408, 429, 500] {
            assert_eq!(opens_after(1, &[Some((FailureClass::HttpError, Some(status)))]), None, "{status}");
        }
        for class in [FailureClass::InvalidJson, FailureClass::SchemaMismatch, FailureClass::Other] {
            assert_eq!(opens_after(1, &[Some((class, Some(200)))]), None, "{class}");
        }
    }

    #[test]
    fn once_open_it_stays_open() {
        let mut circuit = CircuitBreaker::new(NonZeroU32::new(1));
        circuit.record_failure(FailureClass::Timeout, None);
        circuit.record_answer();
        assert!(circuit.open_after().is_some());
    }
}
