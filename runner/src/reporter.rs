//! Reporters of run events: JSON Lines, plain text, and none. The caller passes the output in.

use std::io::{self, Write};

use counterproof_artifact::RunId;
use serde::Serialize;

use crate::environment::whole_millis;
use crate::event::{EventKind, Reporter, RunEvent};

/// Writes every event as a line of JSON.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
    run_id: Option<RunId>,
    seq: u64,
    /// The first write error. No line is written after it.
    error: Option<io::Error>,
}

/// The envelope of a line, with the fields of the event.
#[derive(Serialize)]
struct Line<'event> {
    schema_version: &'static str,
    seq: u64,
    run_id: Option<&'event RunId>,
    at: String,
    elapsed_ms: u64,
    // The published format has the fields of the event next to those of the envelope.
    #[serde(flatten)]
    kind: &'event EventKind,
}

impl<W: Write> JsonLines<W> {
    /// Creates a reporter that writes to `out`.
    pub const fn new(out: W) -> Self {
        Self { out, run_id: None, seq: 0, error: None }
    }

    /// Ends the stream and returns the first write error. A reader that closes the stream does not stop the run.
    pub fn finish(mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn write(&mut self, event: &RunEvent) -> io::Result<()> {
        if let EventKind::RunStarted { run_id, .. } = &event.kind {
            self.run_id = Some(run_id.clone());
            // A reporter can receive several runs, and the lines of each are counted from 1.
            self.seq = 0;
        }
        self.seq += 1;
        let line = Line {
            schema_version: "run-event.v1",
            seq: self.seq,
            run_id: self.run_id.as_ref(),
            at: format!("{:.3}", event.at),
            elapsed_ms: whole_millis(event.elapsed),
            kind: &event.kind,
        };
        let mut bytes = serde_json::to_vec(&line)?;
        bytes.push(b'\n');
        // One write per line, so that a reader never sees a partial line.
        self.out.write_all(&bytes)?;
        // A program may follow the run while it goes on.
        self.out.flush()
    }
}

impl<W: Write> Reporter for JsonLines<W> {
    fn report(&mut self, event: &RunEvent) {
        if self.error.is_none() {
            self.error = self.write(event).err();
        }
    }
}

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
        EventKind::LimitReached { cause } => format!("limit reached: {cause}; skipping the remaining cases"),
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

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Reporter for Silent {
    fn report(&mut self, _event: &RunEvent) {}
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use counterproof_artifact::{FailureClass, Side};
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::event::{Counts, FailureNote};

    /// One event of each kind, with all fields set.
    fn events() -> Vec<RunEvent> {
        let case_id = || "refund_001".parse().unwrap();
        let failure = FailureNote { class: FailureClass::HttpError, name: "rate_limited", status: Some(429) };
        let kinds = vec![
            EventKind::RunStarted {
                run_id: "nightly-17".parse().unwrap(),
                side: Side::New,
                folder: "runs/new/nightly-17".into(),
                cases: 3,
            },
            EventKind::CaseStarted { case_id: case_id() },
            EventKind::AttemptFailed { case_id: case_id(), attempt: 1, failure, retry_in: Duration::from_millis(1200) },
            EventKind::ConcurrencyChanged { limit: 2 },
            EventKind::CaseFinished { case_id: case_id(), attempts: 2, failure: None },
            EventKind::CaseFinished { case_id: case_id(), attempts: 3, failure: Some(failure) },
            EventKind::AgentDown { consecutive_failures: 5, skipped: 1 },
            EventKind::LimitReached { cause: "the answers used 12 tokens, and the limit is 10".to_owned() },
            EventKind::RunInterrupted { in_flight: 2 },
            EventKind::RunFinished {
                counts: Counts {
                    selected: 3,
                    answered: 1,
                    failed: 2,
                    retried: 2,
                    attempts: 5,
                    already_complete: 0,
                    skipped: 1,
                    over_budget: 0,
                },
            },
        ];
        let event = |(index, kind)| RunEvent {
            at: "2026-01-05T09:00:00.25Z".parse().unwrap(),
            elapsed: Duration::from_micros(1500) * index,
            kind,
        };
        (0..).zip(kinds).map(event).collect()
    }

    fn written() -> Vec<String> {
        let mut bytes = Vec::new();
        let mut reporter = JsonLines::new(&mut bytes);
        for event in events() {
            reporter.report(&event);
        }
        reporter.finish().unwrap();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_docs_contain_a_line_of_each_event() {
        let docs = include_str!("../../docs/events.md");
        for line in written() {
            assert!(docs.contains(&format!("\n{line}\n")), "docs/events.md has no line\n{line}");
        }
    }

    #[test]
    fn every_line_has_the_envelope() {
        for (seq, line) in (1..).zip(written()) {
            let line: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["schema_version"], "run-event.v1");
            assert_eq!((&line["seq"], &line["run_id"]), (&Value::from(seq), &Value::from("nightly-17")));
            assert!(line["type"].is_string() && line["elapsed_ms"].is_u64() && line["at"].is_string(), "{line}");
        }
    }

    #[test]
    fn a_closed_stream_is_reported_at_the_end() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut reporter = JsonLines::new(Closed);
        for event in events() {
            reporter.report(&event);
        }
        assert_eq!(reporter.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

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
