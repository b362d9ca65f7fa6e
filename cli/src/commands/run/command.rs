//! Resolves the arguments, makes the planned runs in one session, and logs the next steps.

use std::cell::OnceCell;

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Exit, RunId, Side, escape_invisible};
use counterproof_cases::{CaseSpec, Suite};
use counterproof_evaluator::text;
use counterproof_runner::{Checkout, Environment, Interrupt, Settings, Spending, Summary, Urgency};

use super::args::{Args, RunOptions};
use super::confirm::{BaselineAgent, Confirmation};
use super::outcome::{check_reached, claim_error, log_next_steps, log_outcome, run_error};
use crate::command_error::CommandError;
use crate::layers::Layers;
use crate::reporter::{FailureSummary, ReporterKind, RunReporter};
use crate::run_plan::RunPlan;
use crate::side_agent::SideAgent;
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::working_copies::OutputFolder;
use crate::{cases_file, open_files};

pub(crate) fn run(args: &Args, layers: &Layers, streams: &mut Streams) -> Result<Exit, CommandError> {
    // Before the agent is started, so that invalid cases cost no start.
    let cases = select_cases(args, cases_file::load(args.cases()?, streams)?)?;
    let out = streams.copies.output(&args.out)?;
    let interrupt = Interrupt::default();
    let stop = interrupt.clone();
    on_signal(move || stop.trigger()).map_err(CommandError::io)?;
    let agent = if args.dry_run {
        SideAgent::without_start(args.side, layers)
    } else {
        SideAgent::open(args.side, layers, &out.folder, &interrupt, streams)?
    };
    let mut options = RunOptions::new(args, &layers.config, &agent, &out)?;
    options.settings.is_selection = !args.only.is_empty();
    // A run that was started with other ids can still be resumed.
    if args.plan.resume.is_none() {
        check_new_ids(&cases, args.cases()?)?;
    }
    let baseline = options.confirm.as_mut().and_then(|confirm| confirm.baseline_agent.as_mut());
    limit_open_files(std::iter::once(&mut options.settings).chain(baseline), cases.len(), streams);
    let baseline_slot = OnceCell::new();
    let RunOptions { plan, settings: shared, confirm } = &options;
    if args.dry_run {
        return print(shared, plan, &cases, streams);
    }
    fetch_earlier(args, &options, &out, streams)?;
    // Prepared before the run, so that wrong options are reported before the first request.
    let confirmation = match confirm {
        Some(confirm) => {
            let named = confirm.baseline_agent.clone();
            let baseline = named.map_or_else(
                || BaselineAgent::configured(shared, layers, &interrupt, &baseline_slot),
                |settings| BaselineAgent::Known(Box::new(settings)),
            );
            Confirmation::prepare(confirm, (plan, shared), &cases, baseline, streams)?
        }
        None => None,
    };
    let mut session = Session {
        reporter: args.reporter,
        // Once, so that all runs of a group name the same commit.
        checkout: Checkout::discover(Utf8Path::new(".")),
        interrupt: interrupt.clone(),
        spending: Spending::default(),
        resume_command: Some(if args.plan.take_over {
            layers.typed.command_with("--take-over", &["take-over"])
        } else {
            layers.typed.resume_command(plan.id.as_str())
        }),
        failed: false,
        goes_on_at_limit: false,
        prints_folder: args.reporter != ReporterKind::Jsonl,
        streams,
    };
    for (number, planned) in (1..).zip(&plan.runs) {
        let remaining_runs = plan.runs.len() - number + usize::from(confirmation.is_some());
        if let Some(shard) = planned.shard.as_ref().filter(|_| args.plan.take_over) {
            out.fetch_complete_attempts(shared.side, shard)?;
            let complete = counterproof_runner::complete_attempt(&shared.out, shared.side, shard, &cases);
            if let Some(complete) = complete.map_err(claim_error)? {
                session.streams.log(format_args!("`{}` is complete", complete.folder));
                session.failed |= complete.failed;
                continue;
            }
        }
        let end = session.run(&planned.settings(shared), &cases, remaining_runs);
        // The end of the agent explains why the run was interrupted, or why it failed.
        agent.check_alive()?;
        if end? == RunEnd::Interrupted {
            return Ok(Exit::Interrupted);
        }
    }
    if let Some(confirmation) = confirmation {
        let end = confirmation.run(&mut session);
        [Some(&agent), baseline_slot.get()].into_iter().flatten().try_for_each(SideAgent::check_alive)?;
        if end? == RunEnd::Interrupted {
            return Ok(Exit::Interrupted);
        }
    }
    let failed = session.failed;
    log_next_steps(shared, plan, streams);
    Ok(if failed { Exit::Findings } else { Exit::Done })
}

