//! `counterproof report`: an evaluation in, its report out. Nothing is compared again.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::{Exit, Side};
use counterproof_evaluator::comparison::rerender::{self, Again};
use counterproof_evaluator::load::ComparedRun;
use counterproof_evaluator::load::SideRuns;
use counterproof_evaluator::report::{PageSelection, ReportUrl, ReportWriter};
use counterproof_store::{EVALUATION_FILE, ReadError, RunReader, read_evaluation};

use crate::command_error::CommandError;
use crate::commands::compare::{self, Pages};
use crate::config::Config;
use crate::streams::Streams;
use crate::{cases_file, report_context};

/// Render the report of a comparison again, without comparing again.
///
/// Verdicts, reasons, the gate and causes are those of the evaluation. Without run folders, the report is its first page,
/// summary.md, junit.xml, results.sarif and evaluation.json; the cases' pages need the run folders that were compared. With
/// these, and the same cases, configuration and options, the report is the same byte for byte as that of `compare`.
///
/// Exit code 0: written, whatever the gate says. 2: the folders are not the runs that were compared. 3: a file could not be
/// read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The evaluation.json of a report or of a run folder
    #[arg(value_name = "EVALUATION")]
    evaluation: Utf8PathBuf,

    /// The run folders of the baseline that were compared
    #[arg(long = "baseline", value_name = "DIR", num_args = 1.., requires = "new_runs")]
    baseline_runs: Vec<Utf8PathBuf>,

    /// The run folders of the new side that were compared
    #[arg(long = "new", value_name = "DIR", num_args = 1.., requires = "baseline_runs")]
    new_runs: Vec<Utf8PathBuf>,

    /// The cases that were asked, as they were given to `compare`
    #[arg(long, value_name = "PATH")]
    cases: Option<Utf8PathBuf>,

    /// Where the report goes
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: Utf8PathBuf,

    /// Which cases get a page of their own, where the run folders are named
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Pages::All)]
    pages: Pages,

    /// Where the report will be found, for the links of summary.md: its folder, ending with `/`, or a page that has it
    #[arg(long, value_name = "URL")]
    report_url: Option<ReportUrl>,

    /// The configuration, for its rules of comparison [default: counterproof.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let config = Config::load(args.config.as_deref())?;
    let (evaluation, bytes) =
        read_evaluation(&args.evaluation).map_err(|error| evaluation_error(&args.evaluation, error))?;
    let cases = match &args.cases {
        Some(path) => cases_file::load(path, streams)?.cases,
        None => Vec::new(),
    };
    let surroundings = report_context::of(&evaluation, args.cases.as_deref(), args.report_url.as_ref());
    if args.new_runs.is_empty() && has_more(args) {
        let message = format!("`{}` is this report with its cases' pages, which would be lost", args.out);
        return Err(CommandError::usage(message)
            .hint("choose another folder with `--out`, or name the runs with `--baseline` and `--new`"));
    }
    let page = if args.new_runs.is_empty() {
        let report = ReportWriter::of_evaluation(&args.out, &evaluation).map_err(compare::report_error)?;
        streams.note("no cases' pages: `--baseline DIR… --new DIR…` names the run folders that they are made of");
        report.finish_again(&evaluation, &bytes, &surroundings)
    } else {
        let again = Again {
            baseline: runs(&evaluation, Side::Baseline, &args.baseline_runs)?,
            new: runs(&evaluation, Side::New, &args.new_runs)?,
            cases: &cases,
            rules: config.rules,
        };
        let pages = PageSelection::from(args.pages);
        let report = ReportWriter::again(&args.out, &evaluation, &again.baseline, &again.new);
        let report = report.map_err(compare::report_error)?.with_pages(pages);
        rerender::show(&again, &evaluation, |verdict| pages.includes(verdict), |case| report.write_case(case))
            .map_err(compare::report_error)?;
        report.finish_again(&evaluation, &bytes, &surroundings)
    };
    let page = page.map_err(compare::report_error)?;
    streams.say(format_args!("report: {page}"))?;
    Ok(Exit::Done)
}

/// Why there is no evaluation to read; of a folder, with what to name instead.
fn evaluation_error(path: &Utf8Path, error: ReadError) -> CommandError {
    if !path.is_dir() {
        return compare::read_error(error, Side::New);
    }
    let file = path.join(EVALUATION_FILE);
    let hint = if file.is_file() {
        format!("name the evaluation in it: `counterproof report {file}`")
    } else {
        "name an evaluation.json: `counterproof compare` writes one into its report and into the run folders".to_owned()
    };
    CommandError::io(error).hint(hint)
}

/// True where the report goes to the folder that the evaluation stands in, and that has what it cannot make.
fn has_more(args: &Args) -> bool {
    let stands_in = args.evaluation.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let is_same = match (stands_in.canonicalize_utf8(), args.out.canonicalize_utf8()) {
        (Ok(from), Ok(to)) => from == to,
        _ => false,
    };
    is_same && args.out.join("artifacts").is_dir()
}

/// The runs of a side, held against those that were compared.
fn runs(evaluation: &Evaluation, side: Side, folders: &[Utf8PathBuf]) -> Result<SideRuns, CommandError> {
    let opened = folders.iter().map(|folder| RunReader::open(folder).map(ComparedRun::new));
    let opened = opened.collect::<Result<Vec<_>, _>>().map_err(|error| compare::read_error(error, side))?;
    rerender::runs_of(evaluation, side, opened).map_err(|error| {
        CommandError::usage(error)
            .hint("name the run folders that were compared; `counterproof compare` compares others")
    })
}
