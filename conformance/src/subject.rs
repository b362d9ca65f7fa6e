//! What is tried: the tool, or a wrapper that finds it.

use std::fs;
use std::io;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

use crate::vectors::Group;

/// How many lines of a wrapper are its header.
const HEADER: usize = 40;

/// What a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The canonical tool, or another implementation of it.
    Tool,
    /// A script that finds the tool and becomes it.
    Wrapper,
}

/// A program to be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What it is.
    pub kind: Kind,
    /// The program.
    pub path: Utf8PathBuf,
}

impl Subject {
    /// A program; its path is made absolute, for it is run in other folders.
    pub fn new(kind: Kind, path: &Utf8Path) -> io::Result<Self> {
        let path = path.canonicalize_utf8()?;
        Ok(Self { kind, path })
    }

    /// The program, ready for arguments.
    fn program(&self) -> Command {
        if self.path.extension() == Some("ps1") {
            let mut command = Command::new("pwsh");
            command.args(["-NoProfile", "-NonInteractive", "-File"]).arg(&self.path);
            return command;
        }
        if !ignores_signals() {
            return Command::new(&self.path);
        }
        // What is ignored here would be ignored in the command too, and no vector about signals would say anything.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(&self.path);
        command
    }

    /// The program with the arguments of a vector. The tool is told what to do by name; a wrapper is called as a user would.
    pub(crate) fn command(&self, group: Group, arguments: &[String]) -> Command {
        let mut command = self.program();
        let word = match (group, self.kind) {
            (Group::Run, Kind::Tool) => Some("run"),
            (Group::Archive, _) => Some("archive"),
            (Group::Run, Kind::Wrapper) | (Group::Check, _) => None,
        };
        command.args(word).args(arguments);
        command
    }

    /// True where a wrapper's header names the contract.
    pub(crate) fn declares(&self, contract: &str) -> io::Result<bool> {
        let text = fs::read_to_string(&self.path)?;
        Ok(text.lines().take(HEADER).any(|line| line.contains(contract)))
    }
}

/// True where this process ignores a signal that vectors send, as in the background of a script.
fn ignores_signals() -> bool {
    const SENT: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & SENT != 0)
}
