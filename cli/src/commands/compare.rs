//! `counterproof compare`: compares two run folders and writes a report.

use std::collections::HashSet;
use std::env;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, GateOutcome};
use counterproof_artifact::{CaseId, Exit, Side, Sides};
use counterproof_cases::{CaseSpec, Shard};
use counterproof_evaluator::{
    CaseComparison, CompareError, ComparedRun, Limit, Measure, ReasonCode, Request, ShardFacts, ShardFactsError,
    SideRuns, evaluation_text, more_runs, text, wanted_baseline_runs,
};
use counterproof_report::{ReportUrl, ReportWriter};
use counterproof_store::write::{self, Durability};
use counterproof_store::{EVALUATION_FILE, RunReader, RunRelation};

use crate::cases_file::RecordedCases;
use crate::command_error::CommandError;
use crate::comparison_summary::Detail;
use crate::config::Config;
use crate::layers::Layers;
use crate::named_runs::{RunSelection, open_sides, warn_about_side};
use crate::report_output::{ReportFiles, report_context, report_error};
use crate::run_plan::ShardChoice;
use crate::streams::Streams;
use crate::working_copies::reject_bucket;
use crate::{cases_file, comparison_summary, resume_command};

/// Compare a new run with a baseline, write a report, and check the gate.
///
/// The report is a folder that opens from disk: index.html, a page per case, evaluation.json, and the exports summary.md for pull
/// requests, junit.xml for CI servers and results.sarif for code hosts. If `GITHUB_STEP_SUMMARY` names a file, as in GitHub
/// Actions, the summary is appended to it.
///
/// With `--shard` and `--facts`, a part of the cases is compared and its facts are written, without a report and a gate. `--from-facts`
/// then makes the report from the facts of all shards, as one process would.
///
/// Exit code 0: the gate passed, or had nothing to judge by. 1: the gate failed, or there was not enough data. 2: the arguments or the configuration are
/// invalid. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Baseline run folder, or its address in a bucket such as `s3://BUCKET/runs/baseline/ID` [default: the latest run in
    /// RUNS/baseline, with its repeats]
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

    /// Folder of all runs, or its address in a bucket, searched for the latest run of a side without run folders
    #[arg(long, value_name = "RUNS", default_value = DEFAULT_RUNS)]
    runs: Utf8PathBuf,

    /// Cases of the runs: adds their titles to the report and checks their expectations on both sides [default: the file that the
    /// new run records, if neither its inputs nor its expectations changed]
    #[arg(long, value_name = "PATH")]
    cases: Option<Utf8PathBuf>,

    /// Report folder, or its address in a bucket
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: Utf8PathBuf,

    #[command(flatten)]
    files: ReportFiles,

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

    /// Print all rules of the gate, with the numbers of their tests
    #[arg(long, short)]
    verbose: bool,

    /// Do not write evaluation.json into the run folders
    #[arg(long)]
    no_write_back: bool,

    /// Compare only the cases of shard K of N, counted from 1, and write their facts. `auto` and `auto/N` are those of `run --shard`
    #[arg(help_heading = "Shards", long, value_name = "K/N", requires = "facts", conflicts_with_all = ["from_facts", "out", "pages", "single_file", "archive", "history", "report_url", "strict", "no_write_back"])]
    shard: Option<ShardChoice>,

    /// Folder to write the facts of the shard to
    #[arg(help_heading = "Shards", long, value_name = "DIR", requires = "shard")]
    facts: Option<Utf8PathBuf>,

    /// Make the report from the facts of all shards. The runs, the cases and the configuration are those of the shards
    #[arg(help_heading = "Shards", long, value_name = "DIR")]
    from_facts: Option<Utf8PathBuf>,
}

