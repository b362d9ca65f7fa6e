//! Sandboxes of commands.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_safe_run::{Cancellation, Input, Record, StartError, Stream};
use serde::{Deserialize, Serialize};

/// What the user asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxChoice {
    /// Landlock, else bubblewrap, else none.
    #[default]
    Auto,
    Landlock,
    Bwrap,
    None,
}

/// The sandbox of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    Landlock,
    Bwrap,
    None,
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox `{0}` is not available on this system")]
    Unavailable(&'static str),
    #[error("cannot set up the sandbox: {0}")]
    Setup(String),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Sandbox {
    /// Finds the sandbox of this system. Call it once for a run.
    pub fn detect(choice: SandboxChoice) -> Result<Self, SandboxError> {
        let _ = choice;
        Ok(Self::None)
    }

    /// Returns the value of `result.sandbox`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
            Self::None => "none",
        }
    }

    /// Returns what the sandbox restricts, for a person.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Landlock => "Landlock: writes only in the workspace, no TCP",
            Self::Bwrap => "bubblewrap: writes only in the workspace, no network",
            Self::None => "none: commands of the model have the rights of this program",
        }
    }
}

/// A line for `sh -c`, and what it may use.
#[derive(Debug)]
pub struct SandboxedCommand {
    pub line: String,
    /// The working directory, and the only folder besides `private` that the command may write.
    pub workspace: Utf8PathBuf,
    /// A folder for temporary files, outside of the workspace. It must exist.
    pub private: Utf8PathBuf,
    /// Changes of the environment, after secrets and variables of git were removed.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    pub input: Input,
    /// Ports on which the command may connect over TCP.
    pub tcp_ports: Vec<u16>,
    pub timeout: Option<Duration>,
    /// The most bytes of both streams together.
    pub output_limit: Option<u64>,
    pub grace: Duration,
    /// As in safe-run's options.
    pub supervisor: Option<PathBuf>,
}

impl SandboxedCommand {
    /// Runs the command to its end. The record has no output: the observer gets it.
    pub fn run(
        self,
        sandbox: Sandbox,
        cancel: &Cancellation,
        observer: &mut (dyn FnMut(Stream, Duration, &[u8]) + Send),
    ) -> Result<Record, SandboxError> {
        let _ = (sandbox, cancel, observer);
        Err(SandboxError::Unavailable("none"))
    }
}
