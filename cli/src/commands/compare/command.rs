//! Runs the command: compares, appends the step summary, and prints the terminal summary.

use std::env;

use counterproof_artifact::Exit;
use counterproof_artifact::evaluation::{Evaluation, GateOutcome};

use super::args::Args;
use super::comparison::compare;
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
    let evaluation = compare(&options, streams)?;
    append_step_summary(&options, &evaluation, streams);
    streams.print_line(comparison_summary::render(&evaluation))?;
    streams.print_line(format_args!("report: {}", options.out.join("index.html")))?;
    hint_at_confirmation(&options, &evaluation, streams);
    Ok(match evaluation.gate.outcome {
        GateOutcome::Passed => Exit::Done,
        GateOutcome::NotJudged if !args.strict => Exit::Done,
        GateOutcome::NotJudged | GateOutcome::Failed | GateOutcome::NotEnoughData => Exit::Findings,
    })
}

/// Logs how to confirm the regressions of one run per side.
fn hint_at_confirmation(options: &CompareOptions, evaluation: &Evaluation, streams: &mut Streams) {
    let unconfirmed = evaluation.cases.iter().filter(|case| case.unconfirmed).count();
    // With several runs, or after a confirmation, the reasons of the cases state how many more runs would decide.
    let (true, None, Some(cases)) = (unconfirmed > 0, &evaluation.repeats, &options.cases) else { return };
    let worse = if unconfirmed == 1 { "1 case is worse" } else { &format!("{unconfirmed} cases are worse") };
    streams.log(format_args!(
        "hint: {worse} in a single run, which may be chance; to run them again, add the options of the agent, and of the\n      \
         baseline's agent (`--confirm-baseline-url`) unless the baseline has several runs, to\n      \
         counterproof run --cases {} --side new --resume {} --confirm 4",
        shell::path(cases),
        evaluation.new.run_id
    ));
}

/// Appends the summary to the one of the GitHub Actions step, if this is one. A failure is a warning: the report is written.
fn append_step_summary(options: &CompareOptions, evaluation: &Evaluation, streams: &mut Streams) {
    let Some(path) = env::var(step_summary::VARIABLE).ok().filter(|path| !path.is_empty()) else { return };
    let context = report_context(evaluation, None, options.report_url.as_ref());
    if let Err(error) = step_summary::append(path.as_str().into(), evaluation, &context, options.pages) {
        streams.warn(format_args!("cannot append to the step summary: {error}"));
    }
}