/// The inputs and outputs of a comparison.
#[derive(Debug)]
pub(crate) struct CompareOptions {
    pub(crate) baseline: RunSelection,
    pub(crate) new: RunSelection,
    /// The cases of the runs. Without them, expectations are not checked.
    pub(crate) cases: Option<Utf8PathBuf>,
    /// The rules of the gate and of the comparison, the thresholds and the signals.
    pub(crate) config: Config,
    pub(crate) out: Utf8PathBuf,
    pub(crate) files: ReportFiles,
    pub(crate) report_url: Option<ReportUrl>,
    /// Whether evaluation.json is also written into the run folders.
    pub(crate) write_back: bool,
    /// The cases to compare; `None` for all.
    pub(crate) only: Option<Arc<HashSet<CaseId>>>,
    /// Whether there is no baseline: the new run is on both sides, and only its expectations are checked.
    pub(crate) is_alone: bool,
    /// The folder with the facts of all shards, if the cases are compared already.
    pub(crate) facts: Option<Utf8PathBuf>,
}

impl CompareOptions {
    fn new(args: &Args, mut config: Config) -> Self {
        if args.allow_unpaired {
            config.gate = config.gate.with(Measure::Unpaired, Limit::None);
        }
        let selection = |one: &Option<Utf8PathBuf>, several: &[Utf8PathBuf]| {
            let folders: Vec<_> = one.iter().chain(several).cloned().collect();
            if folders.is_empty() {
                RunSelection::Latest { runs: args.runs.clone(), baseline_option: "--baseline" }
            } else {
                RunSelection::Folders(folders)
            }
        };
        Self {
            baseline: selection(&args.baseline, &args.baseline_runs),
            new: selection(&args.new, &args.new_runs),
            cases: args.cases.clone(),
            config,
            out: args.out.clone(),
            files: args.files.clone(),
            report_url: args.report_url.clone(),
            write_back: !args.no_write_back,
            only: None,
            is_alone: false,
            facts: args.from_facts.clone(),
        }
    }
}

pub(crate) fn run(args: &Args, layers: &Layers, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut options = CompareOptions::new(args, Config::of_file(&layers.file)?);
    if let (Some(shard), Some(folder)) = (args.shard, &args.facts) {
        reject_bucket(folder, "`--facts`")?;
        let shard = shard.shard(|name| env::var(name).ok())?;
        return write_shard_facts(&options, shard, folder, streams);
    }
    if let Some(folder) = &args.from_facts {
        reject_bucket(folder, "`--from-facts`")?;
    }
    options.out = streams.copies.report(&args.out)?;
    if options.out != args.out && (args.files.single_file || args.files.archive.is_some()) {
        return Err(CommandError::usage("a report in a bucket has no copy in one file")
            .hint("write it to a folder, then `counterproof report … --publish`"));
    }
    let compared = compare(&options, streams)?;
    if options.out != args.out {
        streams.copies.publish(&options.out, &args.out)?;
    }
    let decide = deciding_command(&compared);
    let evaluation = compared.evaluation;
    append_step_summary(&options, &evaluation, streams);
    let detail = if args.verbose { Detail::Full } else { Detail::Brief };
    streams.print_summary(&comparison_summary::render(&evaluation, detail, Some(&decide)))?;
    streams.print_line(format_args!("report: {}", options.out.join("index.html")))?;
    Ok(gate_exit(evaluation.gate.outcome, args.strict))
}

/// Returns the exit code of an outcome. With `strict`, nothing to judge by is a failure: no expectations, and one run per side.
pub(crate) const fn gate_exit(outcome: GateOutcome, strict: bool) -> Exit {
    match outcome {
        GateOutcome::Passed => Exit::Done,
        GateOutcome::NotJudged if !strict => Exit::Done,
        GateOutcome::NotJudged | GateOutcome::Failed | GateOutcome::NotEnoughData => Exit::Findings,
    }
}

/// The placeholder of the address of the baseline's agent, if both runs recorded the same one.
const BASELINE_URL: &str = "URL_OF_THE_BASELINE_VERSION";

