//! Whether the server answers: the first request without a response is reported at once, and the others are counted.

use std::sync::atomic::{AtomicU64, Ordering};

use counterproof_ledger::event::RunStatus;

use crate::session::{Problem, Session};

/// The forwarded requests of a proxy, by whether the server answered them.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    answered: AtomicU64,
    unanswered: AtomicU64,
}

impl Reachability {
    /// Counts a request with a response.
    pub(super) fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request without a response, and reports the first one.
    pub(super) fn unanswered(&self, problem: &str, session: &Session) {
        if self.unanswered.fetch_add(1, Ordering::Relaxed) == 0 {
            let remedy = "check that the server runs, and the scheme, host and port of `--upstream`";
            session.report(Problem::Unreachable, &format!("{problem}; {remedy}"));
        }
    }

    /// Reports the requests without a response at the end of a run, and returns how the run ended.
    pub(super) fn finish(&self, session: &Session) -> RunStatus {
        let (answered, unanswered) = (self.answered.load(Ordering::Relaxed), self.unanswered.load(Ordering::Relaxed));
        let all = answered + unanswered;
        if unanswered == 0 {
            return RunStatus::Succeeded;
        }
        let count = format!("requests that the server did not answer: {unanswered} of {all}");
        if answered > 0 {
            session.warn(&count);
            return RunStatus::Succeeded;
        }
        session.warn(&format!("{count}; the status of the run is `FAILED`"));
        RunStatus::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::session;

    #[test]
    fn a_run_fails_if_the_server_answered_no_request() {
        let (session, sink) = session(None, &[]);
        let reachability = Reachability::default();
        assert_eq!(reachability.finish(&session), RunStatus::Succeeded, "without requests");
        reachability.unanswered("refused", &session);
        reachability.unanswered("refused", &session);
        assert_eq!(reachability.finish(&session), RunStatus::Failed);
        assert_eq!(sink.names(), ["run_start", "shim_health"], "the first one is recorded");
        reachability.answered();
        assert_eq!(reachability.finish(&session), RunStatus::Succeeded);
    }
}