/// Copies what the bucket has of the runs that are resumed, and the baseline that flipped cases are found with.
fn fetch_earlier(
    args: &Args,
    options: &RunOptions,
    out: &OutputFolder,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    if out.copy.is_none() {
        return Ok(());
    }
    if args.plan.resume.is_some() {
        for run in &options.plan.runs {
            out.fetch_resumed(args.side, &run.run_id)?;
        }
        for id in &options.plan.confirmations {
            Side::BOTH.into_iter().try_for_each(|side| out.fetch_resumed(side, id))?;
        }
    }
    if options.confirm.as_ref().is_some_and(|confirm| confirm.against.is_empty()) {
        streams.copies.latest(&out.folder, Side::Baseline)?;
    }
    Ok(())
}

/// Rejects ids that a new run must not use as file names.
pub(crate) fn check_new_ids(cases: &[CaseSpec], cases_path: &Utf8Path) -> Result<(), CommandError> {
    let refused = cases.iter().find_map(|case| case.id.check_new().err().map(|error| (&case.id, error)));
    refused.map_or(Ok(()), |(id, error)| {
        Err(CommandError::usage(format!("`{cases_path}`: case `{id}`: {error}"))
            .hint("rename the case; `accept` a run with the new id if a baseline has the old one"))
    })
}

/// Raises the limit of open files. If it stays too low, runs fewer cases at once; the others wait.
pub(crate) fn limit_open_files<'s>(
    settings: impl IntoIterator<Item = &'s mut Settings>,
    cases: usize,
    streams: &mut Streams,
) {
    for settings in settings {
        let in_flight = settings.concurrency.max().get().min(cases);
        let Some(low) = open_files::raise_limit(&settings.target, in_flight) else { continue };
        settings.concurrency = settings.concurrency.at_most(low.cases);
        let allowed = text::count(low.cases.get(), "case", "cases");
        streams.warn(format_args!(
            "the limit of {} open files allows {allowed} in flight instead of {in_flight}\n  hint: raise it with `ulimit -n {}`",
            low.open_files, low.needed
        ));
    }
}

/// Returns the cases that `--only` names, in the order of the suite; all cases without `--only`.
fn select_cases(args: &Args, suite: Suite) -> Result<Vec<CaseSpec>, CommandError> {
    if args.only.is_empty() {
        return Ok(suite.cases);
    }
    let is_known = |id: &CaseId| suite.cases.iter().any(|case| case.id == *id);
    let unknown: Vec<_> = args.only.iter().filter(|id| !is_known(id)).collect();
    if let Some(first) = unknown.first() {
        let listed: Vec<_> = unknown.iter().map(|id| format!("`{id}`")).collect();
        let message = format!("`{}` has no case {}", args.cases()?, listed.join(", "));
        return Err(CommandError::usage(message).hint(match suite.nearest(first) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "list the cases with `--dry-run` and without `--only`".to_owned(),
        }));
    }
    Ok(suite.cases.into_iter().filter(|case| args.only.contains(&case.id)).collect())
}

/// The state that the runs of one invocation share.
pub(crate) struct Session<'a> {
    pub(crate) reporter: ReporterKind,
    pub(crate) checkout: Option<Checkout>,
    pub(crate) interrupt: Interrupt,
    /// What the answers of all runs used.
    pub(crate) spending: Spending,
    /// The command line that resumes the runs; `None` if only a new run goes on.
    pub(crate) resume_command: Option<String>,
    /// Whether the folder of a run is a result of the command.
    pub(crate) prints_folder: bool,
    /// Whether a reached limit on cost is a failed run, and not an error: `check` compares what there is.
    pub(crate) goes_on_at_limit: bool,
    /// Whether a run failed that is not a confirmation, or a limit ended the confirmation.
    pub(crate) failed: bool,
    pub(crate) streams: &'a mut Streams,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// Every case was run.
    Completed,
    /// The run was interrupted. The command line that resumes it was logged.
    Interrupted,
}