/// Returns how to find out whether the unconfirmed cases are chance.
fn deciding_command(compared: &Compared) -> String {
    let Compared { evaluation, agents, cases, runs } = compared;
    let cases = cases.as_ref().map(|cases| format!(" --cases {}", resume_command::path(cases))).unwrap_or_default();
    let Some(agents) = agents else {
        return format!(
            "to decide: record more runs of each side, then counterproof compare{cases} --baseline DIR... --new DIR...\n  \
             (or set `deterministic = true` below `[agent]` in counterproof.toml if the agent always does the same)"
        );
    };
    if evaluation.notices.iter().any(|notice| notice.code == ReasonCode::AnswerOutage.as_str()) {
        // A confirmation would ask the same provider again.
        return "to decide: run the new side again once its provider answers".to_owned();
    }
    let one_address = agents.baseline.is_some() && agents.baseline == agents.new;
    let mut agents = agents.as_ref().map(|url| url.as_deref().map_or("URL".into(), resume_command::quoted));
    if one_address {
        // One deployment may have had both versions, one after the other. A copied command must not measure new as the baseline.
        agents.baseline = BASELINE_URL.into();
    }
    let out = runs.as_ref().map(|runs| format!(" --out {}", resume_command::path(runs))).unwrap_or_default();
    let run = |side: Side, more: &str| {
        format!("counterproof run{cases} --side {side}{out} --base-url {} {more}", agents.get(side))
    };
    match (&evaluation.repeats, more_runs(evaluation)) {
        (None, _) => {
            let (id, baseline) = (&evaluation.new.run_id, &agents.baseline);
            let more = format!("--resume {id} --confirm --confirm-baseline-url {baseline}");
            format!("to decide: {}", run(Side::New, &more))
        }
        (Some(_), None) => {
            format!(
                "to decide: {}, then compare again",
                run(Side::Baseline, &format!("--repeat {}", wanted_baseline_runs(evaluation)))
            )
        }
        (Some(repeats), Some(more)) => {
            let repeat = |recorded: usize| format!("--repeat {}", recorded as u64 + more);
            format!(
                "to decide: {}\n             {}",
                run(Side::Baseline, &repeat(repeats.baseline.len())),
                run(Side::New, &repeat(repeats.new.len()))
            )
        }
    }
}

/// Appends the summary to the one of the GitHub Actions step, if this is one.
pub(crate) fn append_step_summary(options: &CompareOptions, evaluation: &Evaluation, streams: &mut Streams) {
    let Some(path) = env::var(comparison_summary::VARIABLE).ok().filter(|path| !path.is_empty()) else { return };
    let context = report_context(evaluation, None, options.report_url.as_ref());
    // A warning and not an error, because the report is complete.
    let pages = options.files.pages(evaluation.cases.len());
    if let Err(error) = comparison_summary::append(path.as_str().into(), evaluation, &context, pages) {
        streams.warn(format_args!("cannot append to the step summary: {error}"));
    }
}

/// A comparison whose report is written.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) evaluation: Evaluation,
    /// The URLs of the agents, where they are known; `None` if another program made the new run, which cannot be repeated.
    pub(crate) agents: Option<Sides<Option<String>>>,
    /// The cases file whose expectations were checked.
    pub(crate) cases: Option<Utf8PathBuf>,
    /// The folder of the runs, unless it is the default one.
    pub(crate) runs: Option<Utf8PathBuf>,
}

/// The folder of all runs that a selection is from, as it was typed; `None` if it is the default one, or not known.
fn folder_of_runs(selection: &RunSelection) -> Option<Utf8PathBuf> {
    let runs = match selection {
        RunSelection::Latest { runs, .. } => runs,
        RunSelection::Folders(folders) => folders.first()?.parent()?.parent()?,
    };
    let runs = if runs.as_str().is_empty() { Utf8Path::new(".") } else { runs };
    (runs != DEFAULT_RUNS).then(|| runs.to_owned())
}

/// The default of `--runs`, and of `run --out`.
const DEFAULT_RUNS: &str = "runs";

/// The runs of both sides and their cases.
struct Inputs {
    sides: Sides<SideRuns>,
    /// The cases file whose expectations are checked.
    path: Option<Utf8PathBuf>,
    cases: Vec<CaseSpec>,
}

