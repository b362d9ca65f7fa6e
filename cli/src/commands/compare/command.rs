//! `counterproof compare`: two run folders in, a report and an exit code out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::env;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::{Exit, Side};
use counterproof_evaluator::comparison::evaluation_text;
use counterproof_evaluator::comparison::{self, CompareError, Request};
use counterproof_evaluator::gate::{self, Limit, Measure};
use counterproof_evaluator::judge::Expectations;
use counterproof_evaluator::load::ComparedRun;
use counterproof_evaluator::load::SideRuns;
use counterproof_evaluator::report::{PageSelection, ReportError, ReportUrl, ReportWriter};
use counterproof_evaluator::values::text;
use counterproof_store::write::{self, Durability};
use counterproof_store::{EVALUATION_FILE, Latest, RUN_FILE, ReadError, RunReader};

use crate::command_error::CommandError;
use crate::config::Config;
use crate::report_context::{self, STEP_SUMMARY};
use crate::streams::Streams;
use crate::{cases_file, comparison_summary};

/// Compare a new run with a baseline, write a report, and say whether the new version may go out.
///
/// The report is a folder that opens from disk: index.html, a page for each case, evaluation.json, and beside them summary.md for
/// a pull request, junit.xml for a CI and results.sarif for a code host. Where `GITHUB_STEP_SUMMARY` names a file, as in GitHub
/// Actions, the summary is added to it.
///
/// Exit code 0: the gate passed. 1: it failed, or there was too little to compare.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run folder that is known to be good [default: the latest below RUNS/baseline, with its repeats]
    #[arg(value_name = "BASELINE", requires = "new")]
    pub(crate) baseline: Option<Utf8PathBuf>,

    /// The run folder under test [default: the latest below RUNS/new, with its repeats]
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<Utf8PathBuf>,

    /// Run folders that are known to be good: repeats, from which noise is learnt
    #[arg(long = "baseline", value_name = "DIR", num_args = 1.., conflicts_with = "baseline")]
    pub(crate) baseline_runs: Vec<Utf8PathBuf>,

    /// Run folders under test: repeats
    #[arg(long = "new", value_name = "DIR", num_args = 1.., conflicts_with = "new")]
    pub(crate) new_runs: Vec<Utf8PathBuf>,

    /// Where the runs are, when no folders are named
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    pub(crate) runs: Utf8PathBuf,

    /// The cases that were asked: their titles are shown, and their expectations judged on both sides
    #[arg(long, value_name = "PATH")]
    pub(crate) cases: Option<Utf8PathBuf>,

    /// Where the report goes
    #[arg(long, value_name = "DIR", default_value = "report")]
    pub(crate) out: Utf8PathBuf,

    /// Which cases get a page of their own in the report
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Pages::All)]
    pub(crate) pages: Pages,

    /// Where the report will be found, for the links of summary.md: its folder, ending with `/`, or a page that has it
    #[arg(long, value_name = "URL")]
    pub(crate) report_url: Option<ReportUrl>,

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

/// Characters of a path that one line names.
const PATH_NAMED: usize = 200;

/// Which cases get a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pages {
    /// Every case
    All,
    /// The cases that moved: all but the unchanged and the noisy
    Changed,
    /// None: the report is its index and what stands beside it
    None,
}

