//! One invocation of `counterproof run`: the state that all of its runs share.

use counterproof_cases::CaseSpec;
use counterproof_runner::{Checkout, Environment, Interrupt, Settings, Summary, Urgency};

use super::options::RunOptions;
use super::outcome::{check_reached, log_outcome};
use super::run_error::run_error;
use crate::command_error::CommandError;
use crate::reporter::{FailureSummary, RunReporter};
use crate::streams::Streams;

/// The state that the runs of one invocation share.
pub(super) struct Session<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) checkout: Option<Checkout>,
    pub(super) interrupt: Interrupt,
    /// The command line that resumes the runs.
    pub(super) resume_command: String,
    pub(super) streams: &'a mut Streams,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// Every case was run.
    Completed,
    /// The run was interrupted. The command line that resumes it was logged.
    Interrupted,
}

impl Session<'_> {
    /// Makes one run and logs its outcome. An interrupt also ends the session if `remaining_runs` would follow.
    pub(super) fn run(
        &mut self,
        settings: &Settings,
        cases: &[CaseSpec],
        remaining_runs: usize,
    ) -> Result<RunEnd, CommandError> {
        let (summary, failures) = self.execute(settings, cases)?;
        if !summary.interrupted {
            check_reached(settings, &summary, &failures)?;
        }
        Ok(self.end(&summary, remaining_runs))
    }

    /// Makes one run and logs its outcome, also if no attempt reached the agent.
    pub(super) fn execute(
        &mut self,
        settings: &Settings,
        cases: &[CaseSpec],
    ) -> Result<(Summary, FailureSummary), CommandError> {
        let (checkout, interrupt) = (self.checkout.clone(), self.interrupt.clone());
        let environment = Environment { checkout, interrupt, ..Environment::from_system() };
        let mut reporter = RunReporter::new(self.options.reporter, &mut self.streams.out);
        let summary = counterproof_runner::run(settings, cases, environment, &mut reporter);
        let failures = reporter.finish();
        // An error of the run explains more than an error of the output, so it comes first.
        let summary = summary.map_err(|error| run_error(error, &self.resume_command))?;
        let failures = failures?;
        log_outcome(self.options.reporter, settings, &summary, &failures, self.streams)?;
        Ok((summary, failures))
    }

    /// Returns how a run ended. An interrupt also ends the session if `remaining_runs` would follow.
    pub(super) fn end(&mut self, summary: &Summary, remaining_runs: usize) -> RunEnd {
        if summary.interrupted || (self.interrupt.reached(Urgency::Finish) && remaining_runs > 0) {
            self.streams.log(format_args!("interrupted; resume with: {}", self.resume_command));
            return RunEnd::Interrupted;
        }
        RunEnd::Completed
    }
}
