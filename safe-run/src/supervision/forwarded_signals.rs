//! The signals that safe-run forwards to the command. The supervisor must survive them: a terminal or a batch system sends a signal
//! to every process of a job.

use nix::sys::signal::Signal;

/// Signals that ask a process to end. The command is killed if it still runs after the grace time. XCPU is the last warning before
/// the limit on processor time kills safe-run.
pub(crate) const ENDING: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGXCPU];

/// Signals that notify a process. They end only a command that does not handle them.
pub(crate) const NOTIFYING: [Signal; 5] =
    [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGVTALRM, Signal::SIGPROF];
