//! Opens the runs that a command line selects: named run folders, or the latest run of a side with its repeats and
//! confirmations.

use std::collections::{BTreeMap, HashMap, HashSet};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Count, RunId, Side, Sides};
use counterproof_evaluator::{ComparedRun, SideRuns, text};
use counterproof_store::{Latest, RUN_FILE, ReadError, RunReader, RunRelation};

use crate::command_error::CommandError;
use crate::resume_command;
use crate::streams::Streams;

/// The runs of one side, as selected on the command line.
#[derive(Debug, Clone)]
pub(crate) enum RunSelection {
    /// These run folders.
    Folders(Vec<Utf8PathBuf>),
    /// The latest run of the side, with its repeats.
    Latest {
        /// The folder of all runs.
        runs: Utf8PathBuf,
        /// The option of the command that selects runs of the baseline, such as `--baseline`.
        baseline_option: &'static str,
    },
}

impl RunSelection {
    /// Opens the selected runs of a side. Logs which runs were chosen, and which repeats are missing.
    pub(crate) fn open(&self, side: Side, streams: &mut Streams) -> Result<Vec<RunReader>, CommandError> {
        let runs = match self {
            Self::Folders(folders) => open_folders(folders, side, streams)?,
            Self::Latest { runs, baseline_option } => latest_with_repeats(runs, baseline_option, side, streams)?,
        };
        warn_about_missing_repeats(&runs, side, streams);
        Ok(runs)
    }
}

/// Opens the selected runs of both sides, with the confirmation runs of new.
pub(crate) fn open_sides(
    selected: Sides<&RunSelection>,
    streams: &mut Streams,
) -> Result<Sides<SideRuns>, CommandError> {
    let baseline = selected.baseline.open(Side::Baseline, streams)?;
    let new = selected.new.open(Side::New, streams)?;
    let mut runs = Sides { baseline, new };
    add_confirmations(&mut runs, streams);
    let compared = |runs: Vec<RunReader>, side| side_runs(runs.into_iter().map(ComparedRun::new).collect(), side);
    Ok(Sides { baseline: compared(runs.baseline, Side::Baseline)?, new: compared(runs.new, Side::New)? })
}

/// Opens named run folders. Rejects a folder or a run that is named twice.
pub(crate) fn open_named(
    folders: &[Utf8PathBuf],
    side: Side,
    streams: &mut Streams,
) -> Result<Vec<ComparedRun>, CommandError> {
    Ok(open_folders(folders, side, streams)?.into_iter().map(ComparedRun::new).collect())
}

pub(crate) fn side_runs(runs: Vec<ComparedRun>, side: Side) -> Result<SideRuns, CommandError> {
    SideRuns::new(runs).ok_or_else(|| CommandError::usage(format!("no run of side {side} was named")))
}

fn open_folders(folders: &[Utf8PathBuf], side: Side, streams: &mut Streams) -> Result<Vec<RunReader>, CommandError> {
    let folders = folders.iter().map(|folder| streams.copies.run(folder)).collect::<Result<Vec<_>, _>>()?;
    let runs = folders.iter().map(|folder| RunReader::open(folder)).collect::<Result<Vec<_>, _>>();
    let runs = runs.map_err(|error| read_error(error, side))?;
    reject_duplicates(&runs, side)?;
    Ok(runs)
}

/// Rejects a run that is named twice, by folder or as a copy.
fn reject_duplicates(runs: &[RunReader], side: Side) -> Result<(), CommandError> {
    // Counted twice, one observation would look like two.
    let mut folders = HashSet::new();
    let mut ids = HashMap::new();
    for run in runs {
        let folder = run.folder();
        // Two paths may lead to one folder.
        if !folders.insert(folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned())) {
            let message = format!("`{folder}` is named twice as a run of side {side}");
            return Err(CommandError::usage(message).hint("name each run folder once: a run counts once"));
        }
        if let Some(other) = ids.insert(&run.run().run_id, run) {
            return Err(same_id(run, other));
        }
    }
    Ok(())
}

/// The error for two runs of a side with the same id, which the evaluation cannot tell apart.
fn same_id(run: &RunReader, other: &RunReader) -> CommandError {
    let (id, folder, other_folder) = (&run.run().run_id, run.folder(), other.folder());
    if RunRelation::compare(run, other) == RunRelation::Different {
        return CommandError::usage(format!(
            "`{folder}` and `{other_folder}` are different runs with the same id, `{id}`"
        ))
        .hint("name one of them; to compare both, run the cases again under another ID (`--run-id`)");
    }
    CommandError::usage(format!("`{folder}` and `{other_folder}` are copies of the same run, `{id}`"))
        .hint("name one of the copies: a run counts once")
}

