//! What is wrong with a ledger, and what to do about it.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::with_causes;

use crate::location::{LedgerLocation, real_path};
use crate::query::{IncompleteSource, incomplete_sources, lost_runs, sources_without_calls};
use crate::spool::{SpoolFolder, SpoolState};
use crate::store::{EventStore, SourceId, StoreError};

pub use crate::store::Check;

impl Check {
    /// States that a ledger cannot be opened.
    pub fn unusable(error: &StoreError) -> Self {
        let remedy = match error {
            StoreError::Missing { .. } => {
                "record calls with `counterproof guard`, or name another ledger with `--ledger`"
            }
            StoreError::Newer { .. } => "use the newer version of this program",
            StoreError::NotALedger { .. } => "name another file with `--ledger`",
            _ => "restore a backup, or move the file away; events that wait are added to a new one",
        };
        Self::problem("open", with_causes(error), remedy)
    }

    fn well(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, found: found.into(), remedy: None }
    }

    fn problem(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, found: found.into(), remedy: Some(remedy.into()) }
    }
}

pub fn examine(location: &LedgerLocation, spool: &SpoolFolder, store: Option<&mut dyn EventStore>) -> Vec<Check> {
    // Without a store, only its files are examined.
    let mut checks = Vec::new();
    if let Some(store) = store {
        match store.diagnose() {
            Ok(found) => checks.extend(found),
            // The other checks go on: a damaged ledger needs all that can be found out.
            Err(error) => checks.push(Check::unusable(&error)),
        }
        checks.push(complete(store, location));
        checks.push(calls(store, location));
        checks.push(lost(store));
    }
    checks.push(spools(spool));
    checks.push(rejected(spool));
    checks.push(private(location, spool));
    checks
}

const LISTED: usize = 5;

fn complete(store: &mut dyn EventStore, location: &LedgerLocation) -> Check {
    match incomplete_sources(store) {
        Ok(sources) if sources.is_empty() => Check::well("events", "no gap in the numbers of any source"),
        Ok(sources) => Check::problem("events", format!("events are missing: {}", names(&sources)), add(location)),
        Err(error) => Check::problem("events", with_causes(&error), "see the other checks"),
    }
}

/// Checks that the ledger has the ends of as many calls as the end of each source states.
fn calls(store: &mut dyn EventStore, location: &LedgerLocation) -> Check {
    match sources_without_calls(store) {
        Ok(sources) if sources.is_empty() => Check::well("calls", "as many as the end of each source states"),
        Ok(sources) => {
            Check::problem("calls", format!("ends of calls are missing: {}", names(&sources)), add(location))
        }
        Err(error) => Check::problem("calls", with_causes(&error), "see the other checks"),
    }
}

fn add(location: &LedgerLocation) -> String {
    let location = location.to_string();
    let option = shell_words::quote(&location);
    format!("add their `--events` file, if there is one, with `counterproof ledger ingest --ledger {option} FILE`")
}

fn names(sources: &[IncompleteSource]) -> String {
    let name = |it: &IncompleteSource| {
        let IncompleteSource { source: SourceId { run_id, shim_id }, stored, expected } = it;
        format!("{stored} of {expected} in run {run_id} from {shim_id}")
    };
    let names: Vec<String> = sources.iter().take(LISTED).map(name).collect();
    let more = if sources.len() > LISTED { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// Counts the runs of which a process was killed. They are not a problem of the ledger.
fn lost(store: &mut dyn EventStore) -> Check {
    match lost_runs(store) {
        Ok(count) => Check::well("runs_without_end", format!("{count}, of which a process was killed")),
        Err(error) => Check::problem("runs_without_end", with_causes(&error), "see the other checks"),
    }
}

/// The bits of a mode that let other users read or write.
#[cfg(unix)]
const OTHERS: u32 = 0o077;

fn private(location: &LedgerLocation, spool: &SpoolFolder) -> Check {
    let mut paths = vec![spool.path().to_owned()];
    // A folder is not a ledger, and its mode has other reasons.
    if let LedgerLocation::SqliteFile(path) = location
        && !path.is_dir()
    {
        let path = real_path(path);
        // Without a process that records, the other files of SQLite are those of this process, and disappear with it.
        let suffixes: &[&str] = if has_recorder(spool) { &["", "-wal", "-shm"] } else { &[""] };
        paths.extend(suffixes.iter().map(|suffix| Utf8PathBuf::from(format!("{path}{suffix}"))));
    }
    paths.retain(|path| is_open_to_others(path));
    if paths.is_empty() {
        return Check::well("permissions", "only the owner can read the files");
    }
    let found: Vec<_> = paths.iter().map(|path| format!("`{path}`")).collect();
    let quoted: Vec<_> = paths.iter().map(|path| shell_words::quote(path.as_str())).collect();
    let remedy = format!("run `chmod go-rwx -- {}`", quoted.join(" "));
    Check::problem("permissions", format!("other users can read {}", found.join(", ")), remedy)
}

fn has_recorder(spool: &SpoolFolder) -> bool {
    spool.waiting().is_ok_and(|files| files.iter().any(|file| file.state == SpoolState::Living))
}

/// Returns true if users other than the owner may read or write a file.
#[cfg(unix)]
pub fn is_open_to_others(path: &Utf8Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & OTHERS != 0)
}

/// Returns true if users other than the owner may read or write a file. Other systems have no such modes.
#[cfg(not(unix))]
pub fn is_open_to_others(_path: &Utf8Path) -> bool {
    false
}

fn spools(folder: &SpoolFolder) -> Check {
    let files = match folder.waiting() {
        Ok(files) => files,
        Err(error) => return Check::problem("spool", with_causes(&error), "make the folder readable"),
    };
    let count = |state: SpoolState| files.iter().filter(|file| file.state == state).count();
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let (living, dead) = (count(SpoolState::Living), count(SpoolState::Dead));
    let found =
        format!("{living} files of running processes, {dead} of ended ones, {bytes} bytes in `{}`", folder.path());
    if dead == 0 {
        return Check::well("spool", found);
    }
    Check::problem("spool", found, "make the ledger usable; the next command that opens it adds these events")
}

fn rejected(folder: &SpoolFolder) -> Check {
    let files = match folder.set_aside() {
        Ok(files) => files,
        Err(error) => return Check::problem("set_aside", with_causes(&error), "make the folder readable"),
    };
    if files.is_empty() {
        return Check::well("set_aside", "no invalid lines");
    }
    let names: Vec<_> = files.iter().map(|path| path.as_str()).collect();
    let remedy =
        "they are ends of events that were cut off by a kill, or lines that a power failure damaged; remove the files";
    Check::problem("set_aside", names.join(", "), remedy)
}
