//! Opens the runs that a command line selects: named run folders, or the latest run of a side with its repeats.

use std::collections::{BTreeMap, HashMap, HashSet};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Side, Sides};
use counterproof_evaluator::{ComparedRun, SideRuns, text};
use counterproof_store::{Latest, RUN_FILE, ReadError, RunReader};

use crate::command_error::CommandError;
use crate::confirmations;
use crate::run_identity::RunIdentity;
use crate::shell;
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
            Self::Folders(folders) => open_folders(folders, side)?,
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
    confirmations::add(&mut runs, streams);
    let compared = |runs: Vec<RunReader>, side| side_runs(runs.into_iter().map(ComparedRun::new).collect(), side);
    Ok(Sides { baseline: compared(runs.baseline, Side::Baseline)?, new: compared(runs.new, Side::New)? })
}

/// Opens named run folders. Rejects a folder or a run that is named twice.
pub(crate) fn open_named(folders: &[Utf8PathBuf], side: Side) -> Result<Vec<ComparedRun>, CommandError> {
    Ok(open_folders(folders, side)?.into_iter().map(ComparedRun::new).collect())
}

/// Makes opened runs the runs of a side.
pub(crate) fn side_runs(runs: Vec<ComparedRun>, side: Side) -> Result<SideRuns, CommandError> {
    SideRuns::new(runs).ok_or_else(|| CommandError::usage(format!("no run of side {side} was named")))
}

fn open_folders(folders: &[Utf8PathBuf], side: Side) -> Result<Vec<RunReader>, CommandError> {
    let runs = folders.iter().map(|folder| RunReader::open(folder)).collect::<Result<Vec<_>, _>>();
    let runs = runs.map_err(|error| read_error(error, side))?;
    reject_duplicates(&runs, side)?;
    Ok(runs)
}

/// Rejects a run that is named twice, by folder or as a copy: counted twice, one observation would look like two.
fn reject_duplicates(runs: &[RunReader], side: Side) -> Result<(), CommandError> {
    let mut folders = HashSet::new();
    let mut ids = HashMap::new();
    for run in runs {
        let folder = run.folder();
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
    if RunIdentity::compare(run, other) == RunIdentity::Different {
        return CommandError::usage(format!(
            "`{folder}` and `{other_folder}` are different runs with the same id, `{id}`"
        ))
        .hint("name one of them; to compare both, run the cases again with an id of their own (`--run-id`)");
    }
    CommandError::usage(format!("`{folder}` and `{other_folder}` are copies of the same run, `{id}`"))
        .hint("name one of the copies: a run counts once")
}

/// Finds the latest run of a side. Warns about run folders that could not be read, since one of them may be later, and names
/// baselines without answers.
pub(crate) fn latest(runs: &Utf8Path, side: Side, streams: &mut Streams) -> Result<Latest, CommandError> {
    let latest = RunReader::latest(runs, side).map_err(|error| read_error(error, side))?;
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
            "note: skipping the newer baseline `{}`: no case has an answer. You can remove the folder",
            run.folder()
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
    Ok(repeats)
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

/// Warns if only some repeats of a group are selected.
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
        ReadError::OnlyShards { .. } => {
            CommandError::usage(error).hint("merge the shards with `counterproof merge SHARD… --out RUN`")
        }
        ReadError::Io { path, .. } => match missing_run_hint(path) {
            Some(hint) => CommandError::io(error).hint(hint),
            None => CommandError::io(error),
        },
        ReadError::Document { path, .. } => {
            let hint = format!("list all violations with `counterproof validate {}`", shell::path(path));
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
    let entries = folder.read_dir_utf8().ok()?.filter_map(Result::ok);
    entries.map(|entry| entry.path().to_owned()).filter(|path| path.join(RUN_FILE).is_file()).max()
}
