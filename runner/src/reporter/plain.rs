//! Events as lines of text for logs, without colours and without cursor movement.

use std::io::Write;

use crate::event::{EventKind, Reporter, RunEvent};

/// Writes one line of text per event, except for the start of a case.
#[derive(Debug)]
pub struct Plain<W> {
    out: W,
}

impl<W: Write> Plain<W> {
    /// Creates a reporter that writes to `out`. Write errors are ignored, because these lines are not evidence.
    pub const fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Reporter for Plain<W> {
    fn report(&mut self, event: &RunEvent) {
        if let Some(text) = text(&event.kind) {
            let _ = writeln!(self.out, "{:>9.3}s  {text}", event.elapsed.as_secs_f64());
        }
    }
}

fn text(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::RunStarted { run_id, side, folder, cases } => {
            format!("run {run_id} of side {side} started: cases {cases}, folder {folder}")
        }
        EventKind::CaseStarted { .. } => return None,
        EventKind::AttemptFailed { case_id, attempt, failure, retry_in } => {
            format!("{case_id}: attempt {attempt} failed ({failure}), retrying in {:.3}s", retry_in.as_secs_f64())
        }
        EventKind::CaseFinished { case_id, attempts, failure: None } => {
            format!("{case_id}: ok at attempt {attempts}")
        }
        EventKind::CaseFinished { case_id, attempts: 0, failure: Some(_) } => format!("{case_id}: skipped"),
        EventKind::CaseFinished { case_id, attempts, failure: Some(failure) } => {
            format!("{case_id}: failed at attempt {attempts} ({failure})")
        }
        EventKind::ConcurrencyChanged { limit } => format!("concurrency changed to {limit}"),
        EventKind::AgentDown { consecutive_failures, skipped } => {
            format!(
                "agent looks down after {consecutive_failures} consecutive failures; skipping {skipped} remaining cases"
            )
        }
        EventKind::RunInterrupted { in_flight } => format!("interrupted with {in_flight} cases in flight"),
        EventKind::RunFinished { counts } => format!(
            "run finished: {} ok, {} failed, {} retried, {} not run",
            counts.answered,
            counts.failed,
            counts.retried,
            counts.not_run()
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use counterproof_artifact::FailureClass;
    use jiff::Timestamp;

    use super::*;
    use crate::event::FailureNote;

    #[test]
    fn a_line_has_the_time_the_case_and_the_failure() {
        let failure = FailureNote { class: FailureClass::HttpError, name: "server_error", status: Some(500) };
        let case_id = "refund_001".parse().unwrap();
        let kind = EventKind::AttemptFailed { case_id, attempt: 1, failure, retry_in: Duration::from_millis(250) };
        let mut bytes = Vec::new();
        let mut reporter = Plain::new(&mut bytes);
        reporter.report(&RunEvent { at: Timestamp::UNIX_EPOCH, elapsed: Duration::from_millis(12_345), kind });
        let line = String::from_utf8(bytes).unwrap();
        let expected =
            "   12.345s  refund_001: attempt 1 failed (http_error: server_error, status 500), retrying in 0.250s\n";
        assert_eq!(line, expected);
    }
}
