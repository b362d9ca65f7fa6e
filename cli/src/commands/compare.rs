//! `counterproof compare`: two run folders in, a report and an exit code out.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::store::{EVALUATION_FILE, RUN_FILE, ReadError, RunReader};
use counterproof_artifact::write::{self, Durability};
use counterproof_artifact::{Exit, Side, evaluation::Evaluation};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::comparison::{self, CompareError, Request};
use counterproof_evaluator::expectations::Expectations;
use counterproof_evaluator::gate::{GateLimits, Limit};
use counterproof_evaluator::load::ComparedRun;
use counterproof_evaluator::report::{ReportError, ReportWriter};
use counterproof_evaluator::words;

use crate::command_error::CommandError;
use crate::config::Config;
use crate::streams::Streams;
use crate::{suite, summary};

/// Compare a new run with a baseline, write a report, and say whether the new version may go out.
///
/// Exit code 0: the gate passed. 1: it failed, or there was too little to compare.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run folder that is known to be good [default: the latest below RUNS/baseline]
    #[arg(requires = "new")]
    pub(crate) baseline: Option<Utf8PathBuf>,

    /// The run folder under test [default: the latest below RUNS/new]
    pub(crate) new: Option<Utf8PathBuf>,

    /// Where the runs are, when no folders are named
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    pub(crate) runs: Utf8PathBuf,

    /// The cases that were asked: their titles are shown, and their expectations judged on both sides
    #[arg(long, value_name = "PATH")]
    pub(crate) cases: Option<Utf8PathBuf>,

    /// Where the report goes
    #[arg(long, value_name = "DIR", default_value = "report")]
    pub(crate) out: Utf8PathBuf,

    /// The configuration [default: counterproof.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<Utf8PathBuf>,

    /// Let the gate pass although the two sides do not hold the same cases
    #[arg(long)]
    pub(crate) allow_unpaired: bool,

    /// Leave the run folders as they are, without an evaluation.json in each
    #[arg(long)]
    pub(crate) no_write_back: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut limits = Config::load(args.config.as_deref())?.gate;
    if args.allow_unpaired {
        limits.unpaired = Limit::None;
    }
    let evaluation = compare(args, limits, streams)?;
    streams.say(summary::render(&evaluation))?;
    streams.say(format_args!("report: {}", args.out.join("index.html")))?;
    Ok(if evaluation.gate.passed { Exit::Done } else { Exit::Findings })
}

/// Compares, and writes everything that is to be written.
pub(super) fn compare(args: &Args, limits: GateLimits, streams: &mut Streams) -> Result<Evaluation, CommandError> {
    let cases = match &args.cases {
        Some(path) => suite::load(path, streams)?.cases,
        None => Vec::new(),
    };
    let request = Request {
        baseline: ComparedRun::new(open(args.baseline.as_deref(), &args.runs, Side::Baseline, streams)?).into(),
        new: ComparedRun::new(open(args.new.as_deref(), &args.runs, Side::New, streams)?).into(),
        cases: &cases,
        expectations: Expectations::compile(&cases).map_err(CommandError::usage)?,
        limits,
    };
    warn(&request, streams);
    let evaluation = write_report(&request, &args.out)?;
    expect_cases(args, &cases, &evaluation, streams)?;
    if !args.no_write_back {
        for run in request.baseline.iter().chain(request.new.iter()) {
            let path = run.reader().folder().join(EVALUATION_FILE);
            if let Err(error) = write::write_json(&path, &evaluation, Durability::Synced) {
                // The report has it too, and a baseline may well lie where nobody may write.
                streams.note(format_args!("warning: {error}; --no-write-back leaves the run folders as they are"));
            }
        }
    }
    Ok(evaluation)
}

