//! The exit codes of safe-run itself, besides those of the commands. `docs/safe-run.md` lists them.

/// The arguments are invalid.
pub(super) const USAGE: i32 = 2;

/// The command could not be prepared, or its output could not be written.
pub(super) const SETUP: i32 = 125;

/// The command exists and cannot be executed.
#[cfg(unix)]
pub(super) const NOT_EXECUTABLE: i32 = 126;

/// The command does not exist.
#[cfg(unix)]
pub(super) const NOT_FOUND: i32 = 127;