impl Inputs {
    fn open(options: &CompareOptions, streams: &mut Streams) -> Result<Self, CommandError> {
        // Before the runs: a cases file with an error is found at once.
        let named = cases_file::load_named(options.cases.as_deref(), streams)?;
        let mut sides = open_sides(Sides { baseline: &options.baseline, new: &options.new }, streams)?;
        if let Some(only) = &options.only {
            sides = sides.map(|runs| runs.restricted_to(only));
        }
        let (path, cases) = match named {
            Some((path, cases)) => (Some(path), cases),
            None => recorded_cases(&sides.new, streams),
        };
        Ok(Self { sides, path, cases })
    }
}

/// Compares the cases of a shard, and writes their facts.
fn write_shard_facts(
    options: &CompareOptions,
    shard: Shard,
    folder: &Utf8Path,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let Inputs { sides, cases, .. } = Inputs::open(options, streams)?;
    let request = options.config.request(&cases, sides)?;
    let facts = counterproof_evaluator::write_shard_facts(&request, shard, folder).map_err(CommandError::io)?;
    streams.print_line(format_args!("facts of shard {shard}: {facts}"))?;
    Ok(Exit::Done)
}

/// Compares the runs, and writes the report and, unless disabled, evaluation.json into each run folder.
pub(crate) fn compare(options: &CompareOptions, streams: &mut Streams) -> Result<Compared, CommandError> {
    let Inputs { sides, path, cases } = Inputs::open(options, streams)?;
    // Without cases, such a rule would count nothing and always be met.
    if let (Some(scope), None) = (options.config.gate.needs_cases(), &path) {
        return Err(CommandError::usage(format!("the gate has rules for the {scope}, which require the cases"))
            .hint("pass the cases of the runs with `--cases`"));
    }
    let request = Request { is_alone: options.is_alone, ..options.config.request(&cases, sides)? };
    if !options.is_alone {
        warn_about_runs(&request, streams);
    }
    if let Some(path) = &path {
        check_cases_file(path, &request, streams)?;
    }
    let evaluation = write_report(&request, options, path.as_deref())?;
    for unknown in counterproof_evaluator::unknown_scopes(&request.limits, &cases, &evaluation.cases) {
        streams.warn(evaluation_text::unknown_scope(&unknown));
    }
    if options.write_back {
        write_back(&request, &evaluation, streams);
    }
    // Runs of other programs, such as exports of a ledger, have no digests of their cases.
    let can_repeat_new = request.new.first().reader().run().case_digests.is_some();
    let url =
        |runs: &SideRuns| Some(runs.first().reader().run().base_url.clone()).filter(|url| url.starts_with("http"));
    let agents = can_repeat_new.then(|| Sides::new(url(&request.baseline), url(&request.new)));
    Ok(Compared { evaluation, agents, cases: path, runs: folder_of_runs(&options.new) })
}

/// The cases that the new run records, if they are the same as when it was made. Logs whether expectations are checked.
fn recorded_cases(new: &SideRuns, streams: &mut Streams) -> (Option<Utf8PathBuf>, Vec<CaseSpec>) {
    let shown = |path: &Utf8Path| text::one_line(path.as_str(), MAX_PATH_CHARS);
    let (path, why) = match RecordedCases::find(new.first().reader()) {
        RecordedCases::Unchanged(path, cases) => {
            let shown = shown(&path);
            streams
                .log(format_args!("note: expectations are checked with `{shown}`, which is unchanged since the run"));
            return (Some(path), cases);
        }
        RecordedCases::Changed(path) => (path, ": its cases file changed since the run"),
        RecordedCases::Unknown(path) => (path, ""),
        RecordedCases::Missing => return (None, Vec::new()),
    };
    let path = shown(&path);
    streams.log(format_args!("note: expectations are not checked{why}; to check them, pass `--cases {path}`"));
    (None, Vec::new())
}

