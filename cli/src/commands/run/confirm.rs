//! `run --confirm`: runs the flipped cases again, on new and on the baseline if its agent is known.
//!
//! The runner and the evaluator do not depend on each other, so this module passes the run folders from one to the other.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs;

use counterproof_artifact::{CaseId, RunId, Side, Sides};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::{
    ComparedRun, ConfirmationCount, Decides, Expectations, FlippedCase, LostCases, Request, SideRuns, flipped_cases,
    text,
};
use counterproof_runner::{ConfirmationPlan, Interrupt, Settings, Summary};
use counterproof_store::{ReadError, RunReader};

use super::args::ConfirmOptions;
use super::command::{RunEnd, Session};
use crate::command_error::{CommandError, recorded_failure};
use crate::layers::Layers;
use crate::named_runs::{RunSelection, read_error, side_runs};
use crate::resume_command;
use crate::run_plan::{ConfirmRuns, RunPlan};
use crate::side_agent::SideAgent;
use crate::streams::Streams;

const MAX_CASES_LISTED: usize = 10;

const MAX_REASON_CHARS: usize = 160;

/// One confirmation run of each side.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// The number of the run, counted from 1.
    index: u32,
    /// The planned number of runs.
    count: u32,
    ends_early: bool,
}

/// The agent of the baseline during a confirmation.
pub(crate) enum BaselineAgent<'a> {
    /// Nothing names it, or it gave no answers.
    Unknown,
    /// It is reachable with these settings.
    Known(Box<Settings>),
    /// It is started when a case flipped.
    Startable(StartBaseline<'a>),
}

/// Starts the agent of the baseline, and returns the settings that reach it.
pub(crate) type StartBaseline<'a> = Box<dyn FnOnce(&mut Streams) -> Result<Settings, CommandError> + 'a>;

impl<'a> BaselineAgent<'a> {
    /// Returns the agent that the configuration names. Once started, it is kept in `slot`.
    pub(crate) fn configured(
        new: &'a Settings,
        layers: &'a Layers,
        interrupt: &'a Interrupt,
        slot: &'a OnceCell<SideAgent>,
    ) -> Self {
        if !layers.config.side.has_baseline() {
            return Self::Unknown;
        }
        Self::Startable(Box::new(move |streams| {
            let agent = SideAgent::open(Side::Baseline, layers, &new.out, interrupt, streams)?;
            let settings = agent.baseline_settings(new, layers)?;
            // Empty until now: an agent is started once.
            let _ = slot.set(agent);
            Ok(settings)
        }))
    }

    const fn exists(&self) -> bool {
        !matches!(self, Self::Unknown)
    }
}

/// The confirmation of a run.
pub(crate) struct Confirmation<'a> {
    confirm: &'a ConfirmOptions,
    plan: &'a RunPlan,
    /// The settings of the agent of new.
    shared: &'a Settings,
    cases: &'a [CaseSpec],
    expectations: Expectations,
    baseline: SideRuns,
    baseline_agent: BaselineAgent<'a>,
}

impl<'a> Confirmation<'a> {
    /// Prepares a confirmation. Returns `None` if there is nothing to confirm or to compare with, and logs why.
    pub(crate) fn prepare(
        confirm: &'a ConfirmOptions,
        (plan, shared): (&'a RunPlan, &'a Settings),
        cases: &'a [CaseSpec],
        baseline_agent: BaselineAgent<'a>,
        streams: &mut Streams,
    ) -> Result<Option<Self>, CommandError> {
        if shared.side != Side::New {
            return Err(CommandError::usage("`--confirm` requires `--side new`")
                .hint("create several runs of the baseline with `--side baseline --repeat N`"));
        }
        let expectations = Expectations::compile(cases).map_err(CommandError::usage)?;
        if shared.deterministic {
            streams.log("note: the agent is declared deterministic: one run decides, and no case is confirmed");
            return Ok(None);
        }
        let Some(baseline) = open_baseline(confirm, shared, streams)? else { return Ok(None) };
        Ok(Some(Self { confirm, plan, shared, cases, expectations, baseline, baseline_agent }))
    }

    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<RunEnd, CommandError> {
        match self.confirm.runs {
            ConfirmRuns::Auto => self.run_while_undecided(session),
            ConfirmRuns::Fixed(runs) => self.run_fixed(runs.get(), session),
            ConfirmRuns::Off => Ok(RunEnd::Completed),
        }
    }