/// Finds the latest run of a side. Warns about run folders that could not be read, and names baselines without answers.
pub(crate) fn latest(runs: &Utf8Path, side: Side, streams: &mut Streams) -> Result<Latest, CommandError> {
    let runs = streams.copies.latest(runs, side)?;
    let latest = RunReader::latest(&runs, side).map_err(|error| read_error(error, side))?;
    // A folder that could not be read may be the latest run.
    for error in &latest.skipped {
        streams.warn(format_args!("{error}; `{}` may not be the latest run", latest.run.folder()));
    }
    if side == Side::Baseline {
        log_unanswered(&latest, streams);
    }
    Ok(latest)
}

/// Names the newer baselines that were skipped because they have no answers; warns if the chosen one has none either.
pub(crate) fn log_unanswered(latest: &Latest, streams: &mut Streams) {
    for run in &latest.unanswered {
        streams.log(format_args!(
            "note: skipping the newer baseline `{}`: {}. You can remove the folder",
            run.folder(),
            if run.has_answers() { "its run failed or was stopped" } else { "no case has an answer" }
        ));
    }
    if !latest.run.has_answers() && !latest.repeats.iter().any(RunReader::has_answers) {
        streams.warn(format_args!(
            "no case has an answer in the latest baseline, `{}`. You can remove the folder, and run the baseline again",
            latest.run.folder()
        ));
    }
}

/// Opens the latest run of a side and its repeats, the latest last.
fn latest_with_repeats(
    runs: &Utf8Path,
    baseline_option: &str,
    side: Side,
    streams: &mut Streams,
) -> Result<Vec<RunReader>, CommandError> {
    let latest = latest(runs, side, streams)?;
    // Several new runs are normal and the latest is the one to test. The choice of a baseline, however, decides the verdicts.
    if side == Side::Baseline && !latest.others.is_empty() {
        streams.log(chosen_baseline(&latest, baseline_option));
    }
    let mut repeats = latest.repeats;
    repeats.push(latest.run);
    repeats.into_iter().map(|run| streams.copies.reader(run)).collect()
}

/// Names the baseline that was chosen among several, and the option that selects others.
fn chosen_baseline(latest: &Latest, option: &str) -> String {
    let repeats = match latest.repeats.len() {
        0 => String::new(),
        repeats => format!(" with its {}", text::count(repeats, "repeat", "repeats")),
    };
    format!(
        "note: using the latest baseline in `{}`, `{}`{repeats}; ignoring {}. Select others with `{option} DIR…`",
        latest.run.parent_folder(),
        latest.run.folder(),
        text::count(latest.others.len(), "other", "others")
    )
}

/// Warns if a run was recorded for the other side than the one it is used for.
pub(crate) fn warn_about_side(run: &RunReader, side: Side, streams: &mut Streams) {
    let recorded = run.run().version;
    if recorded != side {
        streams.warn(format_args!("`{}` is a {recorded} run, but is used as {side}", run.folder()));
    }
}

fn warn_about_missing_repeats(runs: &[RunReader], side: Side, streams: &mut Streams) {
    let mut groups: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for run in runs.iter().map(RunReader::run) {
        if let (Some(group), Some(repeats)) = (&run.group_id, run.repeats) {
            groups.entry(group).or_insert((0, repeats.get())).0 += 1;
        }
    }
    for (group, (selected, total)) in groups {
        if selected < total {
            streams.warn(format_args!("only {selected} of {total} repeats of `{group}` are compared as {side}"));
        }
    }
}

/// Maps an unreadable run to an error with a remedy.
pub(crate) fn read_error(error: ReadError, side: Side) -> CommandError {
    match &error {
        ReadError::NoRun { .. } => CommandError::usage(error)
            .hint(format!("create one with `counterproof run --side {side} …`, or pass the run folders explicitly")),
        ReadError::OnlyFailed { .. } => {
            CommandError::usage(error).hint(format!("create a complete one with `counterproof run --side {side} …`"))
        }
        ReadError::OnlyShards { .. } => {
            CommandError::usage(error).hint("merge the shards with `counterproof merge SHARD… --out RUN`")
        }
        ReadError::Io { path, .. } => match missing_run_hint(path) {
            Some(hint) => CommandError::io(error).hint(hint),
            None => CommandError::io(error),
        },
        ReadError::Document { path, .. } => {
            let hint = format!("list all violations with `counterproof validate {}`", resume_command::path(path));
            CommandError::io(error).hint(hint)
        }
    }
}

