//! `counterproof report`: renders the report of an existing evaluation. Nothing is compared again.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::{Exit, Side};
use counterproof_evaluator::{Request, SideRuns, rerender, text};
use counterproof_report::{ReportUrl, ReportWriter};
use counterproof_store::{EVALUATION_FILE, ReadError, read_evaluation};

use crate::cases_file::{self, RecordedCases};
use crate::command_error::CommandError;
use crate::config::Config;
use crate::document_errors;
use crate::named_runs::{open_named, read_error};
use crate::report_output::report_context;
use crate::report_output::{ReportFiles, report_error};
use crate::resume_command;
use crate::streams::Streams;
use crate::working_copies::{bucket_url, reject_bucket};

/// Render the report of a comparison again, without comparing again.
///
/// Verdicts, reasons, the gate and root causes are taken from the evaluation. Without run folders, the report consists of the
/// index page, summary.md, junit.xml, results.sarif and evaluation.json; case pages need the run folders that were compared.
/// With those folders and the same cases, configuration and options, the report is byte-identical to the one of `compare`.
///
/// Exit code 0: the report is written, whether or not the gate passed. 2: the folders are not the runs that were compared. 3: a
/// file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// evaluation.json of a report or of a run folder
    #[arg(value_name = "EVALUATION")]
    evaluation: Utf8PathBuf,

    /// Baseline run folders that were compared
    #[arg(long = "baseline", value_name = "DIR", num_args = 1.., requires = "new_runs")]
    baseline_runs: Vec<Utf8PathBuf>,

    /// New run folders that were compared
    #[arg(long = "new", value_name = "DIR", num_args = 1.., requires = "baseline_runs")]
    new_runs: Vec<Utf8PathBuf>,

    /// Cases that were passed to `compare` [default: as for `compare`]
    #[arg(long, value_name = "PATH")]
    cases: Option<Utf8PathBuf>,

    /// Report folder
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: Utf8PathBuf,

    /// Also write the report folder to this address in a bucket, such as `s3://BUCKET/reports/build-7`; index.html is written last
    #[arg(help_heading = "Output", long, value_name = "URL")]
    publish: Option<Utf8PathBuf>,

    #[command(flatten)]
    files: ReportFiles,

    /// URL of the published report, for the links in summary.md: its folder with a trailing `/`, or a page that contains it
    #[arg(long, value_name = "URL")]
    report_url: Option<ReportUrl>,

    /// Configuration file with the comparison rules [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    reject_bucket(&args.out, "`--out` of `report`")?;
    let config = Config::load(args.config.as_deref())?;
    // The bytes are kept: the report gets them unchanged, with fields of newer versions.
    let path = streams.copies.tree(&args.evaluation)?;
    let (evaluation, bytes) = read_evaluation(&path).map_err(|error| evaluation_error(&path, error))?;
    // Before the report is written: an invalid address is found at once.
    args.publish.as_deref().map(bucket_url).transpose()?;
    let named = cases_file::load_named(args.cases.as_deref(), streams)?;
    let index = if args.new_runs.is_empty() {
        let context = report_context(&evaluation, args.cases.as_deref(), args.report_url.as_ref());
        if would_drop_case_pages(args) {
            let message = format!("cannot write to `{}`: its case pages would be deleted", args.out);
            return Err(CommandError::usage(message)
                .hint("choose another folder with `--out`, or pass the runs with `--baseline` and `--new`"));
        }
        let report = ReportWriter::without_runs(&args.out, &evaluation).map_err(report_error)?;
        let report = args.files.apply(report)?;
        streams.log(
            "note: the report has no case pages; to add them, pass the run folders with `--baseline DIR… --new DIR…`",
        );
        report.finish_from_bytes(&evaluation, &bytes, &context)
    } else {
        let baseline = compared_runs(&evaluation, Side::Baseline, &args.baseline_runs, streams)?;
        let new = compared_runs(&evaluation, Side::New, &args.new_runs, streams)?;
        // As `compare` does, so that the pages are the same.
        let recorded = || RecordedCases::find(new.first().reader()).unchanged();
        let (path, cases) = named.or_else(recorded).unzip();
        let cases = cases.unwrap_or_default();
        let context = report_context(&evaluation, path.as_deref(), args.report_url.as_ref());
        let again = Request { cases: &cases, rules: config.rules, ..Request::new(baseline, new) };
        let pages = args.files.pages(evaluation.cases.len());
        let report = ReportWriter::with_runs(&args.out, &evaluation, &again);
        let report = args.files.apply(report.map_err(report_error)?.with_pages(pages))?;
        rerender::show(&again, &evaluation, |verdict| pages.includes(verdict), |case| report.write_case(case))
            .map_err(report_error)?;
        report.finish_from_bytes(&evaluation, &bytes, &context)
    };
    streams.print_line(format_args!("report: {}", index.map_err(report_error)?))?;
    if let Some(to) = &args.publish {
        let files = streams.copies.publish(&args.out, to)?;
        streams.print_line(format_args!("published: {to} ({})", text::count(files, "file", "files")))?;
    }
    Ok(Exit::Done)
}

/// Maps an unreadable evaluation to an error. If the path is a folder or another document, the hint names the file to pass.
fn evaluation_error(path: &Utf8Path, error: ReadError) -> CommandError {
    const PASS_EVALUATION: &str =
        "pass an evaluation.json: `counterproof compare` writes one into the report and into each run folder";

    let file = path.join(EVALUATION_FILE);
    if file.is_file() {
        return CommandError::io(error)
            .hint(format!("pass the file in this folder: `counterproof report {}`", resume_command::path(&file)));
    }
    if path.is_dir() {
        return CommandError::io(error).hint(PASS_EVALUATION);
    }
    // `validate` would accept a document of another kind, so its findings would not help.
    match document_errors::other_kind(path, "evaluation.") {
        Some(kind) => {
            CommandError::io(format!("`{path}` is a `{kind}` document, not an evaluation")).hint(PASS_EVALUATION)
        }
        None => read_error(error, Side::New),
    }
}

/// Returns true if the report would replace the one with the evaluation, and that one has case pages.
fn would_drop_case_pages(args: &Args) -> bool {
    // Without runs, a report has no case pages, and the new report replaces the whole folder.
    let folder = args.evaluation.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let is_same = match (folder.canonicalize_utf8(), args.out.canonicalize_utf8()) {
        (Ok(from), Ok(to)) => from == to,
        _ => false,
    };
    is_same && args.out.join("artifacts").is_dir()
}

/// Opens the runs of a side and checks that they are the runs of the evaluation.
fn compared_runs(
    evaluation: &Evaluation,
    side: Side,
    folders: &[Utf8PathBuf],
    streams: &mut Streams,
) -> Result<SideRuns, CommandError> {
    rerender::runs_of(evaluation, side, open_named(folders, side, streams)?).map_err(|error| {
        CommandError::usage(error)
            .hint("pass the run folders that were compared; to compare others, use `counterproof compare`")
    })
}