    /// Runs all flipped cases again, equally often.
    fn run_fixed(mut self, count: u32, session: &mut Session<'_>) -> Result<RunEnd, CommandError> {
        let cases = if let Some(cases) = self.recorded_cases(1) {
            cases
        } else {
            let flipped = self.flipped_cases()?;
            self.log_flipped(&flipped, &more_runs(count), session.streams);
            if !flipped.is_empty() && !self.baseline_agent.exists() && !self.baseline.is_repeated() {
                // Against one run, only the test of lost cases can exclude chance.
                let first = self.lost_cases(0, None)?;
                if matches!(
                    first.confirmation_count(flipped.len(), false, count..=count).decides,
                    Decides::Undecided | Decides::Nothing
                ) {
                    let claim = "even a case that fails in all of them may do so by chance";
                    self.warn_undecided(claim, &first, flipped.len(), Sides::new(0, count), session.streams);
                }
            }
            self.select(|id| flipped.iter().any(|flipped| flipped.case_id == *id))
        };
        if cases.is_empty() {
            return Ok(RunEnd::Completed);
        }
        for index in 1..=count {
            let round = Round { index, count, ends_early: false };
            if !session.allows_confirmation(self.shared)? {
                break;
            }
            if self.run_baseline(session, round, &cases)? == RunEnd::Interrupted
                || self.run_new(session, round, &cases)? == RunEnd::Interrupted
            {
                return Ok(RunEnd::Interrupted);
            }
        }
        Ok(RunEnd::Completed)
    }