/// Explains why the run.json at `path` could not be read; `None` if its folder looks like a run folder, or `path` is another file.
pub(crate) fn missing_run_hint(path: &Utf8Path) -> Option<String> {
    if path.file_name() != Some(RUN_FILE) || path.exists() {
        return None;
    }
    let folder = path.parent()?;
    Some(if folder.is_file() {
        format!("`{folder}` is a file; pass the run folder that contains it")
    } else if !folder.exists() {
        format!("`{folder}` does not exist; a run folder has the path RUNS/SIDE/RUN_ID, such as runs/new/build-1234")
    } else if let Some(run) = newest_run_in(folder) {
        format!("`{folder}` contains run folders; did you mean `{run}`?")
    } else {
        format!("`{folder}` is not a run folder: it contains no run.json")
    })
}

/// Returns the run folder directly below `folder` whose name sorts last, which is the newest if the IDs sort by time.
fn newest_run_in(folder: &Utf8Path) -> Option<Utf8PathBuf> {
    // A hint is best effort: without it, the error is still complete.
    let entries = folder.read_dir_utf8().ok()?.filter_map(Result::ok);
    entries.map(|entry| entry.path().to_owned()).filter(|path| path.join(RUN_FILE).is_file()).max()
}

/// Adds the confirmation runs of the new runs to both sides. Adds none if confirmation runs were named explicitly.
pub(crate) fn add_confirmations(runs: &mut Sides<Vec<RunReader>>, streams: &mut Streams) {
    // Confirmation runs that are named are a choice of the runs that count.
    if runs.baseline.iter().chain(&runs.new).any(|run| run.run().confirmation.is_some()) {
        return;
    }
    let compared: Vec<RunId> = runs.baseline.iter().map(|run| run.run().run_id.clone()).collect();
    // Only new runs are confirmed. One of the baseline may be compared as new.
    let confirmed: Vec<RunReader> = runs.new.iter().filter(|run| run.run().version == Side::New).cloned().collect();
    for run in confirmed {
        let id = &run.run().run_id;
        let parent = run.parent_folder();
        let mut of_new = complete(RunReader::confirmations(&parent, id), streams);
        let mut of_baseline = baseline_folder(&run)
            .map(|folder| complete(RunReader::confirmations(&folder, id), streams))
            .unwrap_or_default();
        // Runs of the agent behind another baseline say nothing about this one.
        of_baseline.retain(|run| is_against(run, &compared));
        if of_new.is_empty() && of_baseline.is_empty() {
            continue;
        }
        let count = text::count(of_new.len(), "confirmation run", "confirmation runs");
        let again = match of_baseline.len() {
            0 => String::new(),
            runs => format!(", and {runs} of the baseline"),
        };
        streams.log(format_args!("note: judging the flipped cases with {count} of `{id}`{again}"));
        runs.new.append(&mut of_new);
        runs.baseline.append(&mut of_baseline);
    }
}

/// Returns the folder of the baseline runs next to the folder of a new run, `RUNS/baseline` for `RUNS/new/ID`.
fn baseline_folder(run: &RunReader) -> Option<Utf8PathBuf> {
    // An absolute path, because a relative one may not show its parents.
    let folder = run.folder().canonicalize_utf8().ok()?;
    let side = folder.parent()?;
    (side.file_name() == Some(Side::New.as_str())).then(|| side.with_file_name(Side::Baseline.as_str()))
}

/// Drops runs that were stopped. Their missing cases would count as missing answers.
fn complete(mut runs: Vec<RunReader>, streams: &mut Streams) -> Vec<RunReader> {
    runs.retain(|run| {
        let document = run.run();
        let is_complete =
            document.stats.is_some() && document.extra.get("interrupted").is_none_or(|value| value != true);
        if !is_complete {
            streams.warn(format_args!("ignoring the confirmation run `{}`: it was stopped", run.folder()));
        }
        is_complete
    });
    // A confirmation that ends early has fewer runs than planned if no case needs more.
    let fixed =
        runs.iter().filter_map(|run| run.run().confirmation.as_ref().filter(|run| run.ends_early != Some(true)));
    let planned = fixed.filter_map(|confirmation| confirmation.count).map(Count::get).max();
    if let (Some(planned), Some(first)) = (planned.filter(|planned| *planned > runs.len() as u64), runs.first()) {
        let (found, side) = (runs.len(), first.run().version);
        let of = first.run().confirmation.as_ref().map(|confirmation| confirmation.of.as_str()).unwrap_or_default();
        streams.warn(format_args!("found only {found} of {planned} confirmation runs of `{of}` as {side}"));
    }
    runs
}

/// Reports whether the cases of a confirmation run flipped against one of these baseline runs.
fn is_against(run: &RunReader, baseline: &[RunId]) -> bool {
    let against = run.run().confirmation.as_ref().map(|confirmation| confirmation.against.as_slice());
    against.is_none_or(|against| against.is_empty() || against.iter().any(|id| baseline.contains(id)))
}
