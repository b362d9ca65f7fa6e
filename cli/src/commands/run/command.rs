//! Runs the command: resolves the arguments, makes the planned runs, and logs the next steps.

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Exit};
use counterproof_cases::{CaseSpec, Suite};
use counterproof_evaluator::text;
use counterproof_runner::{Checkout, Interrupt};

use super::args::Args;
use super::confirm::Confirmation;
use super::dry_run;
use super::options::{Action, RunOptions};
use super::outcome::log_next_steps;
use super::session::{RunEnd, Session};
use crate::command_error::CommandError;
use crate::resume_command::TypedOptions;
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::{cases_file, open_files};

/// Runs the command.
pub(crate) fn run(args: &Args, typed: &TypedOptions, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut options = RunOptions::new(args)?;
    let cases = select_cases(&options, cases_file::load(&options.settings.cases_path, streams)?)?;
    if args.plan.resume.is_none() {
        check_new_ids(&cases, &options.settings.cases_path)?;
    }
    limit_open_files(&mut options, cases.len(), streams);
    let RunOptions { plan, settings: shared, .. } = &options;
    if matches!(options.action, Action::DryRun) {
        return dry_run::print(shared, plan, &cases, streams);
    }
    let confirmation = match &options.action {
        Action::RunAndConfirm(confirm) => Confirmation::prepare(confirm, &options, &cases, streams)?,
        _ => None,
    };
    let interrupt = Interrupt::default();
    let stop = interrupt.clone();
    on_signal(move || stop.trigger()).map_err(CommandError::io)?;
    let mut session = Session {
        options: &options,
        checkout: Checkout::discover(Utf8Path::new(".")),
        interrupt,
        resume_command: typed.resume_command(plan.id.as_str()),
        streams,
    };
    for (number, planned) in (1..).zip(&plan.runs) {
        let remaining_runs = plan.runs.len() - number + usize::from(confirmation.is_some());
        if session.run(&planned.settings(shared), &cases, remaining_runs)? == RunEnd::Interrupted {
            return Ok(Exit::Interrupted);
        }
    }
    if let Some(confirmation) = confirmation
        && confirmation.run(&mut session)? == RunEnd::Interrupted
    {
        return Ok(Exit::Interrupted);
    }
    log_next_steps(shared, plan, streams);
    Ok(Exit::Done)
}

/// Rejects ids that a new run must not use as file names.
fn check_new_ids(cases: &[CaseSpec], cases_path: &Utf8Path) -> Result<(), CommandError> {
    let refused = cases.iter().find_map(|case| case.id.check_new().err().map(|error| (&case.id, error)));
    refused.map_or(Ok(()), |(id, error)| {
        Err(CommandError::usage(format!("`{cases_path}`: case `{id}`: {error}"))
            .hint("rename the case; `accept` a run with the new id if a baseline has the old one"))
    })
}

/// Raises the limit of open files. If it stays too low, runs fewer cases at once; the others wait.
fn limit_open_files(options: &mut RunOptions, cases: usize, streams: &mut Streams) {
    let in_flight = options.settings.concurrency.max().get().min(cases);
    if let Some(low) = open_files::raise_limit(&options.settings.target, in_flight) {
        options.limit_concurrency(low.cases);
        let allowed = text::count(low.cases.get(), "case", "cases");
        streams.warn(format_args!(
            "the limit of {} open files allows {allowed} in flight instead of {in_flight}\n  hint: raise it with `ulimit -n {}`",
            low.open_files, low.needed
        ));
    }
}

/// Returns the cases that `--only` names, in the order of the suite; all cases without `--only`.
fn select_cases(options: &RunOptions, suite: Suite) -> Result<Vec<CaseSpec>, CommandError> {
    if options.only.is_empty() {
        return Ok(suite.cases);
    }
    let is_known = |id: &CaseId| suite.cases.iter().any(|case| case.id == *id);
    let unknown: Vec<_> = options.only.iter().filter(|id| !is_known(id)).collect();
    if let Some(first) = unknown.first() {
        let listed: Vec<_> = unknown.iter().map(|id| format!("`{id}`")).collect();
        let message = format!("`{}` has no case {}", options.settings.cases_path, listed.join(", "));
        return Err(CommandError::usage(message).hint(match suite.nearest(first) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "list the cases with `--dry-run` and without `--only`".to_owned(),
        }));
    }
    Ok(suite.cases.into_iter().filter(|case| options.only.contains(&case.id)).collect())
}