    /// Runs each flipped case again until it can no longer be lost, or has as many runs as exclude chance.
    fn run_while_undecided(mut self, session: &mut Session<'_>) -> Result<RunEnd, CommandError> {
        let first = self.lost_cases(0, None)?;
        let mut open = first.candidates();
        let most = u32::try_from(self.plan.confirmations.len()).unwrap_or(u32::MAX);
        let recorded = self.recorded(1).and_then(|run| run.run().confirmation.as_ref()?.count);
        let mut count = if let Some(count) = recorded.and_then(|count| u32::try_from(count.get()).ok()) {
            count
        } else {
            let flipped = self.flipped_cases()?;
            // The baseline explains the others.
            let (lost, others): (Vec<_>, Vec<_>) =
                flipped.into_iter().partition(|flipped| open.contains(&flipped.case_id));
            open.retain(|id| lost.iter().any(|flipped| flipped.case_id == *id));
            let plan = first.confirmation_count(open.len(), self.baseline_agent.exists(), 1..=most);
            self.log_flipped(&lost, &format!("up to {}", more_runs(plan.runs)), session.streams);
            log_not_confirmed(&others, session.streams);
            log_what_decides(plan, open.len(), session.streams);
            plan.runs
        };
        if let Some(run) = self.recorded(1) {
            open = run.run().selected_case_ids.iter().cloned().collect();
        }
        let confirmed = open.clone();
        // After the planned runs, a case whose answer is missing in one of them runs once more.
        for index in 1..=most {
            let cases = self.recorded_cases(index).unwrap_or_else(|| self.select(|id| open.contains(id)));
            if cases.is_empty() || !session.allows_confirmation(self.shared)? {
                break;
            }
            let round = Round { index, count, ends_early: true };
            let has_agent = self.baseline_agent.exists();
            if self.run_baseline(session, round, &cases)? == RunEnd::Interrupted {
                return Ok(RunEnd::Interrupted);
            }
            // Without the agent of the baseline, another number is enough. Chosen before new runs again.
            if index == 1 && has_agent && !self.baseline_agent.exists() {
                count = first.confirmation_count(confirmed.len(), false, 1..=most).runs;
            }
            if self.run_new(session, Round { count, ..round }, &cases)? == RunEnd::Interrupted {
                return Ok(RunEnd::Interrupted);
            }
            open = self.lost_cases(index, Some(&open))?.unfinished(self.planned(count));
        }
        let planned = self.planned(count);
        let lost = self.lost_cases(most, Some(&confirmed))?.lost();
        let repeats_baseline = self.baseline_agent.exists();
        if !lost.is_empty()
            && matches!(
                first.confirmation_count(lost.len(), repeats_baseline, count..=count).decides,
                Decides::Undecided | Decides::Nothing
            )
        {
            let mut ids: Vec<&str> = lost.iter().map(CaseId::as_str).collect();
            ids.sort_unstable();
            let (fail, more) =
                (if ids.len() == 1 { "fails" } else { "fail" }, ids.len().saturating_sub(MAX_CASES_LISTED));
            ids.truncate(MAX_CASES_LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let runs = text::count(count as usize + 1, "run", "runs");
            let claim = format!("{}{more} {fail} in all {runs} of new, which may be chance", text::list(&ids));
            self.warn_undecided(&claim, &first, lost.len(), planned, session.streams);
        }
        Ok(RunEnd::Completed)
    }

    fn planned(&self, count: u32) -> Sides<u32> {
        Sides::new(if self.baseline_agent.exists() { count } else { 0 }, count)
    }

    /// Makes a confirmation run of the baseline, if its agent is known.
    fn run_baseline(
        &mut self,
        session: &mut Session<'_>,
        round: Round,
        cases: &[CaseSpec],
    ) -> Result<RunEnd, CommandError> {
        // Baseline and new alternate, so that a change of load or of a shared backend affects both sides.
        let agent = match std::mem::replace(&mut self.baseline_agent, BaselineAgent::Unknown) {
            BaselineAgent::Unknown => return Ok(RunEnd::Completed),
            BaselineAgent::Known(agent) => agent,
            BaselineAgent::Startable(start) => match start(session.streams) {
                Ok(agent) => Box::new(agent),
                // The runs of new may decide without it.
                Err(error) => {
                    session.streams.warn(format_args!(
                        "the agent of the baseline did not start, and only new runs these cases again: {}",
                        error.message()
                    ));
                    return Ok(RunEnd::Completed);
                }
            },
        };
        match run_baseline(session, &self.settings(&agent, Side::Baseline, round), cases)? {
            BaselineEnd::Run(end) => {
                self.baseline_agent = BaselineAgent::Known(agent);
                Ok(end)
            }
            BaselineEnd::Unanswered => Ok(RunEnd::Completed),
        }
    }

    fn run_new(&self, session: &mut Session<'_>, round: Round, cases: &[CaseSpec]) -> Result<RunEnd, CommandError> {
        let remaining_runs = round.count.saturating_sub(round.index) as usize;
        session.run(&self.settings(self.shared, Side::New, round), cases, remaining_runs)
    }

    /// Reads what the runs show about lost cases: those of the baseline and of new, with this many confirmation runs.
    fn lost_cases(&self, confirmations: u32, only: Option<&HashSet<CaseId>>) -> Result<LostCases, CommandError> {
        let confirmations = &self.plan.confirmations[..confirmations as usize];
        let folder = |side: Side, id: &RunId| self.shared.out.join(side.as_str()).join(id.as_str());
        let opened = |side: Side| confirmations.iter().filter_map(move |id| RunReader::open(&folder(side, id)).ok());
        let first = RunReader::open(&folder(Side::New, &self.plan.id)).map_err(|error| read_error(error, Side::New))?;
        let baseline = self.baseline.iter().map(|run| run.reader().clone()).chain(opened(Side::Baseline));
        let new = std::iter::once(first).chain(opened(Side::New));
        let baseline = side_runs(baseline.map(ComparedRun::new).collect(), Side::Baseline)?;
        let new = side_runs(new.map(ComparedRun::new).collect(), Side::New)?;
        let thresholds = &self.confirm.thresholds;
        LostCases::read(Sides::new(&baseline, &new), &self.expectations, thresholds, only)
            .map_err(|error| read_error(error, Side::New))
    }

    /// Warns about lost cases that the baseline is too short to convict, with the command that decides.
    fn warn_undecided(&self, claim: &str, first: &LostCases, lost: usize, planned: Sides<u32>, streams: &mut Streams) {
        let cases = resume_command::path(&self.shared.cases_path);
        let (runs, repeat) = match first.deciding_baseline(lost, planned) {
            Some(runs) => (format!("a baseline of {runs} runs"), runs.to_string()),
            None => ("a longer baseline".to_owned(), "N".to_owned()),
        };
        streams.warn(format_args!(
            "{claim}: the baseline has {}\nhint: {runs} decides: `counterproof run --cases {cases} --side baseline --repeat \
             {repeat}` with its agent{}",
            text::count(self.baseline.iter().count(), "run", "runs"),
            if self.baseline_agent.exists() {
                ""
            } else {
                "\nhint: with `[side.baseline]` in the configuration, the baseline's agent runs these cases again, too"
            },
        ));
    }

    /// Returns the confirmation run of new with this number, counted from 1, that an earlier call of a resumed command made.
    fn recorded(&self, index: u32) -> Option<RunReader> {
        let id = self.plan.confirmations.get(index as usize - 1).filter(|_| self.confirm.is_resumed)?;
        RunReader::open(&self.shared.out.join(Side::New.as_str()).join(id.as_str())).ok()
    }

    /// Returns the cases of that run.
    fn recorded_cases(&self, index: u32) -> Option<Vec<CaseSpec>> {
        // Not searched again: the baseline or the expectations may have changed, but a confirmation keeps its cases.
        let recorded = self.recorded(index)?;
        Some(self.select(|id| recorded.run().selected_case_ids.contains(id)))
    }

    /// Compares the run with the baseline.
    fn flipped_cases(&mut self) -> Result<Vec<FlippedCase>, CommandError> {
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
        let flipped = flipped_cases(&request).map_err(|error| read_error(error, Side::New));
        self.expectations = request.expectations;
        flipped
    }

    fn select(&self, is_selected: impl Fn(&CaseId) -> bool) -> Vec<CaseSpec> {
        self.cases.iter().filter(|case| is_selected(&case.id)).cloned().collect()
    }

    /// Logs the flipped cases. `runs` is how often they run again.
    fn log_flipped(&self, flipped: &[FlippedCase], runs: &str, streams: &mut Streams) {
        let against = self.baseline.first().reader().folder();
        if flipped.is_empty() {
            return streams.log(format_args!("no case is worse than in `{against}`; nothing to confirm"));
        }
        let sides = if self.baseline_agent.exists() { " of new and of the baseline" } else { " of new" };
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
    }

    /// Returns the settings of a confirmation run.
    fn settings(&self, agent: &Settings, side: Side, round: Round) -> Settings {
        let plan = self.plan;
        Settings {
            run_id: plan.confirmations[round.index as usize - 1].clone(),
            side,
            start: plan.later_start,
            confirmation: Some(ConfirmationPlan {
                of: plan.id.clone(),
                against: self.baseline.iter().map(|run| run.reader().run().run_id.clone()).collect(),
                index: round.index,
                count: round.count,
                ends_early: round.ends_early,
            }),
            ..agent.clone()
        }
    }
}

fn more_runs(count: u32) -> String {
    text::count(count as usize, "more run", "more runs")
}

/// Logs the flipped cases that are not run again.
fn log_not_confirmed(flipped: &[FlippedCase], streams: &mut Streams) {
    if let Some(first) = flipped.first() {
        let count = text::count(flipped.len(), "case looks", "cases look");
        let id = &first.case_id;
        streams.log(format_args!(
            "note: {count} worse and will not run again, because not every run of the baseline solves it, such as {id}; \
             to run every such case again, use `--confirm N`"
        ));
    }
}

/// Logs that the planned runs do not convict every case that fails in all of them.
fn log_what_decides(plan: ConfirmationCount, flipped: usize, streams: &mut Streams) {
    match plan.decides {
        Decides::AllTogether if flipped > 1 => streams.log(format_args!(
            "note: the baseline is too short to confirm one case; all {flipped} together are confirmed if they keep failing"
        )),
        Decides::Nothing if flipped > 0 => {
            streams.log("note: the baseline is too short to confirm these cases, even if they keep failing");
        }
        Decides::Undecided if flipped > 0 => streams.log(
            "note: the baseline is too short to convict one case; the gate is undecided if a case fails in all of these runs",
        ),
        Decides::OneCase | Decides::AllTogether | Decides::Undecided | Decides::Nothing => {}
    }
}

/// Opens the baseline that `compare` would use. Returns `None` without a baseline, which is not an error.
fn open_baseline(
    confirm: &ConfirmOptions,
    shared: &Settings,
    streams: &mut Streams,
) -> Result<Option<SideRuns>, CommandError> {
    let selection = if confirm.against.is_empty() {
        let missing = RunReader::latest(&shared.out, Side::Baseline).err();
        // The first run of a project has no baseline, and must not fail because of it.
        if let Some(error @ (ReadError::NoRun { .. } | ReadError::OnlyShards { .. } | ReadError::OnlyFailed { .. })) =
            missing
        {
            streams.log(format_args!("note: {error}; no case is confirmed"));
            return Ok(None);
        }
        RunSelection::Latest { runs: shared.out.clone(), baseline_option: confirm.baseline_option }
    } else {
        RunSelection::Folders(confirm.against.clone())
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