fn write_report(
    request: &Request<'_>,
    options: &CompareOptions,
    cases: Option<&Utf8Path>,
) -> Result<Evaluation, CommandError> {
    // Before the report: a folder without the facts of a shard leaves an earlier report as it is.
    let facts = options.facts.as_deref().map(|folder| read_facts(request, folder)).transpose()?;
    let report = ReportWriter::create(&options.out, request).map_err(report_error)?;
    let report = report.with_verdicts(facts.as_ref().map(ShardFacts::verdicts).unwrap_or_default());
    let pages = options.files.pages(report.cases());
    let report = options.files.apply(report.with_pages(pages))?;
    // Each page is written by the worker that compared its case, which then drops the case.
    let write_case = |case: &CaseComparison<'_>| report.write_case(case);
    let evaluation = match facts {
        Some(facts) => facts.compare(|verdict| pages.includes(verdict), write_case),
        None => counterproof_evaluator::compare(request, write_case),
    };
    let evaluation = evaluation.map_err(|error| match error {
        CompareError::Read(error) => CommandError::io(error),
        CompareError::Sink(error) => report_error(error),
    })?;
    let context = report_context(&evaluation, cases, options.report_url.as_ref());
    report.finish_with(&evaluation, &context).map_err(report_error)?;
    Ok(evaluation)
}

fn read_facts<'a>(request: &'a Request<'a>, folder: &Utf8Path) -> Result<ShardFacts<'a>, CommandError> {
    ShardFacts::read(request, folder).map_err(|error| {
        let hint = match &error {
            ShardFactsError::Runs(_) | ShardFactsError::Read { .. } => return CommandError::io(error),
            ShardFactsError::Empty(_) | ShardFactsError::Missing { .. } => {
                "write them with `counterproof compare --shard K/N --facts DIR`, with the same runs and options"
            }
            ShardFactsError::Foreign(_) => {
                "name the runs, the cases and the configuration that the shards were compared with"
            }
            ShardFactsError::Count { .. } | ShardFactsError::Doubled { .. } => {
                "remove the files that are left from earlier"
            }
            ShardFactsError::Line { .. } | ShardFactsError::Damaged { .. } | ShardFactsError::Version { .. } => {
                "remove the file, and compare its shard again"
            }
        };
        CommandError::usage(error).hint(hint)
    })
}

/// Writes evaluation.json into each run folder.
fn write_back(request: &Request<'_>, evaluation: &Evaluation, streams: &mut Streams) {
    // The evaluation belongs to the run that a confirmation run confirms.
    let is_confirmation = |run: &&ComparedRun| run.reader().run().confirmation.is_some();
    for run in request.baseline.iter().chain(request.new.iter()).filter(|run| !is_confirmation(run)) {
        let path = run.reader().folder().join(EVALUATION_FILE);
        write::remove_leftovers_next_to(&path);
        // A warning and not an error: the report has the evaluation as well, and a baseline is often read-only.
        let written = write::write_json(&path, evaluation, Durability::Synced).map_err(|error| error.to_string());
        let written = written.and_then(|()| streams.copies.put_back(&path).map_err(|error| error.message()));
        if let Err(error) = written {
            streams.warn(format_args!("{error}; pass `--no-write-back` to leave the run folders unchanged"));
        }
    }
}

const MAX_PATH_CHARS: usize = 200;

