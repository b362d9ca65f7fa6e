//! An agent program and the events of its process.

use std::io;
use std::path::PathBuf;

use counterproof_safe_run::Ending;

use crate::settings::AgentCommand;

/// An agent program and its supervisor.
#[derive(Debug, Clone)]
pub(crate) struct AgentProgram {
    pub(crate) command: AgentCommand,
    /// See [`Settings::supervisor`](crate::Settings::supervisor).
    #[cfg_attr(not(unix), expect(dead_code, reason = "programs are supervised on Unix only"))]
    pub(crate) supervisor: Option<PathBuf>,
}

/// An event of a running program.
#[derive(Debug)]
pub(super) enum ProcessEvent {
    /// A piece of standard output.
    Stdout(Vec<u8>),
    /// A piece of standard error.
    Stderr(Vec<u8>),
    /// The last event: how the program ended, or why it could not be started.
    Ended(io::Result<Ending>),
}
