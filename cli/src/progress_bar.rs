//! A run, shown as it goes on: a bar on a terminal, nothing elsewhere. It counts for itself and decides nothing.

use std::io::IsTerminal;
use std::time::Duration;

use counterproof_runner::{EventKind, Reporter, RunEvent};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Redraws the clock of the bar, also while nothing happens.
const TICK: Duration = Duration::from_millis(200);

/// The progress of a run on standard error.
pub(crate) struct Progress {
    bar: ProgressBar,
    answered: usize,
    failed: usize,
    retries: usize,
}

impl Progress {
    /// A bar where standard error is a terminal.
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

impl Reporter for Progress {
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
            EventKind::AgentGivenUp { in_a_row, not_asked } => self.bar.println(format!(
                "giving the agent up: failures in a row that say it is down: {in_a_row}; cases not asked: {not_asked}"
            )),
            EventKind::RunInterrupted { in_flight } => self
                .bar
                .println(format!("stopping: {in_flight} cases in flight may still end; interrupt again to leave them")),
            EventKind::RunFinished { .. } => self.bar.finish_and_clear(),
            _ => {}
        }
    }
}

impl Drop for Progress {
    /// A run that could not go on leaves no half bar above its error.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