impl Session<'_> {
    /// Makes one run and logs its outcome. An interrupt also ends the session if `remaining_runs` would follow.
    pub(crate) fn run(
        &mut self,
        settings: &Settings,
        cases: &[CaseSpec],
        remaining_runs: usize,
    ) -> Result<RunEnd, CommandError> {
        let (summary, failures) = self.execute(settings, cases)?;
        if !summary.interrupted {
            match &summary.limit {
                Some(limit) if self.goes_on_at_limit => {
                    self.streams.warn(format_args!("{limit}; the other cases did not run"));
                }
                _ => check_reached(settings, &summary, &failures, self.resume_command.as_deref())?,
            }
            self.failed |= summary.failed && settings.confirmation.is_none();
        }
        Ok(self.end(&summary, remaining_runs))
    }

    /// Makes one run and logs its outcome, also if no attempt reached the agent.
    pub(crate) fn execute(
        &mut self,
        settings: &Settings,
        cases: &[CaseSpec],
    ) -> Result<(Summary, FailureSummary), CommandError> {
        let (checkout, interrupt, spending) = (self.checkout.clone(), self.interrupt.clone(), self.spending.clone());
        let environment = Environment { checkout, interrupt, spending, ..Environment::from_system() };
        let mut reporter = RunReporter::new(self.reporter, &mut self.streams.out, &self.streams.copies);
        let summary = counterproof_runner::run(settings, cases, environment, &mut reporter);
        let failures = reporter.finish();
        // An error of the run explains more than an error of the output, so it comes first.
        let summary = summary
            .map_err(|error| run_error(error, self.resume_command.as_deref().unwrap_or("counterproof check")))?;
        let failures = failures?;
        log_outcome((self.reporter, self.prints_folder), settings, &summary, &failures, self.streams)?;
        Ok((summary, failures))
    }

    /// Reports whether the limits on usage allow a further confirmation run.
    pub(crate) fn allows_confirmation(&mut self, settings: &Settings) -> Result<bool, CommandError> {
        match self.spending.exceeded(&settings.usage_limits) {
            None => Ok(true),
            Some(limit) if self.goes_on_at_limit => {
                self.streams.warn(format_args!("{limit}; the confirmation ends here"));
                self.failed = true;
                Ok(false)
            }
            Some(limit) => Err(CommandError::findings(format!("{limit}; the confirmation ends here"))),
        }
    }

    /// Returns how a run ended. An interrupt also ends the session if `remaining_runs` would follow.
    pub(crate) fn end(&mut self, summary: &Summary, remaining_runs: usize) -> RunEnd {
        // An interrupt during the last run came too late to change anything.
        if summary.interrupted || (self.interrupt.reached(Urgency::Finish) && remaining_runs > 0) {
            self.streams.log(match &self.resume_command {
                Some(command) => format!("interrupted; resume with: {command}"),
                None => "interrupted".to_owned(),
            });
            return RunEnd::Interrupted;
        }
        RunEnd::Completed
    }
}

fn print(shared: &Settings, plan: &RunPlan, cases: &[CaseSpec], streams: &mut Streams) -> Result<Exit, CommandError> {
    let side = shared.side;
    let run_shard = plan.runs.first().and_then(|run| run.shard.as_ref());
    let in_shard = |case: &&CaseSpec| run_shard.is_none_or(|run_shard| run_shard.shard.contains(&case.id));
    streams.print_line(format_args!(
        "would run {} as side {side} against {}, with up to {} each",
        text::count(cases.iter().filter(in_shard).count(), "case", "cases"),
        shared.recorded_url(),
        text::count(shared.retry.retries as usize + 1, "attempt", "attempts"),
    ))?;
    for case in cases.iter().filter(in_shard) {
        // Titles are free text and may contain terminal escape sequences.
        let title = case.title.as_deref().map(|title| format!("  {}", escape_invisible(title))).unwrap_or_default();
        streams.print_line(format_args!("  {}{title}", case.id))?;
    }
    for run in &plan.runs {
        let folder = shared.out.join(side.as_str()).join(run.run_id.as_str());
        streams.print_line(format_args!("would write {folder}"))?;
    }
    if let (Some(first), Some(last)) = (plan.confirmations.first(), plan.confirmations.last()) {
        let folder = |id: &RunId| shared.out.join(side.as_str()).join(id.as_str());
        streams.print_line(format_args!("would run flipped cases again in {} to {}", folder(first), folder(last)))?;
    }
    Ok(Exit::Done)
}
