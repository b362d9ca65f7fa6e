//! A command line and how it is run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;

/// The time limit of a command that has none of its own.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// How long a command may run after it was asked to end, before it is killed.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// Maximum bytes of both streams of a command together. A command that prints more is killed: its record would fill the disk.
pub const MAX_OUTPUT_BYTES: u64 = 256 << 20;

/// Maximum bytes of a stream that are returned as text.
pub const MAX_TEXT_BYTES: u64 = 1 << 20;

/// A command line for `sh -c`, with everything that its execution needs.
#[derive(Debug, Clone)]
pub struct ShellCommand {
    pub line: String,
    /// The working directory.
    pub folder: Utf8PathBuf,
    /// Variables to set or to remove (`None`); the rest of the environment is that of this process.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    /// The bytes of the standard input.
    pub input: Vec<u8>,
    /// The time limit. At its end, the command's process group gets TERM, and KILL after the grace time.
    pub timeout: Duration,
    pub grace: Duration,
    /// Maximum bytes of standard output that are returned.
    pub stdout_limit: u64,
    /// Maximum bytes of standard error that are returned.
    pub stderr_limit: u64,
    /// Maximum bytes of both streams together; the command is killed beyond it.
    pub output_limit: u64,
    /// The program that supervises the command, as in safe-run's options. `None` means this program, which then must call
    /// [`counterproof_safe_run::enter`] first in `main`.
    pub supervisor: Option<PathBuf>,
}

impl ShellCommand {
    /// Creates a command with the default limits, this environment, and an empty input.
    pub fn new(line: impl Into<String>, folder: impl Into<Utf8PathBuf>) -> Self {
        Self {
            line: line.into(),
            folder: folder.into(),
            environment: BTreeMap::new(),
            input: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            grace: DEFAULT_GRACE,
            stdout_limit: MAX_TEXT_BYTES,
            stderr_limit: MAX_TEXT_BYTES,
            output_limit: MAX_OUTPUT_BYTES,
            supervisor: None,
        }
    }

    /// Sets a variable of the command's environment.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.environment.insert(name.into(), Some(value.into()));
    }
}
