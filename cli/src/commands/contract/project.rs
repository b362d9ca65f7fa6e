//! The store and the project of a command, how its result is printed, and texts of several commands.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_contracts::git::Protected;
use counterproof_contracts::store::{Editor, Note, NoteKind};
use counterproof_contracts::{Actor, Details, Store, Transition};
use counterproof_export::contracts::CASES_FILE;
use counterproof_store::line_log::{LockOptions, Repair};
use counterproof_store::write;
use jiff::{Timestamp, Unit};
use serde::Serialize;
use serde_json::Value;

use super::run_reporter::Failure;
use crate::resume_command;
use crate::streams::Streams;

/// The store of a project.
pub(super) const DEFAULT_STORE: &str = ".counterproof/contracts.jsonl";

/// What all subcommands know.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) store: Utf8PathBuf,
    pub(super) is_json: bool,
}

impl Project {
    /// Returns the start of a command line with the same store, as a shell reads it.
    pub(super) fn command(&self) -> String {
        if self.store == DEFAULT_STORE {
            return "counterproof contract".to_owned();
        }
        format!("counterproof contract --store {}", resume_command::path(&self.store))
    }

    /// Opens the store for reading. Warns about a torn last line.
    pub(super) fn open(&self, streams: &mut Streams) -> Result<Store, Failure> {
        let store = Store::new(&self.store);
        // Not an error, because an empty store has valid answers. The path may still be wrong.
        if !self.store.exists() {
            streams.warn(format_args!("the store `{}` does not exist yet", self.store));
        }
        let torn = store.torn_bytes()?;
        if torn > 0 {
            streams.warn(format_args!(
                "`{}` ends with {torn} bytes of an unfinished line; the next change moves them to a file of their own",
                self.store
            ));
        }
        Ok(store)
    }

    /// Opens the store for changes, and creates its folder.
    pub(super) fn open_for_changes(&self) -> Result<Store, Failure> {
        if let Some(folder) = self.store.parent().filter(|folder| !folder.as_str().is_empty()) {
            write::create_folder(folder).map_err(Failure::io)?;
        }
        Ok(Store::new(&self.store))
    }

    /// Prints a result: as JSON, or as text.
    pub(super) fn print(
        &self,
        streams: &mut Streams,
        document: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.is_json {
            streams.print_document(&crate::streams::to_json(document))?;
        } else {
            streams.print_line(text().trim_end())?;
        }
        Ok(())
    }
}

/// Locks a store for changes. Warns about a torn last line that was repaired.
pub(super) fn edit<'s>(store: &'s Store, streams: &mut Streams) -> Result<Editor<'s>, Failure> {
    let editor = store.edit(&LockOptions::default())?;
    match editor.repair() {
        None => {}
        Some(Repair::Completed { bytes }) => {
            streams.warn(format_args!("`{}`: the last line ({bytes} bytes) had no newline; added it", store.path()));
        }
        Some(Repair::Moved { bytes, to }) => streams.warn(format_args!(
            "`{}`: a process died while it wrote the last line; moved its {bytes} bytes to `{to}`",
            store.path()
        )),
    }
    Ok(editor)
}

/// Returns the time, with the precision that the store has.
pub(super) fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}

/// Returns the actor of a person's decision: the given one, or the user of this process.
pub(super) fn person(given: Option<&Actor>) -> Result<Actor, Failure> {
    if let Some(actor) = given {
        return Ok(actor.clone());
    }
    // `LOGNAME` is the name in POSIX, and `USERNAME` the one on Windows.
    let user = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    user.filter(|user| !user.trim().is_empty())
        .map(Actor::Human)
        .ok_or_else(|| Failure::refused("usage", "the name of the person is unknown").hint("pass `--actor human:NAME`"))
}

/// Parses the name of an agent.
pub(super) fn agent_name(name: &str) -> Result<Actor, String> {
    format!("agent:{name}").parse().map_err(|_| "a name has 1 to 128 bytes and no control characters".to_owned())
}

/// Returns the absolute path of a working directory.
pub(super) fn existing_folder(path: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let folder = path.canonicalize_utf8().map_err(|error| {
        Failure::refused("usage", format!("cannot use the working directory `{path}`: {error}"))
            .hint("pass an existing folder with `--workdir`")
    })?;
    if folder.is_dir() {
        return Ok(folder);
    }
    let message = format!("the working directory `{folder}` is not a folder");
    Err(Failure::refused("usage", message).hint("pass a folder with `--workdir`"))
}

/// The default folder of all runs.
pub(super) const RUNS: &str = "runs";

/// The folder of the program in a project.
const OWN_FOLDER: &str = ".counterproof";

/// Returns the paths that belong to the program and not to the work: the store, its evidence, and the run folders in `out`.
pub(super) fn protected(store: &Utf8Path, out: &Utf8Path) -> Protected {
    let mut protected = Protected::default();
    protected.store(store);
    // Other commands keep files there too. A store in another folder may be next to files of the work.
    if let Some(folder) = store.parent().filter(|folder| folder.file_name() == Some(OWN_FOLDER)) {
        protected.folder(folder);
    }
    for side in [Side::Baseline, Side::New] {
        protected.folder(&out.join(side.as_str()));
    }
    protected.file(&out.join(CASES_FILE));
    protected
}

/// Returns true for `-`, which means standard input.
pub(super) fn is_standard_input(path: &Utf8Path) -> bool {
    path == "-"
}

/// Returns a transition as one line.
pub(super) fn transition(transition: &Transition) -> String {
    let Transition { from, to, at, actor, reason, owner, .. } = transition;
    let owner = owner.as_ref().map_or_else(String::new, |owner| format!(" (owner {owner})"));
    format!("{at}  {from} → {to}{owner}  by {actor}: {reason}")
}

/// Returns a note as one line.
pub(super) fn note(note: &Note) -> String {
    let kind = match note.kind {
        NoteKind::ApprovalRequested => "approval requested",
        NoteKind::NotRolledBack => "not rolled back",
    };
    format!("{}  {kind}  by {}: {}", note.at, note.actor, note.reason)
}

/// Returns the evidence of a transition or a note as lines.
pub(super) fn details(details: &Details) -> Vec<String> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let verification = &details.get("verification").cloned().unwrap_or_default();
    let mut lines = texts(&verification["reasons"]);
    lines.extend(texts(&verification["evidence"]).into_iter().map(|file| format!("evidence: {file}")));
    let rollback = &details.get("rollback").cloned().unwrap_or_default();
    lines.extend(rollback["way_back"].as_str().map(|way| format!("restore with: {way}")));
    lines
}
