//! The programs to check: the tool, or a wrapper that finds it.

use std::fmt;
use std::fs;
use std::io;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

use crate::vectors::Group;

/// Number of lines in the header of a wrapper.
const HEADER_LINES: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    Tool,
    /// A script that finds the tool and executes it.
    Wrapper,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub kind: SubjectKind,
    /// The absolute path of the program.
    pub path: Utf8PathBuf,
}

impl Subject {
    pub fn new(kind: SubjectKind, path: &Utf8Path) -> io::Result<Self> {
        // Trials run in other folders.
        let path = path.canonicalize_utf8()?;
        Ok(Self { kind, path })
    }

    fn program(&self) -> Command {
        if self.path.extension() == Some("ps1") {
            let mut command = Command::new("pwsh");
            // A profile could print, or change what the wrapper does.
            command.args(["-NoProfile", "-NonInteractive", "-File"]).arg(&self.path);
            return command;
        }
        if !ignores_signals() {
            return Command::new(&self.path);
        }
        // The program would inherit the ignored signals, and vectors about signals would fail.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(&self.path);
        command
    }

    /// Returns the command for a vector. The tool gets its subcommand; a wrapper is called as a user calls it.
    pub(crate) fn command(&self, group: Group, arguments: &[String]) -> Command {
        let mut command = self.program();
        let subcommand = match (group, self.kind) {
            // With the word, the first argument of a vector is never taken for a subcommand.
            (Group::Run, SubjectKind::Tool) => Some("run"),
            (Group::Archive, _) => Some("archive"),
            (Group::Run, SubjectKind::Wrapper) | (Group::Check, _) => None,
        };
        command.args(subcommand).args(arguments);
        command
    }

    pub(crate) fn declares(&self, contract: &str) -> io::Result<bool> {
        let text = fs::read_to_string(&self.path)?;
        // Only the header: the code of a wrapper may mention other contracts.
        Ok(text.lines().take(HEADER_LINES).any(|line| line.contains(contract)))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SubjectKind::Tool => "tool",
            SubjectKind::Wrapper => "wrapper",
        };
        write!(f, "{kind} {}", self.path)
    }
}

/// Returns true if this process ignores a signal that vectors send. Scripts set that for their background jobs.
fn ignores_signals() -> bool {
    const SENT: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & SENT != 0)
}
