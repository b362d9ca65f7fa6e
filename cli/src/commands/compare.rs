//! `counterproof compare`: compares two run folders and writes a report.

use std::env;

use camino::Utf8PathBuf;
use counterproof_artifact::evaluation::{Evaluation, GateOutcome};
use counterproof_artifact::{Exit, Sides};
use counterproof_evaluator::{
    CompareError, ComparedRun, Expectations, GateRules, Limit, Measure, Request, Rules, SignalSettings, Thresholds,
    evaluation_text,
};
use counterproof_report::{PageSelection, ReportError, ReportUrl, ReportWriter};
use counterproof_store::EVALUATION_FILE;
use counterproof_store::write::{self, Durability};

use super::compare_warnings::{check_cases_file, warn_about_runs};
use crate::command_error::CommandError;
use crate::config::Config;
use crate::named_runs::{RunSelection, open_sides};
use crate::report_output::report_context;
use crate::report_output::{Pages, report_error};
use crate::streams::Streams;
use crate::{cases_file, comparison_summary, resume_command};

/// Compare a new run with a baseline, write a report, and check the gate.
///
/// The report is a folder that opens from disk: index.html, a page per case, evaluation.json, and the exports summary.md for pull
/// requests, junit.xml for CI servers and results.sarif for code hosts. If `GITHUB_STEP_SUMMARY` names a file, as in GitHub
/// Actions, the summary is appended to it.
///
/// Exit code 0: the gate passed, or had nothing to judge by. 1: the gate failed, or there was not enough data. 2: the arguments or the configuration are
/// invalid. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Baseline run folder [default: the latest run in RUNS/baseline, with its repeats]
    #[arg(value_name = "BASELINE", requires = "new")]
    baseline: Option<Utf8PathBuf>,

    /// New run folder [default: the latest run in RUNS/new, with its repeats]
    #[arg(value_name = "NEW")]
    new: Option<Utf8PathBuf>,

    /// Baseline run folders: repeats, from which the agent's noise is estimated
    #[arg(long = "baseline", value_name = "DIR", num_args = 1.., conflicts_with = "baseline")]
    baseline_runs: Vec<Utf8PathBuf>,

    /// New run folders: repeats
    #[arg(long = "new", value_name = "DIR", num_args = 1.., conflicts_with = "new")]
    new_runs: Vec<Utf8PathBuf>,

    /// Folder of all runs, searched for the latest run of a side without run folders
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    runs: Utf8PathBuf,

    /// Cases of the runs: adds their titles to the report and checks their expectations on both sides
    #[arg(long, value_name = "PATH")]
    cases: Option<Utf8PathBuf>,

    /// Report folder
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: Utf8PathBuf,

    /// Cases that get a page in the report
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Pages::All)]
    pages: Pages,

    /// URL of the published report, for the links in summary.md: its folder with a trailing `/`, or a page that contains it
    #[arg(long, value_name = "URL")]
    report_url: Option<ReportUrl>,

    /// Configuration file [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,

    /// Exit with code 1 if the gate has nothing to judge by: no expectations and one run per side
    #[arg(long)]
    strict: bool,

    /// Do not fail the gate if the two sides have different cases
    #[arg(long)]
    allow_unpaired: bool,

    /// Do not write evaluation.json into the run folders
    #[arg(long)]
    no_write_back: bool,
}

/// The inputs and outputs of a comparison.
#[derive(Debug)]
pub(crate) struct CompareOptions {
    pub(crate) baseline: RunSelection,
    pub(crate) new: RunSelection,
    /// The cases of the runs. Without them, expectations are not checked.
    pub(crate) cases: Option<Utf8PathBuf>,
    pub(crate) limits: GateRules,
    pub(crate) rules: Rules,
    pub(crate) thresholds: Thresholds,
    /// Whether the configuration declares the agent deterministic.
    pub(crate) is_deterministic: bool,
    pub(crate) signals: SignalSettings,
    /// The report folder.
    pub(crate) out: Utf8PathBuf,
    pub(crate) pages: PageSelection,
    pub(crate) report_url: Option<ReportUrl>,
    pub(crate) write_back: WriteBack,
}

/// Whether evaluation.json is also written into the run folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteBack {
    Enabled,
    Disabled,
}

impl CompareOptions {
    /// Resolves the arguments. Rejects gate rules that need the cases if none are given.
    fn new(args: &Args, config: Config) -> Result<Self, CommandError> {
        let mut limits = config.gate;
        if args.allow_unpaired {
            limits = limits.with(Measure::Unpaired, Limit::None);
        }
        if let (Some(scope), None) = (limits.needs_cases(), &args.cases) {
            return Err(CommandError::usage(format!("the gate has rules for the {scope}, which require the cases"))
                .hint("pass the cases of the runs with `--cases`"));
        }
        let selection = |one: &Option<Utf8PathBuf>, several: &[Utf8PathBuf]| {
            let folders: Vec<_> = one.iter().chain(several).cloned().collect();
            if folders.is_empty() {
                RunSelection::Latest { runs: args.runs.clone(), baseline_option: "--baseline" }
            } else {
                RunSelection::Folders(folders)
            }
        };
        Ok(Self {
            baseline: selection(&args.baseline, &args.baseline_runs),
            new: selection(&args.new, &args.new_runs),
            cases: args.cases.clone(),
            limits,
            rules: config.rules,
            thresholds: config.statistics,
            is_deterministic: config.agent.deterministic,
            signals: config.signals,
            out: args.out.clone(),
            pages: args.pages.into(),
            report_url: args.report_url.clone(),
            write_back: if args.no_write_back { WriteBack::Disabled } else { WriteBack::Enabled },
        })
    }
}

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
        resume_command::path(cases),
        evaluation.new.run_id
    ));
}

/// Logs what to do about the regressions of one run per side, if other programs made the runs.
fn hint_at_more_runs(options: &CompareOptions, evaluation: &Evaluation, streams: &mut Streams) {
    let Some(worse) = unconfirmed(evaluation) else { return };
    let cases =
        options.cases.as_ref().map(|cases| format!("--cases {} ", resume_command::path(cases))).unwrap_or_default();
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
    let Some(path) = env::var(comparison_summary::VARIABLE).ok().filter(|path| !path.is_empty()) else { return };
    let context = report_context(evaluation, None, options.report_url.as_ref());
    if let Err(error) = comparison_summary::append(path.as_str().into(), evaluation, &context, options.pages) {
        streams.warn(format_args!("cannot append to the step summary: {error}"));
    }
}

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