/// Says what a reader of the verdicts would want to have known before.
fn warn(request: &Request<'_>, streams: &mut Streams) {
    let (baseline, new) = (request.baseline.first().reader(), request.new.first().reader());
    for (run, side) in [(baseline, Side::Baseline), (new, Side::New)] {
        let (folder, document) = (run.folder(), run.run());
        if document.version != side {
            let is = document.version;
            streams.note(format_args!("warning: `{folder}` is a run of side {is}, and is compared as {side}"));
        }
        if document.stats.is_none() || document.extra.get("interrupted").is_some_and(|value| value == true) {
            streams.note(format_args!("warning: the run `{folder}` was stopped before its end"));
        }
    }
    if baseline.folder() == new.folder() {
        streams.note(format_args!("warning: `{}` is compared with itself", new.folder()));
    }
}

/// A cases file that is not the one that was asked would make every verdict milder without a word.
fn expect_cases(
    args: &Args,
    cases: &[CaseSpec],
    evaluation: &Evaluation,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    let Some(path) = &args.cases else { return Ok(()) };
    let known: HashSet<_> = cases.iter().map(|case| &case.id).collect();
    let unknown = evaluation.cases.iter().filter(|case| !known.contains(&case.case_id)).count();
    let compared = words::count(evaluation.cases.len(), "compared case", "compared cases");
    if unknown > 0 && unknown == evaluation.cases.len() {
        let message = format!("none of the {compared} is in `{path}`, so no expectation could be judged");
        return Err(CommandError::usage(message).hint("name the cases that the runs were asked with `--cases`"));
    }
    if unknown > 0 {
        streams.note(format_args!(
            "warning: {unknown} of {compared} are not in `{path}`: their expectations were not judged"
        ));
    }
    Ok(())
}

fn write_report(request: &Request<'_>, out: &Utf8Path) -> Result<Evaluation, CommandError> {
    let report = ReportWriter::create(out, request).map_err(report_error)?;
    let evaluation = comparison::compare(request, |case| report.write_case(case)).map_err(compare_error)?;
    report.finish(&evaluation).map_err(report_error)?;
    Ok(evaluation)
}

fn compare_error(error: CompareError<ReportError>) -> CommandError {
    match error {
        CompareError::Read(error) => CommandError::io(error),
        CompareError::Sink(error) => report_error(error),
    }
}

/// The run folder right below a folder whose name sorts last, as ids that sort by time do.
fn newest_below(folder: &Utf8Path) -> Option<Utf8PathBuf> {
    let entries = folder.read_dir_utf8().ok()?.filter_map(Result::ok);
    entries.map(|entry| entry.path().to_owned()).filter(|path| path.join(RUN_FILE).is_file()).max()
}

fn report_error(error: ReportError) -> CommandError {
    match error {
        ReportError::NotAReport(_) | ReportError::RunInside { .. } => {
            CommandError::usage(error).hint("choose another folder with `--out`")
        }
        ReportError::Read(_) | ReportError::Folder { .. } | ReportError::Write(_) | ReportError::Render { .. } => {
            CommandError::io(error)
        }
    }
}

fn open(
    folder: Option<&Utf8Path>,
    runs: &Utf8Path,
    side: Side,
    streams: &mut Streams,
) -> Result<RunReader, CommandError> {
    let opened = match folder {
        Some(folder) => RunReader::open(folder),
        None => RunReader::latest(runs, side).map(|latest| {
            for error in &latest.skipped {
                let chosen = latest.run.folder();
                streams.note(format_args!("warning: {error}, so `{chosen}` may not be the latest run"));
            }
            latest.run
        }),
    };
    opened.map_err(|error| match &error {
        ReadError::NoRun { .. } => CommandError::usage(error).hint(format!(
            "`counterproof run --side {side} …` makes one; or name two run folders: `counterproof compare BASELINE NEW`"
        )),
        ReadError::Io { path, .. } if error.is_missing() => {
            let folder = path.parent().unwrap_or(path);
            let hint = match newest_below(folder) {
                Some(run) => format!("`{folder}` holds runs; did you mean `{run}`?"),
                None => format!("a run folder holds a run.json, and `{folder}` has none"),
            };
            CommandError::io(error).hint(hint)
        }
        ReadError::Io { .. } => CommandError::io(error),
        ReadError::Document { path, .. } => {
            let hint = format!("`counterproof validate {path}` tells all that is wrong with it");
            CommandError::io(error).hint(hint)
        }
    })
}
