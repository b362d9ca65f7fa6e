//! Checks that only the owner can read a ledger: it has previews of arguments and results.

use camino::Utf8PathBuf;

use super::check::Check;
use crate::location::LedgerLocation;
use crate::spool::SpoolFolder;

/// The bits of a mode that let other users read or write.
#[cfg(unix)]
const OTHERS: u32 = 0o077;

/// Checks the modes of the files.
pub(super) fn private(location: &LedgerLocation, spool: &SpoolFolder) -> Check {
    let mut paths = vec![spool.path().to_owned()];
    if let LedgerLocation::SqliteFile(path) = location {
        paths.extend(["", "-wal", "-shm"].map(|suffix| Utf8PathBuf::from(format!("{path}{suffix}"))));
    }
    let open: Vec<_> = paths.iter().filter(|path| is_open(path)).map(|path| format!("`{path}`")).collect();
    if open.is_empty() {
        return Check::well("permissions", "only the owner can read the files");
    }
    let remedy = format!("run `chmod go-rwx {}`", paths.iter().map(|path| path.as_str()).collect::<Vec<_>>().join(" "));
    Check::problem("permissions", format!("other users can read {}", open.join(", ")), remedy)
}

#[cfg(unix)]
fn is_open(path: &Utf8PathBuf) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & OTHERS != 0)
}

/// Other systems have no such modes.
#[cfg(not(unix))]
fn is_open(_path: &Utf8PathBuf) -> bool {
    false
}
