//! The meaning of the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the program does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    Help,
    Version,
    /// There are no arguments: print the version and where to find help.
    Banner,
    Run(Run),
    Check(OsString),
    Archive(Archive),
}

/// The arguments of `run`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) command: Vec<OsString>,
    pub(super) events: Option<PathBuf>,
    pub(super) terminal: bool,
    pub(super) grace: Option<Duration>,
    pub(super) drain: Option<Duration>,
}

/// The arguments of `archive`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Archive {
    pub(super) no_clobber: bool,
    pub(super) source: PathBuf,
    pub(super) destination: PathBuf,
}
