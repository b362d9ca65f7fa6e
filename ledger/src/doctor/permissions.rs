//! Checks that only the owner can read a ledger: it has previews of arguments and results.

use camino::{Utf8Path, Utf8PathBuf};

use super::check::Check;
use crate::location::{LedgerLocation, real_path};
use crate::spool::{SpoolFolder, SpoolState};

/// The bits of a mode that let other users read or write.
#[cfg(unix)]
const OTHERS: u32 = 0o077;

/// Checks the modes of the files.
pub(super) fn private(location: &LedgerLocation, spool: &SpoolFolder) -> Check {
    let mut paths = vec![spool.path().to_owned()];
    // A folder is no ledger, and its mode has other reasons.
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
