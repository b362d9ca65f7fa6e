//! Checks of the spool: events that wait, and invalid lines.

use counterproof_artifact::with_causes;

use super::check::Check;
use crate::spool::{SpoolFolder, SpoolState};

/// Checks that no file of an ended process waits.
pub(super) fn spools(folder: &SpoolFolder) -> Check {
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

/// Checks that no lines were set aside.
pub(super) fn rejected(folder: &SpoolFolder) -> Check {
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
