//! The progress bar of a run. It is shown on a terminal only, and keeps its own counts.

use std::io::IsTerminal;
use std::time::Duration;

use counterproof_runner::{EventKind, Reporter, RunEvent};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Interval at which the elapsed time is redrawn.
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
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, answered: 0, failed: 0, retries: 0 }
    }

    fn start(&self, cases: usize) {
        self.bar.set_length(cases as u64);
        let template = "{bar:30} {pos}/{len}  {msg}  {elapsed}";
        self.bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
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
