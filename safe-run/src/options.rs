//! How a command is run.

use std::path::PathBuf;
use std::time::Duration;

/// How a command is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// It gets a terminal, on which its two streams are one.
    pub terminal: bool,
    /// What becomes of what it prints, besides that the observer gets it.
    pub output: Output,
    /// How long it may go on after a signal to end, before it is killed.
    pub grace: Duration,
    /// How long its streams are waited for after it has ended, while others hold them.
    pub drain: Duration,
    /// This process is there for the command alone: its signals and its terminal are the command's, and every child that
    /// it gets is one that the command left behind.
    pub owns_process: bool,
    /// The program that is started to supervise it, which calls [`enter`](crate::enter) first thing; `None` for this very
    /// program.
    pub supervisor: Option<PathBuf>,
}

/// What becomes of what a command prints, besides that the observer gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// It goes to our own streams as it comes, and is kept for the record.
    Live,
    /// It is kept for the record.
    Kept,
    /// Nothing: the record has no output, and it costs no disk.
    Observed,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            terminal: false,
            output: Output::Kept,
            grace: Duration::from_secs(10),
            drain: Duration::from_secs(2),
            owns_process: false,
            supervisor: None,
        }
    }
}
