//! How the process of an agent or a server ended, as events state it.

use counterproof_artifact::{one_line, with_causes};
use counterproof_ledger::event::ProcessExit;
use counterproof_safe_run::Ending;

/// Longest reason of a process that was not started, in characters.
const REASON_CHARS: usize = 500;

/// Returns the exit of a process that was started.
pub(crate) const fn ended(ending: Ending) -> ProcessExit {
    match ending {
        Ending::Exited(code) => ProcessExit::Code(code),
        Ending::Killed(signal) => ProcessExit::Signal(signal),
    }
}

/// Returns the exit of a process that could not be started.
pub(crate) fn not_started(error: &dyn std::error::Error) -> ProcessExit {
    ProcessExit::NotStarted(one_line(&with_causes(error), REASON_CHARS))
}
