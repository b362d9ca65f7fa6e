//! The phases of a session and what happens when a deadline passes.
//!
//! ```text
//! Running ── command ended and streams closed, or grace or drain time over ─▶ Finishing: the supervisor kills what is left
//! ```

use std::time::{Duration, Instant};

use nix::sys::signal::Signal as SignalNumber;

use super::reading::PIPE_BYTES;
use super::ready::Ready;
use super::state::{Phase, Session};
use crate::capture::Stream;
use crate::record::Ending;

/// How long the supervisor may take to kill the remaining processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the end of a time that starts now. A time that the clock cannot represent has no end.
pub(super) fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

impl Session<'_> {
    /// Tells the supervisor to kill every remaining process.
    pub(super) fn finish(&mut self) {
        self.phase = Phase::Finishing;
        self.deadline = Some(Instant::now() + KILL_TIMEOUT);
        if let Some(supervisor) = &self.supervisor {
            supervisor.finish();
        }
    }

    /// Enters the last phase after the supervisor has ended; only buffered output is left.
    pub(super) fn finish_without_supervisor(&mut self) {
        self.phase = Phase::Finishing;
        self.deadline = after(self.options.drain);
    }

    /// Handles an expired deadline. `ready` is what the last poll returned.
    pub(super) fn on_deadline(&mut self, ready: &[Ready]) {
        if !self.is_finishing() {
            return self.finish();
        }
        // A slow reader of our output gets further turns, one drain time each.
        self.deadline = after(self.options.drain);
        if self.supervisor.take().is_some() {
            // Even KILL has not ended every process in time.
            self.ending = self.ending.or(Some(Ending::Killed(SignalNumber::SIGKILL as i32)));
        }
        for stream in Stream::ALL {
            self.close_idle_stream(stream, ready);
        }
    }

    fn close_idle_stream(&mut self, stream: Stream, ready: &[Ready]) {
        let output = &mut self.outputs[stream as usize];
        let is_moving = ready.contains(&Ready::Source(stream)) || ready.contains(&Ready::Output(stream));
        // A slow reader gets the whole output, unless a signal asked us to end.
        if self.aborted_by.is_some() && !is_moving {
            output.discard();
        }
        if !output.is_pending() && !is_moving {
            self.sources[stream as usize] = None;
        }
        let Some(source) = &self.sources[stream as usize] else { return };
        // A process that could not be killed may print forever. The command's own output is in the pipe by now, so reading
        // one pipe's worth of bytes loses nothing of it.
        let buffered = rustix::io::ioctl_fionread(source).unwrap_or(0).max(PIPE_BYTES as u64);
        self.remaining[stream as usize].get_or_insert(buffered);
    }
}
