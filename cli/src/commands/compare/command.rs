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
use crate::streams::Streams;
use crate::{comparison_summary, step_summary};

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let options = CompareOptions::new(args, Config::load(args.config.as_deref())?)?;
    let evaluation = compare(&options, streams)?;
    append_step_summary(&options, &evaluation, streams);
    streams.print_line(comparison_summary::render(&evaluation))?;
    streams.print_line(format_args!("report: {}", options.out.join("index.html")))?;
    Ok(match evaluation.gate.outcome {
        GateOutcome::Passed => Exit::Done,
        GateOutcome::NotJudged if !args.strict => Exit::Done,
        GateOutcome::NotJudged | GateOutcome::Failed | GateOutcome::NotEnoughData => Exit::Findings,
    })
}

/// Appends the summary to the one of the GitHub Actions step, if this is one. A failure is a warning: the report is written.
fn append_step_summary(options: &CompareOptions, evaluation: &Evaluation, streams: &mut Streams) {
    let Some(path) = env::var(step_summary::VARIABLE).ok().filter(|path| !path.is_empty()) else { return };
    let context = report_context(evaluation, None, options.report_url.as_ref());
    if let Err(error) = step_summary::append(path.as_str().into(), evaluation, &context, options.pages) {
        streams.warn(format_args!("cannot append to the step summary: {error}"));
    }
}
