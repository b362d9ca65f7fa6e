//! The entry point of the supervisor and the launcher.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use super::reexec::{LAUNCHER, SUPERVISOR};
use super::{launcher, reexec, supervisor};
use crate::options::Options;
use crate::record::StartError;

/// Whether this program has called [`enter`]. A program that has not would run its own `main` as the supervisor.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Runs the supervisor or the launcher if this process was started as one, and returns the exit code. Returns `None` in every
/// other process.
///
/// A program that records commands must call this first in `main`, before it starts a thread.
pub fn enter() -> Option<ExitCode> {
    ENTERED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    if name == SUPERVISOR {
        Some(supervisor::run(arguments))
    } else if name == LAUNCHER {
        Some(launcher::run(arguments))
    } else {
        None
    }
}

/// Fails if no supervisor can be started.
pub(crate) fn check_possible(options: &Options) -> Result<(), StartError> {
    if options.supervisor.is_none() && !ENTERED.load(Ordering::Relaxed) {
        return Err(StartError::NotEntered);
    }
    if reexec::is_possible() { Ok(()) } else { Err(StartError::NoProc) }
}
