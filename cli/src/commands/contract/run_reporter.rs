//! The progress of a run of contracts: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::Duration;

use counterproof_artifact::harmless;
use counterproof_contracts::run_many::{ContractEnd, RunStep};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::run_summary::{end_word, reasons};

/// Interval at which the elapsed time is redrawn.
const TICK: Duration = Duration::from_millis(200);

/// Reports the steps of a run on standard error.
pub(super) struct RunReporter {
    bar: ProgressBar,
    running: Mutex<Vec<String>>,
    /// True if each contract gets lines when it ends.
    has_lines: bool,
}

impl RunReporter {
    /// Creates a reporter for this many contracts.
    pub(super) fn new(contracts: usize, is_json: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(contracts as u64), target);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {elapsed}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        if is_terminal {
            bar.enable_steady_tick(TICK);
        }
        Self { bar, running: Mutex::default(), has_lines: !is_json }
    }

    /// Reports a step.
    pub(super) fn observe(&self, step: &RunStep<'_>) {
        let mut running = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match step {
            RunStep::Began(selected) => running.push(selected.contract.id.to_string()),
            RunStep::Ended(selected, end) => {
                running.retain(|id| id != selected.contract.id.as_str());
                self.bar.inc(1);
                if self.has_lines {
                    self.print(selected.contract.id.as_str(), end);
                }
            }
        }
        self.bar.set_message(running.join(", "));
    }

    fn print(&self, id: &str, end: &ContractEnd) {
        let mut lines = vec![format!("{:<16} {id}", end_word(end))];
        lines.extend(reasons(end).into_iter().map(|reason| format!("    {reason}")));
        for line in lines {
            let line = harmless(&line);
            // With a hidden bar, `println` of the bar prints nothing.
            if self.bar.is_hidden() {
                anstream::eprintln!("{line}");
            } else {
                self.bar.println(line);
            }
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
