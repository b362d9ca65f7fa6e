//! Starting this program again under another name.

use std::io;
use std::path::PathBuf;

/// The program name (`argv[0]`) of the supervisor.
pub(super) const SUPERVISOR: &str = "safe-run: supervisor";

/// The program name (`argv[0]`) of the launcher.
pub(super) const LAUNCHER: &str = "safe-run: launcher";

/// Returns true if [`this_program`] exists. Fails on Linux without `/proc`.
pub(crate) fn is_possible() -> bool {
    !cfg!(target_os = "linux") || this_program().is_ok_and(|program| program.exists())
}

/// Returns a path to this program that stays valid on Linux even if the file was replaced or removed.
pub(super) fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}
