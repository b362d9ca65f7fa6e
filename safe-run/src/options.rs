//! How a command is run.

use std::time::Duration;

/// How a command is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// It gets a terminal, on which its two streams are one.
    pub terminal: bool,
    /// What it prints goes to our own streams as it comes.
    pub is_live: bool,
    /// How long it may go on after a signal to end, before it is killed.
    pub grace: Duration,
    /// How long its streams are waited for after it has ended, while others hold them.
    pub drain: Duration,
    /// This process is there for the command alone: its signals and its terminal are the command's, and every child that
    /// it gets is one that the command left behind.
    pub owns_process: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            terminal: false,
            is_live: false,
            grace: Duration::from_secs(10),
            drain: Duration::from_secs(2),
            owns_process: false,
        }
    }
}
