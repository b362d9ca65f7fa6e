//! Events as lines of text, for logs: no colours, no cursor movement, one line for each thing worth telling.

use std::fmt;
use std::io::Write;

use crate::event::{EventKind, FailureNote, Reporter, RunEvent};

/// Writes a line for each event that a person would want to read of afterwards.
#[derive(Debug)]
pub struct Plain<W> {
    out: W,
}

impl<W: Write> Plain<W> {
    /// Writes to `out`. Lines that cannot be written are lost: they are no evidence.
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
            format!("{case_id}: attempt {attempt} failed ({failure}), again in {:.3}s", retry_in.as_secs_f64())
        }
        EventKind::CaseFinished { case_id, attempts, failure: None } => {
            format!("{case_id}: ok at attempt {attempts}")
        }
        EventKind::CaseFinished { case_id, attempts: 0, failure: Some(_) } => format!("{case_id}: not run"),
        EventKind::CaseFinished { case_id, attempts, failure: Some(failure) } => {
            format!("{case_id}: failed at attempt {attempts} ({failure})")
        }
        EventKind::ConcurrencyChanged { limit } => format!("cases in flight from now on: {limit}"),
        EventKind::AgentGivenUp { in_a_row, not_asked } => {
            format!("the agent is given up after {in_a_row} such failures in a row; cases not run: {not_asked}")
        }
        EventKind::RunInterrupted { in_flight } => format!("interrupted; cases still in flight: {in_flight}"),
        EventKind::RunFinished { counts } => format!(
            "run finished: {} ok, {} failed, {} retried, {} left",
            counts.answered,
            counts.failed,
            counts.retried,
            counts.not_run()
        ),
    })
}

impl fmt::Display for FailureNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.name)?;
        self.status.map_or(Ok(()), |status| write!(f, ", status {status}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use counterproof_artifact::FailureClass;
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_line_says_when_what_and_why() {
        let failure = FailureNote { class: FailureClass::HttpError, name: "server_error", status: Some(500) };
        let case_id = "refund_001".parse().unwrap();
        let kind = EventKind::AttemptFailed { case_id, attempt: 1, failure, retry_in: Duration::from_millis(250) };
        let mut bytes = Vec::new();
        let mut reporter = Plain::new(&mut bytes);
        reporter.report(&RunEvent { at: Timestamp::UNIX_EPOCH, elapsed: Duration::from_millis(12_345), kind });
        let line = String::from_utf8(bytes).unwrap();
        let expected =
            "   12.345s  refund_001: attempt 1 failed (http_error: server_error, status 500), again in 0.250s\n";
        assert_eq!(line, expected);
    }
}
