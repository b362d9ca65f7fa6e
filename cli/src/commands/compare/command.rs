//! Runs the command: compares, appends the step summary, and prints the terminal summary.

use std::env;

use counterproof_artifact::Exit;
use counterproof_artifact::evaluation::{Evaluation, GateOutcome};

use super::args::Args;
use super::comparison::{Compared, compare};
use super::options::CompareOptions;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::report_context::report_context;
use crate::shell;
use crate::streams::Streams;
use crate::{comparison_summary, step_summary};

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let options = CompareOptions::new(args, Config::load(args.config.as_deref())?)?;
    let Compared { evaluation, can_repeat_new } = compare(&options, streams)?;
    append_step_summary(&options, &evaluation, streams);
    streams.print_line(comparison_summary::render(&evaluation))?;
    streams.print_line(format_args!("report: {}", options.out.join("index.html")))?;
    if can_repeat_new {
        hint_at_confirmation(&options, &evaluation, streams);
    } else {
        hint_at_more_runs(&options, &evaluation, streams);
    }
    Ok(match evaluation.gate.outcome {
        GateOutcome::Passed => Exit::Done,
        GateOutcome::NotJudged if !args.strict => Exit::Done,
        GateOutcome::NotJudged | GateOutcome::Failed | GateOutcome::NotEnoughData => Exit::Findings,
    })
}

/// Logs how to confirm the regressions of one run per side.
fn hint_at_confirmation(options: &CompareOptions, evaluation: &Evaluation, streams: &mut Streams) {
    let (Some(worse), Some(cases)) = (unconfirmed(evaluation), &options.cases) else { return };
    streams.log(format_args!(
        "hint: {worse} in a single run, which may be chance; to run them again, add the options of the agent, and of the\n      \
         baseline's agent (`--confirm-baseline-url`) unless the baseline has several runs, to\n      \
         counterproof run --cases {} --side new --resume {} --confirm 4",
        shell::path(cases),
        evaluation.new.run_id
    ));
}

/// Logs what to do about the regressions of one run per side, if other programs made the runs.
fn hint_at_more_runs(options: &CompareOptions, evaluation: &Evaluation, streams: &mut Streams) {
    let Some(worse) = unconfirmed(evaluation) else { return };
    let cases = options.cases.as_ref().map(|cases| format!("--cases {} ", shell::path(cases))).unwrap_or_default();
    streams.log(format_args!(
        "hint: {worse} in a single run, which may be chance; record more runs of each side, and pass all run folders with\n      \
         counterproof compare {cases}--baseline DIR... --new DIR...\n      \
         or set `deterministic = true` below `[agent]` in counterproof.toml if the agent always does the same",
    ));
}

/// Returns how many cases are worse in a single run. With several runs, or after a confirmation, the reasons of the cases state how
/// many more runs would decide.
fn unconfirmed(evaluation: &Evaluation) -> Option<String> {
    let count = evaluation.cases.iter().filter(|case| case.unconfirmed).count();
    match (&evaluation.repeats, count) {
        (Some(_), _) | (None, 0) => None,
        (None, 1) => Some("1 case is worse".to_owned()),
        (None, count) => Some(format!("{count} cases are worse")),
    }
}

/// Appends the summary to the one of the GitHub Actions step, if this is one. A failure is a warning: the report is written.
fn append_step_summary(options: &CompareOptions, evaluation: &Evaluation, streams: &mut Streams) {
    let Some(path) = env::var(step_summary::VARIABLE).ok().filter(|path| !path.is_empty()) else { return };
    let context = report_context(evaluation, None, options.report_url.as_ref());
    if let Err(error) = step_summary::append(path.as_str().into(), evaluation, &context, options.pages) {
        streams.warn(format_args!("cannot append to the step summary: {error}"));
    }
}