/// Checks the cases file. Rejects one that contains none of the compared cases, and warns about one that lacks some.
fn check_cases_file(path: &Utf8Path, request: &Request<'_>, streams: &mut Streams) -> Result<(), CommandError> {
    let entries = request.cases.iter().flat_map(|case| case.expected.expect.iter().flatten());
    let drafts = entries.filter(|expect| expect.draft).count();
    if drafts > 0 {
        let drafts = text::count(drafts, "draft expectation", "draft expectations");
        streams.log(format_args!(
            "note: {drafts} in `{path}` not checked: read each one, then remove its `draft` or the expectation"
        ));
    }
    // By case and not by the recorded path: the cases file may have been moved or extended.
    let ids = counterproof_evaluator::pair(&request.baseline, &request.new).map_err(CommandError::io)?;
    let known: HashSet<_> = request.cases.iter().map(|case| &case.id).collect();
    let unknown = ids.iter().filter(|id| !known.contains(id)).count();
    let compared = text::count(ids.len(), "compared case", "compared cases");
    // A few missing cases may be new ones. If all are missing, it is another file.
    if unknown > 0 && unknown == ids.len() {
        return Err(CommandError::usage(format!("`{path}` contains none of the {compared}"))
            .hint("pass the cases of the runs with `--cases`"));
    }
    let asked = request.new.first().reader().run().case_digests.as_ref();
    let is_edited = |case: &&CaseSpec| {
        asked.and_then(|asked| asked.get(&case.id)).is_some_and(|digest| *digest != case.input_digest())
    };
    let edited: Vec<_> = request.cases.iter().filter(is_edited).map(|case| case.id.as_str()).collect();
    if let Some(first) = edited.first() {
        streams.warn(format_args!(
            "`{path}` changed since the new run: the input of {} (such as `{first}`) is not what the agent was asked; run both \
             sides again",
            text::count(edited.len(), "case", "cases")
        ));
    }
    if unknown > 0 {
        streams.warn(format_args!("`{path}` lacks {unknown} of {compared}; their expectations are not checked"));
    }
    Ok(())
}

fn warn_about_runs(request: &Request<'_>, streams: &mut Streams) {
    warn_if_swapped(request, streams);
    for (runs, side) in [(&request.baseline, Side::Baseline), (&request.new, Side::New)] {
        for error in runs.iter().filter_map(ComparedRun::labels_error) {
            streams.warn(format_args!(
                "{error}, so the labels of its run are not used; `counterproof validate` has the reason"
            ));
        }
        for run in runs.iter().map(ComparedRun::reader) {
            warn_about_side(run, side, streams);
            warn_if_unanswered_or_stopped(run, streams);
        }
    }
    for new in request.new.iter().map(ComparedRun::reader) {
        for baseline in request.baseline.iter().map(ComparedRun::reader) {
            warn_about_copies(baseline, new, streams);
        }
    }
}

/// Warns about copies, and notes different runs with one id. The evaluation has a notice on one folder on both sides.
fn warn_about_copies(baseline: &RunReader, new: &RunReader, streams: &mut Streams) {
    let (id, folder, other) = (&new.run().run_id, new.folder(), baseline.folder());
    match RunRelation::compare(baseline, new) {
        RunRelation::Copy => {
            streams.warn(format_args!("`{folder}` is compared with itself: `{other}` is a copy of the same run"));
        }
        // Confirmation runs of both sides have the id of the run that they confirm, and their numbers.
        RunRelation::Different if baseline.run().run_id == *id && baseline.run().confirmation.is_none() => {
            streams.log(format_args!("note: `{other}` and `{folder}` are different runs with the same id, `{id}`"));
        }
        RunRelation::SameFolder | RunRelation::Different => {}
    }
}

fn warn_if_swapped(request: &Request<'_>, streams: &mut Streams) {
    let all = |runs: &SideRuns, side: Side| runs.iter().all(|run| run.reader().run().version == side);
    if all(&request.baseline, Side::New) && all(&request.new, Side::Baseline) {
        streams.warn(
            "the runs look swapped: the first is a `new` run and the second a `baseline` run, so improvements will be reported \
             as regressions",
        );
    }
}

fn warn_if_unanswered_or_stopped(run: &RunReader, streams: &mut Streams) {
    let (folder, document) = (run.folder(), run.run());
    if document.confirmation.is_some() {
        // A confirmation run has cases that look worse, so failures are expected. A stopped one is reported when it is
        // found.
        return;
    }
    if let Some(stats) = &document.stats
        && stats.cases_failed.is_some_and(|failed| failed.get() > 0 && Some(failed) == stats.cases_total)
    {
        streams.warn(format_args!("every case of the run `{folder}` failed"));
    }
    if document.stats.is_none() || document.extra.get("interrupted").is_some_and(|value| value == true) {
        streams.warn(format_args!("the run `{folder}` is incomplete: it was stopped"));
    }
}
