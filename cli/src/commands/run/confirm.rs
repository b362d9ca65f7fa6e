//! `run --confirm`: runs the flipped cases again, on new and on the baseline if its agent is known.
//!
//! The runner and the evaluator do not depend on each other, so this module passes the run folders from one to the other.

use std::collections::HashSet;
use std::fs;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, Side};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::{ComparedRun, Expectations, FlippedCase, Request, SideRuns, flipped_cases, text};
use counterproof_runner::{ConfirmationPlan, Settings, Summary};
use counterproof_store::{ReadError, RunReader};

use super::args::{ConfirmOptions, RunOptions};
use super::command::{RunEnd, Session};
use crate::command_error::{CommandError, recorded_failure};
use crate::named_runs::{RunSelection, read_error, side_runs};
use crate::run_plan::RunPlan;
use crate::streams::Streams;

const MAX_CASES_LISTED: usize = 10;

const MAX_REASON_CHARS: usize = 160;

/// The confirmation of a run.
pub(super) struct Confirmation<'a> {
    confirm: &'a ConfirmOptions,
    plan: &'a RunPlan,
    /// The settings of the agent of new.
    shared: &'a Settings,
    cases: &'a [CaseSpec],
    expectations: Expectations,
    baseline: SideRuns,
    /// The settings of the agent of the baseline; `None` if no option names it, or if it gave no answers.
    baseline_agent: Option<&'a Settings>,
}

impl<'a> Confirmation<'a> {
    /// Prepares a confirmation. Returns `None` if there is nothing to confirm or to compare with, and logs why.
    pub(super) fn prepare(
        confirm: &'a ConfirmOptions,
        options: &'a RunOptions,
        cases: &'a [CaseSpec],
        streams: &mut Streams,
    ) -> Result<Option<Self>, CommandError> {
        let RunOptions { plan, settings: shared, .. } = options;
        if shared.side != Side::New {
            return Err(CommandError::usage("`--confirm` requires `--side new`")
                .hint("create several runs of the baseline with `--side baseline --repeat N`"));
        }
        let expectations = Expectations::compile(cases).map_err(CommandError::usage)?;
        if shared.deterministic {
            streams.log("note: the agent is declared deterministic: one run decides, and no case is confirmed");
            return Ok(None);
        }
        let Some(baseline) = open_baseline(&confirm.against, shared, streams)? else { return Ok(None) };
        let baseline_agent = confirm.baseline_agent.as_ref();
        Ok(Some(Self { confirm, plan, shared, cases, expectations, baseline, baseline_agent }))
    }

    pub(super) fn run(mut self, session: &mut Session<'_>) -> Result<RunEnd, CommandError> {
        let cases = match self.recorded_cases() {
            Some(cases) => cases,
            None => self.flipped_cases(session.streams)?,
        };
        if cases.is_empty() {
            return Ok(RunEnd::Completed);
        }
        let count = self.plan.confirmations.len();
        for index in 1..=count {
            // Baseline and new alternate, so that a change of load or of a shared backend affects both sides.
            if let Some(agent) = self.baseline_agent {
                let settings = self.settings(agent, Side::Baseline, index);
                match run_baseline(session, &settings, &cases)? {
                    BaselineEnd::Run(RunEnd::Interrupted) => return Ok(RunEnd::Interrupted),
                    BaselineEnd::Run(RunEnd::Completed) => {}
                    BaselineEnd::Unanswered => self.baseline_agent = None,
                }
            }
            let settings = self.settings(self.shared, Side::New, index);
            if session.run(&settings, &cases, count - index)? == RunEnd::Interrupted {
                return Ok(RunEnd::Interrupted);
            }
        }
        Ok(RunEnd::Completed)
    }

    /// Returns the cases that an earlier call of a resumed command found flipped.
    fn recorded_cases(&self) -> Option<Vec<CaseSpec>> {
        let folder = self.shared.out.join(Side::New.as_str());
        let runs = if self.confirm.is_resumed { RunReader::confirmations(&folder, &self.plan.id) } else { Vec::new() };
        // Not searched again: the baseline or the expectations may have changed, but a confirmation keeps its cases.
        let recorded = runs.into_iter().next()?;
        Some(self.select(&recorded.run().selected_case_ids.iter().collect()))
    }

    /// Compares the run with the baseline, and logs the flipped cases.
    fn flipped_cases(&mut self, streams: &mut Streams) -> Result<Vec<CaseSpec>, CommandError> {
        let folder = self.shared.out.join(Side::New.as_str()).join(self.plan.id.as_str());
        let new = RunReader::open(&folder).map_err(|error| read_error(error, Side::New))?;
        // Opened again, because the settings of each confirmation run name the runs of `self.baseline`.
        let baseline = self.baseline.iter().map(|run| ComparedRun::new(run.reader().clone())).collect();
        let request = Request {
            cases: self.cases,
            expectations: std::mem::take(&mut self.expectations),
            rules: self.confirm.rules.clone(),
            thresholds: self.confirm.thresholds.clone(),
            ..Request::new(side_runs(baseline, Side::Baseline)?, ComparedRun::new(new).into())
        };
        let flipped = flipped_cases(&request).map_err(|error| read_error(error, Side::New))?;
        self.log_flipped(&flipped, streams);
        Ok(self.select(&flipped.iter().map(|flipped| &flipped.case_id).collect()))
    }

