//! Compares the selected runs and writes the report.

use counterproof_artifact::Sides;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_evaluator::{CompareError, ComparedRun, Expectations, Request, evaluation_text};
use counterproof_report::{ReportError, ReportWriter};
use counterproof_store::EVALUATION_FILE;
use counterproof_store::write::{self, Durability};

use super::cases_check::check_cases_file;
use super::options::{CompareOptions, WriteBack};
use super::run_warnings::warn_about_runs;
use crate::cases_file;
use crate::command_error::CommandError;
use crate::named_runs::open_sides;
use crate::report_context::report_context;
use crate::report_output::report_error;
use crate::streams::Streams;

/// A comparison whose report is written.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) evaluation: Evaluation,
    /// True if `counterproof run` made the new run, and can repeat its cases.
    pub(crate) can_repeat_new: bool,
}

/// Compares the runs, and writes the report and, unless disabled, evaluation.json into each run folder.
pub(crate) fn compare(options: &CompareOptions, streams: &mut Streams) -> Result<Compared, CommandError> {
    let cases = match &options.cases {
        Some(path) => cases_file::load(path, streams)?.cases,
        None => Vec::new(),
    };
    let sides = open_sides(Sides { baseline: &options.baseline, new: &options.new }, streams)?;
    let request = Request {
        baseline: sides.baseline,
        new: sides.new,
        cases: &cases,
        expectations: Expectations::compile(&cases).map_err(CommandError::usage)?,
        rules: options.rules.clone(),
        limits: options.limits.clone(),
        thresholds: options.thresholds.clone(),
        is_deterministic: options.is_deterministic,
        signals: options.signals.clone(),
    };
    warn_about_runs(&request, streams);
    check_cases_file(options.cases.as_deref(), &request, streams)?;
    let evaluation = write_report(&request, options)?;
    for unknown in counterproof_evaluator::unknown_scopes(&request.limits, &cases, &evaluation.cases) {
        streams.warn(evaluation_text::unknown_scope(&unknown));
    }
    if options.write_back == WriteBack::Enabled {
        write_back(&request, &evaluation, streams);
    }
    // Runs of other programs, such as exports of a ledger, have no digests of their cases.
    let can_repeat_new = request.new.first().reader().run().case_digests.is_some();
    Ok(Compared { evaluation, can_repeat_new })
}

fn write_report(request: &Request<'_>, options: &CompareOptions) -> Result<Evaluation, CommandError> {
    let report = ReportWriter::create(&options.out, request).map_err(report_error)?.with_pages(options.pages);
    let evaluation = counterproof_evaluator::compare(request, |case| report.write_case(case)).map_err(compare_error)?;
    let context = report_context(&evaluation, options.cases.as_deref(), options.report_url.as_ref());
    report.finish_with(&evaluation, &context).map_err(report_error)?;
    Ok(evaluation)
}

fn compare_error(error: CompareError<ReportError>) -> CommandError {
    match error {
        CompareError::Read(error) => CommandError::io(error),
        CompareError::Sink(error) => report_error(error),
    }
}

/// Writes evaluation.json into each run folder. A failure is a warning: the report contains the evaluation as well, and a
/// baseline is often read-only.
fn write_back(request: &Request<'_>, evaluation: &Evaluation, streams: &mut Streams) {
    // The evaluation belongs to the run that a confirmation run confirms.
    let is_confirmation = |run: &&ComparedRun| run.reader().run().confirmation.is_some();
    for run in request.baseline.iter().chain(request.new.iter()).filter(|run| !is_confirmation(run)) {
        let path = run.reader().folder().join(EVALUATION_FILE);
        write::remove_leftovers_next_to(&path);
        if let Err(error) = write::write_json(&path, evaluation, Durability::Synced) {
            streams.warn(format_args!("{error}; pass `--no-write-back` to leave the run folders unchanged"));
        }
    }
}
