//! The two processes between us and the command. Both are this program, started again under another name.
//!
//! ```text
//! safe-run ── supervisor ── launcher, which becomes the command ── whatever the command starts
//! ```
//!
//! - The **supervisor** is in a process group of its own and adopts what the command leaves behind (`PR_SET_CHILD_SUBREAPER`
//!   on Linux). When it is told to finish, or when the one who started it is gone, it kills everything below it. So nothing
//!   survives us, not even when we are killed.
//! - The **launcher** sets what a process can only set for itself, in safe Rust: that it is killed when the supervisor dies
//!   (`PR_SET_PDEATHSIG`), and its terminal. Then it becomes the command.
//!
//! A library that runs in another program has them as soon as that program calls [`enter`] first thing.

use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

/// The program names by which a process knows that it is one of the two.
pub(super) const SUPERVISOR: &str = "safe-run: supervisor";
pub(super) const LAUNCHER: &str = "safe-run: launcher";

/// Whether this program has called [`enter`]. One that has not would start itself all over.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// How the command is to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In a process group of its own.
    Group,
    /// In a session of its own, whose terminal is its standard input.
    Terminal,
}

/// Where the command is to be placed, and which signals are blocked by us and have to be let through again in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) placement: Placement,
    pub(crate) blocked: SigSet,
}

impl Place {
    /// As an argument.
    pub(super) fn word(&self) -> String {
        let signals: Vec<_> = self.blocked.iter().map(|signal| (signal as i32).to_string()).collect();
        let placement = match self.placement {
            Placement::Group => "group",
            Placement::Terminal => "terminal",
        };
        format!("{placement}:{}", signals.join(","))
    }

    pub(super) fn of(word: Option<&OsStr>) -> Self {
        let (placement, signals) = word.and_then(|word| word.to_str()?.split_once(':')).unwrap_or_default();
        let signals = signals.split(',').filter_map(|number| Signal::try_from(number.parse::<i32>().ok()?).ok());
        let placement = if placement == "terminal" { Placement::Terminal } else { Placement::Group };
        Self { placement, blocked: signals.collect() }
    }
}

/// Does the work of a supervisor or a launcher if this process was started as one, and gives the code to exit with. To be
/// called before anything else, and before there is a second thread.
pub fn enter() -> Option<ExitCode> {
    ENTERED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    if name == SUPERVISOR {
        Some(super::supervisor::enter(arguments))
    } else if name == LAUNCHER {
        Some(super::launcher::enter(arguments))
    } else {
        None
    }
}

/// True where this program can be started again as one of the two.
pub(crate) fn is_entered() -> bool {
    ENTERED.load(Ordering::Relaxed)
}

/// This very program, even where its file has been replaced or removed meanwhile.
pub(super) fn this_program() -> std::io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for placement in [Placement::Group, Placement::Terminal] {
            for blocked in [SigSet::empty(), [Signal::SIGINT, Signal::SIGTTOU].into_iter().collect()] {
                let read = Place::of(Some(OsStr::new(&Place { placement, blocked }.word())));
                assert_eq!((read.placement, read.blocked), (placement, blocked));
            }
        }
    }
}
