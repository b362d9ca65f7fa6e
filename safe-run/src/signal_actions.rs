//! The actions of this process for signals that would otherwise get in the way: the end of a child, and a file that exceeds its
//! size limit.
//!
//! A handler replaces the inherited action in this process only: `exec` restores the default action, so no program that this one
//! starts inherits a handler.

use std::io;

#[cfg(unix)]
use nix::sys::signal::Signal;

/// Makes the exit statuses of children readable, even if the parent of this process ignored SIGCHLD: the system would then reap
/// each child at once and discard its status. Children that are started later have the default action.
///
/// Supervised commands do not need this call. Their supervisor makes it, and they inherit the action of this process.
pub fn keep_exit_statuses() -> io::Result<()> {
    #[cfg(unix)]
    handle(Signal::SIGCHLD)?;
    Ok(())
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail with an error. By default it ends the process without a message.
///
/// The programs that this one starts keep the action that this process has inherited.
pub fn report_file_size_limit() -> io::Result<()> {
    // An ignored signal has the same effect, and stays ignored for the programs that this one starts.
    #[cfg(unix)]
    if !contains(ignored(), Signal::SIGXFSZ) {
        return handle(Signal::SIGXFSZ);
    }
    Ok(())
}

/// Returns true if this process ignores a signal, given as its number. Always false on systems without `/proc`.
#[cfg(unix)]
pub fn is_ignored(signal: i32) -> bool {
    Signal::try_from(signal).is_ok_and(|signal| contains(ignored(), signal))
}

/// Returns the mask of signals that this process ignores, with signal 1 in the lowest bit. `nohup` and scripts set it for
/// background jobs. Returns 0 on systems without `/proc`.
#[cfg(unix)]
pub(crate) fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(unix)]
pub(crate) const fn contains(mask: u64, signal: Signal) -> bool {
    mask & (1 << (signal as i32 - 1)) != 0
}

#[cfg(unix)]
fn handle(signal: Signal) -> io::Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    // The flag is never read; the library offers no handler without an effect.
    signal_hook::flag::register(signal as i32, Arc::new(AtomicBool::new(false))).map(drop)
}
