//! Waits for all sources of a session at once.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::input_relay::InputRelay;
use super::ready::Ready;
use super::state::Session;
use crate::capture::Stream;

impl Session<'_> {
    /// Waits until something is ready or the deadline passes. The result is empty at the deadline.
    pub(super) fn poll(&self) -> io::Result<Vec<Ready>> {
        let mut roles = Vec::with_capacity(8);
        let mut polled = Vec::with_capacity(8);
        for stream in Stream::ALL {
            let output = &self.outputs[stream as usize];
            // While output is pending the stream is not read, so a slow reader slows the command down, as without safe-run.
            if output.is_pending() {
                roles.push(Ready::Output(stream));
                polled.push(PollFd::new(output, PollFlags::OUT));
            } else if let Some(source) = &self.sources[stream as usize] {
                roles.push(Ready::Source(stream));
                polled.push(PollFd::new(source, PollFlags::IN));
            }
        }
        if let Some(supervisor) = &self.supervisor {
            roles.push(Ready::Supervisor);
            polled.push(PollFd::new(supervisor, PollFlags::IN));
        }
        roles.push(Ready::Signals);
        polled.push(PollFd::new(&self.signals, PollFlags::IN));
        let relay = self.relay.as_ref().filter(|_| self.ending.is_none());
        if let Some((role, interest)) = relay.and_then(InputRelay::interest) {
            roles.push(role);
            polled.push(interest);
        }
        let deadline = self.deadline.into_iter().chain(self.time_limit).min();
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // One millisecond more, because poll may return early by a fraction of one.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout + Duration::from_millis(1)).ok());
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Err(Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = roles.into_iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        Ok(ready.map(|(role, _)| role).collect())
    }
}