impl From<Pages> for PageSelection {
    fn from(pages: Pages) -> Self {
        match pages {
            Pages::All => PageSelection::All,
            Pages::Changed => PageSelection::Changed,
            Pages::None => PageSelection::None,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut config = Config::load(args.config.as_deref())?;
    if args.allow_unpaired {
        config.gate = config.gate.with(Measure::Unpaired, Limit::None);
    }
    if let (Some(scope), None) = (config.gate.needs_cases(), &args.cases) {
        return Err(CommandError::usage(format!(
            "the gate has limits for the {scope}, and only the cases file tells which cases those are"
        ))
        .hint("name the cases that the runs were asked with `--cases`"));
    }
    let evaluation = compare(args, config, streams)?;
    if let Some(path) = env::var(STEP_SUMMARY).ok().filter(|path| !path.is_empty()) {
        let around = report_context::of(&evaluation, None, args.report_url.as_ref());
        let added = report_context::append_to_step(path.as_str().into(), &evaluation, &around, args.pages.into());
        if let Err(error) = added {
            streams.note(format_args!("warning: the step has no summary of this: {error}"));
        }
    }
    streams.say(comparison_summary::render(&evaluation))?;
    streams.say(format_args!("report: {}", args.out.join("index.html")))?;
    Ok(if evaluation.gate.passed { Exit::Done } else { Exit::Findings })
}

/// Compares, and writes everything that is to be written.
pub(crate) fn compare(args: &Args, config: Config, streams: &mut Streams) -> Result<Evaluation, CommandError> {
    let cases = match &args.cases {
        Some(path) => cases_file::load(path, streams)?.cases,
        None => Vec::new(),
    };
    let request = Request {
        baseline: side(args, Side::Baseline, streams)?,
        new: side(args, Side::New, streams)?,
        cases: &cases,
        expectations: Expectations::compile(&cases).map_err(CommandError::usage)?,
        rules: config.rules,
        limits: config.gate,
        thresholds: config.statistics,
    };
    warn(&request, streams);
    expect_cases(args, &request, streams)?;
    let evaluation = write_report(&request, args)?;
    for unknown in gate::unknown_scopes(&request.limits, &cases, &evaluation.cases) {
        streams.note(format_args!("warning: {}", evaluation_text::unknown_scope(&unknown)));
    }
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
    let all = |runs: &SideRuns, side: Side| runs.iter().all(|run| run.reader().run().version == side);
    if all(&request.baseline, Side::New) && all(&request.new, Side::Baseline) {
        streams
            .note("warning: the sides are swapped, and what is told as a rise is a fall: the baseline is named first");
    }
    let (baseline, new) = (request.baseline.iter(), request.new.iter());
    let runs = baseline.map(|run| (run, Side::Baseline)).chain(new.map(|run| (run, Side::New)));
    for (run, side) in runs {
        let (folder, document) = (run.reader().folder(), run.reader().run());
        warn_of_other_side(run.reader(), side, streams);
        if let Some(stats) = &document.stats
            && stats.cases_failed.is_some_and(|failed| failed.get() > 0 && Some(failed) == stats.cases_total)
        {
            streams.note(format_args!("warning: no case of the run `{folder}` was answered"));
        }
        if document.stats.is_none() || document.extra.get("interrupted").is_some_and(|value| value == true) {
            streams.note(format_args!("warning: the run `{folder}` was stopped before its end"));
        }
    }
    for new in request.new.iter().map(ComparedRun::reader) {
        let is_same = |baseline: &RunReader| {
            // What was accepted as the baseline is a copy of a run, under the same id.
            let (of, id) = (baseline.run(), &new.run().run_id);
            baseline.folder() == new.folder()
                || of.run_id == *id
                || of.accepted.as_ref().is_some_and(|accepted| accepted.from_run_id == *id)
        };
        if request.baseline.iter().map(ComparedRun::reader).any(is_same) {
            streams.note(format_args!("warning: `{}` is compared with itself", new.folder()));
        }
    }
}

/// Says where a run is taken for the other side than it says of itself.
pub(crate) fn warn_of_other_side(run: &RunReader, side: Side, streams: &mut Streams) {
    let (folder, is) = (run.folder(), run.run().version);
    if is != side {
        streams.note(format_args!("warning: `{folder}` is a run of side {is}, and is compared as {side}"));
    }
}

/// Says where only some of the repeats of a run are taken.
fn warn_of_other_repeats(runs: &[RunReader], side: Side, streams: &mut Streams) {
    let mut taken: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    // One that stops when it has decided may have fewer than it says.
    for run in runs.iter().map(RunReader::run).filter(|run| run.until_decided.is_none()) {
        if let (Some(group), Some(repeats)) = (&run.group_id, run.repeats) {
            taken.entry(group).or_insert((0, repeats.get())).0 += 1;
        }
    }
    for (group, (count, of)) in taken {
        if count < of {
            streams.note(format_args!("warning: of the {of} repeats of `{group}`, {count} are compared as {side}"));
        }
    }
}

/// A cases file that is not the one that was asked would make every verdict milder without a word.
fn expect_cases(args: &Args, request: &Request<'_>, streams: &mut Streams) -> Result<(), CommandError> {
    let Some(path) = &args.cases else {
        if let Some(cases) = cases_of(&request.new) {
            let cases = text::one_line(cases.as_str(), PATH_NAMED);
            streams.note(format_args!(
                "note: no expectation is judged; new was asked with `{cases}`, which `--cases` names"
            ));
        }
        return Ok(());
    };
    let ids =
        comparison::pair(&request.baseline, &request.new).map_err(|error| compare_error(CompareError::Read(error)))?;
    let known: HashSet<_> = request.cases.iter().map(|case| &case.id).collect();
    let unknown = ids.iter().filter(|id| !known.contains(id)).count();
    let compared = text::count(ids.len(), "compared case", "compared cases");
    if unknown > 0 && unknown == ids.len() {
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

/// The cases file that the first of the runs was asked with, as far as it is still there. It is only told and never read unasked:
/// a run folder comes from anywhere, and shall not choose which files are opened.
fn cases_of(runs: &SideRuns) -> Option<Utf8PathBuf> {
    let run = runs.iter().next()?.reader();
    let path = run.folder().join(&run.run().cases_path).canonicalize_utf8().ok()?;
    let here = Utf8Path::new(".").canonicalize_utf8().ok()?;
    Some(path.strip_prefix(&here).map_or_else(|_| path.clone(), Utf8Path::to_owned))
}

fn write_report(request: &Request<'_>, args: &Args) -> Result<Evaluation, CommandError> {
    let report = ReportWriter::create(&args.out, request).map_err(report_error)?.with_pages(args.pages.into());
    let evaluation = comparison::compare(request, |case| report.write_case(case)).map_err(compare_error)?;
    let around = report_context::of(&evaluation, args.cases.as_deref(), args.report_url.as_ref());
    report.finish_within(&evaluation, &around).map_err(report_error)?;
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

pub(crate) fn report_error(error: ReportError) -> CommandError {
    match error {
        ReportError::NotAReport(_) | ReportError::RunInside { .. } => {
            CommandError::usage(error).hint("choose another folder with `--out`")
        }
        ReportError::Read(_) | ReportError::Folder { .. } | ReportError::Write(_) | ReportError::Render { .. } => {
            CommandError::io(error)
        }
    }
}

/// The runs of a side: those that are named, or the latest and its repeats.
fn side(args: &Args, side: Side, streams: &mut Streams) -> Result<SideRuns, CommandError> {
    let (one, several) = match side {
        Side::Baseline => (&args.baseline, &args.baseline_runs),
        Side::New => (&args.new, &args.new_runs),
    };
    let folders: Vec<_> = one.iter().chain(several).collect();
    let runs = if folders.is_empty() {
        latest(&args.runs, side, streams)
    } else {
        folders.iter().map(|folder| RunReader::open(folder)).collect()
    };
    let runs = runs.map_err(|error| read_error(error, side))?;
    let mut seen = HashSet::new();
    for run in &runs {
        let folder = run.folder().canonicalize_utf8().unwrap_or_else(|_| run.folder().to_owned());
        if !seen.insert(folder) {
            let message = format!("`{}` is named twice as a run of {side}", run.folder());
            return Err(CommandError::usage(message).hint("a run is evidence once: name each folder once"));
        }
    }
    let mut ids = HashMap::new();
    for run in &runs {
        if let Some(other) = ids.insert(&run.run().run_id, run.folder()) {
            let message = format!("`{}` and `{other}` are one run, `{}`", run.folder(), run.run().run_id);
            return Err(CommandError::usage(message).hint("a run is evidence once: name one of its copies"));
        }
    }
    warn_of_other_repeats(&runs, side, streams);
    let runs = runs.into_iter().map(ComparedRun::new).collect();
    SideRuns::of_all(runs).ok_or_else(|| CommandError::usage(format!("no run of {side} is named")))
}

/// The latest run of a side and those it is a repeat of, the latest last.
fn latest(runs: &Utf8Path, side: Side, streams: &mut Streams) -> Result<Vec<RunReader>, ReadError> {
    let latest = RunReader::latest(runs, side)?;
    for error in &latest.skipped {
        let chosen = latest.run.folder();
        streams.note(format_args!("warning: {error}, so `{chosen}` may not be the latest run"));
    }
    // A run under test is one of many by its nature, and the latest is meant. Which baseline it is held against decides the verdicts.
    if side == Side::Baseline && !latest.others.is_empty() {
        streams.note(left_out(&latest));
    }
    let mut repeats = latest.repeats;
    repeats.push(latest.run);
    Ok(repeats)
}

/// Says which baseline is taken where nobody named one, and that there are others.
fn left_out(latest: &Latest) -> String {
    let repeats = match latest.repeats.len() {
        0 => String::new(),
        repeats => format!(" with its {}", text::count(repeats, "repeat", "repeats")),
    };
    let others = text::count(latest.others.len(), "other is not", "others are not");
    format!(
        "note: of the baselines in `{}` the latest is taken, `{}`{repeats}; {others}: `--baseline DIR…` names which to take",
        latest.run.lies_in(),
        latest.run.folder()
    )
}

/// What to do where a run is there in parts only.
pub(crate) const MERGE_FIRST: &str = "`counterproof merge SHARD… --out RUN` puts a run together again";

pub(crate) fn read_error(error: ReadError, side: Side) -> CommandError {
    match &error {
        ReadError::NoRun { .. } => CommandError::usage(error).hint(format!(
            "`counterproof run --side {side} …` makes one; or name two run folders: `counterproof compare BASELINE NEW`"
        )),
        ReadError::OnlyShards { .. } => CommandError::usage(error).hint(MERGE_FIRST),
        ReadError::Io { path, .. } if error.is_missing() && path.file_name() == Some(RUN_FILE) => {
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
    }
}
