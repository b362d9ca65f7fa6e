//! The connection between safe-run, the supervisor and the launcher: a socket pair.
//!
//! Downwards, the first message carries a file descriptor; each further byte is the number of a signal to send, and the end of the
//! stream means "finish". Upwards, each message is a [`Status`] frame of five bytes; the end of the stream means that the process
//! is gone.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigSet, Signal};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

#[derive(Debug)]
pub(crate) struct Connection(UnixStream);

impl Connection {
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = UnixStream::pair()?;
        Ok((Self(here), there.into()))
    }

    pub(crate) fn from_stdin() -> io::Result<Self> {
        Ok(Self(UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?)))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub(crate) fn send_descriptor(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        // A descriptor travels with at least one byte of data; the value of the byte has no meaning.
        rustix::net::sendmsg(&self.0, &[IoSlice::new(b"d")], &mut ancillary, SendFlags::empty())?;
        Ok(())
    }

    pub(crate) fn receive_descriptor(&self) -> io::Result<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut parts = [IoSliceMut::new(&mut byte)];
        rustix::net::recvmsg(&self.0, &mut parts, &mut ancillary, receive_flags())?;
        let received = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        received.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Asks the other end to send a signal to the command's process group. Fails if the other end has stopped and does not read.
    pub(crate) fn send_signal(&self, signal: i32) -> io::Result<()> {
        rustix::net::send(&self.0, &[u8::try_from(signal).unwrap_or(0)], send_flags())?;
        Ok(())
    }

    /// Receives the next signal to send; `None` means "finish".
    pub(crate) fn receive_signal(&self) -> Option<i32> {
        let mut byte = [0];
        (&self.0).read_exact(&mut byte).ok().map(|()| i32::from(byte[0]))
    }

    pub(crate) fn finish(&self) {
        // This fails only if the other end is gone, and then it has finished.
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }

    pub(crate) fn send(&self, status: Status) -> io::Result<()> {
        (&self.0).write_all(&status.to_frame())
    }

    /// Receives the next status; `None` if the other end is gone.
    pub(crate) fn receive(&self) -> Option<Status> {
        // The sender writes a whole frame at once, so reading a readable connection does not wait for the rest of one.
        let mut frame = [0; 5];
        (&self.0).read_exact(&mut frame).ok().and_then(|()| Status::from_frame(frame))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn send_flags() -> SendFlags {
    // Apple systems lack this flag. Rust programs ignore SIGPIPE, so it is not needed there.
    #[cfg(not(target_vendor = "apple"))]
    return SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    #[cfg(target_vendor = "apple")]
    SendFlags::DONTWAIT
}

/// A received descriptor must not be inherited by the processes that this one starts.
fn receive_flags() -> RecvFlags {
    #[cfg(not(target_vendor = "apple"))]
    return RecvFlags::CMSG_CLOEXEC;
    #[cfg(target_vendor = "apple")]
    RecvFlags::empty()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The command runs; the value is its process id, which is also its process group.
    Started(i32),
    /// The command could not be started; the value is the error number of the operating system.
    NotStarted(i32),
    /// A signal stopped the command.
    Stopped(i32),
    /// The command exited with a code.
    Exited(i32),
    /// A signal killed the command.
    Killed(i32),
    /// Number of processes that the command left behind and that were killed.
    LeftBehind(i32),
}

impl Status {
    /// Encodes the message: a tag and the value, little-endian.
    pub(super) fn to_frame(self) -> [u8; 5] {
        let (tag, value) = match self {
            Status::Started(value) => (b'p', value),
            Status::NotStarted(value) => (b'x', value),
            Status::Stopped(value) => (b't', value),
            Status::Exited(value) => (b'e', value),
            Status::Killed(value) => (b'k', value),
            Status::LeftBehind(value) => (b'l', value),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(super) fn from_frame([tag, value @ ..]: [u8; 5]) -> Option<Self> {
        let value = i32::from_le_bytes(value);
        Some(match tag {
            b'p' => Status::Started(value),
            b'x' => Status::NotStarted(value),
            b't' => Status::Stopped(value),
            b'e' => Status::Exited(value),
            b'k' => Status::Killed(value),
            b'l' => Status::LeftBehind(value),
            _ => return None,
        })
    }
}

/// Process group and session of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// A new process group in the session of safe-run.
    NewGroup,
    /// A new session; standard input becomes its controlling terminal.
    NewSession,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessSetup {
    pub(crate) placement: Placement,
    /// Signals that safe-run has blocked and the launcher unblocks.
    pub(crate) blocked: SigSet,
}

impl ProcessSetup {
    pub(super) fn to_argument(self) -> String {
        let signals: Vec<_> = self.blocked.iter().map(|signal| (signal as i32).to_string()).collect();
        let placement = match self.placement {
            Placement::NewGroup => "group",
            Placement::NewSession => "terminal",
        };
        format!("{placement}:{}", signals.join(","))
    }

    pub(super) fn from_argument(argument: Option<&OsStr>) -> Self {
        let (placement, signals) = argument.and_then(|argument| argument.to_str()?.split_once(':')).unwrap_or_default();
        let signals = signals.split(',').filter_map(|number| Signal::try_from(number.parse::<i32>().ok()?).ok());
        let placement = if placement == "terminal" { Placement::NewSession } else { Placement::NewGroup };
        Self { placement, blocked: signals.collect() }
    }
}

/// Signals that ask a process to end. The command is killed if it still runs after the grace time. XCPU is the last warning before
/// the limit on processor time kills safe-run.
pub(crate) const ENDING: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGXCPU];

/// Signals that notify a process. They end only a command that does not handle them.
pub(crate) const NOTIFYING: [Signal; 5] =
    [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGVTALRM, Signal::SIGPROF];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_received_until_the_other_end_is_gone() {
        let (here, there) = Connection::pair().unwrap();
        let there = Connection(UnixStream::from(there));
        let all =
            [Status::Started(77), Status::Stopped(20), Status::Exited(255), Status::Killed(9), Status::LeftBehind(3)];
        all.into_iter().chain([Status::NotStarted(2)]).for_each(|status| there.send(status).unwrap());
        here.send_signal(15).unwrap();
        here.finish();
        assert_eq!((there.receive_signal(), there.receive_signal()), (Some(15), None));
        drop(there);
        let received: Vec<_> = std::iter::from_fn(|| here.receive()).collect();
        assert_eq!(received.len(), 6);
        assert_eq!(received[..5], all);
    }

    #[test]
    fn signals_to_an_end_that_does_not_read_fail_and_do_not_block() {
        let (here, _there) = Connection::pair().unwrap();
        let refused = std::iter::repeat_with(|| here.send_signal(10)).find_map(Result::err);
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_sent_descriptor_is_the_same_file() {
        let (here, there) = Connection::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        here.send_descriptor(writer.as_fd()).unwrap();
        drop(writer);
        let mut received = std::fs::File::from(Connection(UnixStream::from(there)).receive_descriptor().unwrap());
        received.write_all(b"sent").unwrap();
        drop(received);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "sent");
    }

    #[test]
    fn a_setup_is_decoded_as_it_was_encoded() {
        for placement in [Placement::NewGroup, Placement::NewSession] {
            for blocked in [SigSet::empty(), [Signal::SIGINT, Signal::SIGTTOU].into_iter().collect()] {
                let decoded =
                    ProcessSetup::from_argument(Some(OsStr::new(&ProcessSetup { placement, blocked }.to_argument())));
                assert_eq!((decoded.placement, decoded.blocked), (placement, blocked));
            }
        }
    }
}
