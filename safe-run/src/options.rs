//! Options of one execution.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How a command is executed and recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Gives the command a pseudo-terminal, on which both output streams are one.
    pub terminal: bool,
    /// What happens to the output.
    pub output: OutputMode,
    /// How long the command may run after a signal to end, before it is killed.
    pub grace: Duration,
    /// How long to wait for the output streams after the command has ended, while other processes hold them open.
    pub drain: Duration,
    /// Declares that this process exists only for the command. Signals and the terminal of this process then belong to the
    /// command, and every orphan that the process adopts is treated as left behind by the command.
    pub owns_process: bool,
    /// The program to start as the supervisor. It must call [`enter`](crate::enter) first in `main`. `None` starts this program.
    pub supervisor: Option<PathBuf>,
    /// The working directory of the command; `None` is that of this process. A relative program path such as `./check` starts
    /// here.
    pub working_directory: Option<PathBuf>,
    /// Changes of the environment of the command: variables to set, and to remove (`None`). The rest is that of this process.
    pub environment: BTreeMap<OsString, Option<OsString>>,
}

/// What happens to the output of a command. In every mode, the observer receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// The output is forwarded to the streams of this process and captured for the record.
    Forward,
    Capture,
    /// The output is neither forwarded nor captured: the record has no output and uses no disk space.
    ObserveOnly,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            terminal: false,
            output: OutputMode::Capture,
            grace: Duration::from_secs(10),
            drain: Duration::from_secs(2),
            owns_process: false,
            supervisor: None,
            working_directory: None,
            environment: BTreeMap::new(),
        }
    }
}
