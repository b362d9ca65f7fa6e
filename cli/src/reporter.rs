//! The reporter that `--reporter` selects, the progress bar, and the failures that the summary of a run lists.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use counterproof_artifact::CaseId;
use counterproof_runner::{EventKind, FailureNote, JsonLines, Plain, Reason, Reporter, RunEvent};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::streams::{HarmlessLines, OutputError};
use crate::working_copies::WorkingCopies;

const MAX_LISTED: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReporterKind {
    /// A progress bar on a terminal
    Human,
    /// One line per event on standard error
    Plain,
    /// One JSON document per event on standard output
    Jsonl,
    /// Nothing
    #[value(skip)]
    Silent,
}

/// Reports the events of a run in the selected form and collects its failures.
pub(crate) struct RunReporter<'out> {
    output: Output<'out>,
    copies: &'out WorkingCopies,
    failures: FailureSummary,
}

enum Output<'out> {
    Human(RunProgress),
    Silent,
    Plain(Plain<HarmlessLines<io::Stderr>>),
    Jsonl(JsonLines<&'out mut dyn Write>),
}

impl<'out> RunReporter<'out> {
    /// Creates the reporter. JSON Lines go to `out`, everything else to standard error.
    pub(crate) fn new(kind: ReporterKind, out: &'out mut dyn Write, copies: &'out WorkingCopies) -> Self {
        let output = match kind {
            ReporterKind::Human => Output::Human(RunProgress::on_stderr()),
            ReporterKind::Plain => Output::Plain(Plain::new(HarmlessLines::new(io::stderr()))),
            ReporterKind::Jsonl => Output::Jsonl(JsonLines::new(out)),
            ReporterKind::Silent => Output::Silent,
        };
        Self { output, copies, failures: FailureSummary::default() }
    }

    /// Flushes the output and returns the collected failures.
    pub(crate) fn finish(self) -> Result<FailureSummary, OutputError> {
        if let Output::Jsonl(lines) = self.output
            && let Err(error) = lines.finish()
            // A reader that has closed the pipe does not fail the run.
            && let Some(error) = OutputError::from_io(error)
        {
            return Err(error);
        }
        Ok(self.failures)
    }
}

impl Reporter for RunReporter<'_> {
    fn report(&mut self, event: &RunEvent) {
        if let EventKind::CaseFinished { case_id, attempts, failure: Some(failure) } = &event.kind {
            self.failures.add(case_id, *attempts, failure);
        }
        let named;
        let event = if matches!(event.kind, EventKind::RunStarted { .. }) {
            named = with_original_folder(event, self.copies);
            &named
        } else {
            event
        };
        match &mut self.output {
            Output::Human(progress) => progress.report(event),
            Output::Silent => {}
            Output::Plain(plain) => plain.report(event),
            Output::Jsonl(lines) => lines.report(event),
        }
    }
}

/// The start of a run with the folder that was named, and not that of its working copy.
fn with_original_folder(event: &RunEvent, copies: &WorkingCopies) -> RunEvent {
    let mut event = event.clone();
    if let EventKind::RunStarted { folder, .. } = &mut event.kind {
        *folder = copies.original(folder.to_string()).into();
    }
    event
}

/// The failed cases of a run: counts per class, reason and status, and the first cases by id. Displays the counts per class, such as
/// `1 timeout, 2 http_error`.
#[derive(Debug, Default)]
pub(crate) struct FailureSummary {
    by_class: BTreeMap<&'static str, usize>,
    by_reason: BTreeMap<&'static str, usize>,
    by_status: BTreeMap<u16, usize>,
    first: BTreeMap<CaseId, String>,
    unlisted: usize,
    first_attempted: Option<CaseId>,
}

impl FailureSummary {
    fn add(&mut self, case_id: &CaseId, attempts: u32, failure: &FailureNote) {
        // A case without an attempt has no cause to show.
        // By id, so that two runs name the same one.
        if attempts > 0 && self.first_attempted.as_ref().is_none_or(|first| case_id < first) {
            self.first_attempted = Some(case_id.clone());
        }
        *self.by_class.entry(failure.class.as_str()).or_default() += 1;
        *self.by_reason.entry(failure.name).or_default() += 1;
        if let Some(status) = failure.status {
            *self.by_status.entry(status).or_default() += 1;
        }
        let status = failure.status.map(|status| format!(" {status}")).unwrap_or_default();
        // Cases end in any order. By id, two runs list the same ones.
        self.first.insert(case_id.clone(), format!("{}{status}", failure.name));
        if self.first.len() > MAX_LISTED {
            self.first.pop_last();
            self.unlisted += 1;
        }
    }