    fn select(&self, ids: &HashSet<&CaseId>) -> Vec<CaseSpec> {
        self.cases.iter().filter(|case| ids.contains(&case.id)).cloned().collect()
    }

    fn log_flipped(&self, flipped: &[FlippedCase], streams: &mut Streams) {
        let against = self.baseline.first().reader().folder();
        if flipped.is_empty() {
            return streams.log(format_args!("no case is worse than in `{against}`; nothing to confirm"));
        }
        let runs = text::count(self.plan.confirmations.len(), "more run", "more runs");
        let sides = if self.baseline_agent.is_some() { " of new and of the baseline" } else { " of new" };
        let are = if flipped.len() == 1 { "is" } else { "are" };
        streams.log(format_args!(
            "{} of {} {are} worse than in `{against}`; confirming with {runs}{sides}:",
            flipped.len(),
            text::count(self.cases.len(), "case", "cases"),
        ));
        for case in flipped.iter().take(MAX_CASES_LISTED) {
            streams.log(format_args!("  {}  {}", case.case_id, text::one_line(&case.reason, MAX_REASON_CHARS)));
        }
        if flipped.len() > MAX_CASES_LISTED {
            streams.log(format_args!("  and {} more", flipped.len() - MAX_CASES_LISTED));
        }
        if self.baseline_agent.is_none() && !self.baseline.is_repeated() {
            streams.warn(
                "the baseline has one run, against which no number of runs of new excludes chance: these cases stay \
                 unconfirmed\nhint: name the baseline's agent with `--confirm-baseline-url`, or create several runs of the \
                 baseline with `--side baseline --repeat N`",
            );
        }
    }

    /// Returns the settings of the confirmation run with this number, counted from 1.
    fn settings(&self, agent: &Settings, side: Side, index: usize) -> Settings {
        let plan = self.plan;
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Settings {
            run_id: plan.confirmations[index - 1].clone(),
            side,
            start: plan.later_start,
            confirmation: Some(ConfirmationPlan {
                of: plan.id.clone(),
                against: self.baseline.iter().map(|run| run.reader().run().run_id.clone()).collect(),
                index: number(index),
                count: number(plan.confirmations.len()),
            }),
            ..agent.clone()
        }
    }
}

/// Opens the baseline that `compare` would use. Returns `None` without a baseline, which is not an error.
fn open_baseline(
    against: &[Utf8PathBuf],
    shared: &Settings,
    streams: &mut Streams,
) -> Result<Option<SideRuns>, CommandError> {
    let selection = if against.is_empty() {
        let missing = RunReader::latest(&shared.out, Side::Baseline).err();
        // The first run of a project has no baseline, and must not fail because of it.
        if let Some(error @ (ReadError::NoRun { .. } | ReadError::OnlyShards { .. })) = missing {
            streams.log(format_args!("note: {error}; no case is confirmed"));
            return Ok(None);
        }
        RunSelection::Latest { runs: shared.out.clone(), baseline_option: "--against" }
    } else {
        RunSelection::Folders(against.to_vec())
    };
    let runs = selection.open(Side::Baseline, streams)?;
    side_runs(runs.into_iter().map(ComparedRun::new).collect(), Side::Baseline).map(Some)
}

/// How a confirmation run of the baseline ended.
enum BaselineEnd {
    Run(RunEnd),
    /// The agent of the baseline answered no case. The run folder was removed.
    Unanswered,
}

/// Makes a confirmation run of the baseline.
fn run_baseline(
    session: &mut Session<'_>,
    settings: &Settings,
    cases: &[CaseSpec],
) -> Result<BaselineEnd, CommandError> {
    let (summary, failures) = session.execute(settings, cases)?;
    if summary.interrupted || summary.counts.answered > 0 {
        return Ok(BaselineEnd::Run(session.end(&summary, 1)));
    }
    // The baseline has answered these cases before, so an agent that now answers none of them is not available. Counted as failures
    // of the baseline, its errors would hide a regression.
    let cause = failure_message(&summary, failures.first_attempted());
    fs::remove_dir_all(&summary.folder).map_err(CommandError::io)?;
    session.streams.warn(format_args!(
        "the agent of the baseline at {} answered none of the flipped cases{cause}; removed `{}`, and only new runs them again",
        settings.target.recorded(),
        summary.folder,
    ));
    Ok(BaselineEnd::Unanswered)
}

/// Returns the recorded message of the failure of a case, after a colon.
fn failure_message(summary: &Summary, case_id: Option<&CaseId>) -> String {
    let failure = case_id.and_then(|case_id| recorded_failure(&summary.folder, case_id));
    let message = failure.and_then(|failure| failure.error_message);
    message.map(|message| format!(": {}", text::one_line(&message, MAX_REASON_CHARS))).unwrap_or_default()
}