    /// Returns the first failed case, by id, with at least one attempt.
    pub(crate) const fn first_attempted(&self) -> Option<&CaseId> {
        self.first_attempted.as_ref()
    }

    /// Returns true if a case failed for this reason.
    pub(crate) fn has(&self, reason: Reason) -> bool {
        self.by_reason.contains_key(reason.name())
    }

    /// Returns how many cases failed for this reason, if any.
    pub(crate) fn count(&self, reason: Reason) -> Option<usize> {
        self.by_reason.get(reason.name()).copied()
    }

    /// Returns the reason that all `count` failures share, if there is one.
    pub(crate) fn common_reason(&self, count: usize) -> Option<&'static str> {
        self.by_reason.iter().find(|(_, cases)| **cases == count).map(|(reason, _)| *reason)
    }

    /// Returns the HTTP status that all `count` failures share, if there is one.
    pub(crate) fn common_status(&self, count: usize) -> Option<u16> {
        self.by_status.iter().find(|(_, cases)| **cases == count).map(|(status, _)| *status)
    }

    /// Returns a line for each listed failure, with `detail` of the case appended, and one line that counts the others.
    pub(crate) fn lines(&self, detail: impl Fn(&CaseId) -> String) -> impl Iterator<Item = String> {
        let unlisted = (self.unlisted > 0).then(|| format!("and {} more", self.unlisted));
        self.first
            .iter()
            .map(move |(case_id, failure)| format!("{case_id}: {failure}{}", detail(case_id)))
            .chain(unlisted)
    }
}

impl fmt::Display for FailureSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.by_class.iter().map(|(class, count)| format!("{count} {class}")).collect();
        f.write_str(&parts.join(", "))
    }
}

const TICK: Duration = Duration::from_millis(200);

/// Reports a run as a progress bar on standard error.
pub(crate) struct RunProgress {
    bar: ProgressBar,
    answered: usize,
    failed: usize,
    retries: usize,
}

impl RunProgress {
    /// Creates a bar that is visible if standard error is a terminal.
    pub(crate) fn on_stderr() -> Self {
        // In a log file, a bar would be one line per step.
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, answered: 0, failed: 0, retries: 0 }
    }

    fn start(&self, cases: usize) {
        self.bar.set_length(cases as u64);
        let template = "{bar:30} {pos}/{len}  {msg}  {elapsed}, {per_sec}, {eta} left";
        self.bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        // The time goes on while no case ends.
        self.bar.enable_steady_tick(TICK);
        self.show_counts();
    }

    fn show_counts(&self) {
        let Self { answered, failed, retries, .. } = self;
        self.bar.set_message(format!("{answered} ok, {failed} failed, {retries} retried"));
    }
}

impl Reporter for RunProgress {
    fn report(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::RunStarted { cases, .. } => self.start(*cases),
            EventKind::AttemptFailed { .. } => {
                self.retries += 1;
                self.show_counts();
            }
            EventKind::CaseFinished { failure, .. } => {
                let count = if failure.is_some() { &mut self.failed } else { &mut self.answered };
                *count += 1;
                self.bar.inc(1);
                self.show_counts();
            }
            EventKind::AgentDown { consecutive_failures, skipped } => self.bar.println(format!(
                "agent looks down after {consecutive_failures} consecutive failures; skipping {skipped} remaining cases"
            )),
            EventKind::RunInterrupted { in_flight } => self
                .bar
                .println(format!("stopping: waiting for {in_flight} cases in flight; interrupt again to cancel them")),
            EventKind::RunFinished { .. } => self.bar.finish_and_clear(),
            _ => {}
        }
    }
}

impl Drop for RunProgress {
    /// Clears the bar, so that a run that fails leaves no partial bar above its error.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
