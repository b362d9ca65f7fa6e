//! What the processes say to one another: commands of one byte downwards, frames of five bytes upwards. The first message
//! downwards carries a file descriptor, and the end of the connection is a message of its own.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// What the supervisor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The command runs, and this is its process and its group.
    Started(i32),
    /// The command could not be started: the system's number of the error.
    NotStarted(i32),
    /// The command was stopped by a signal.
    Stopped(i32),
    /// The command ended with a code.
    Exited(i32),
    /// The command was ended by a signal.
    Killed(i32),
    /// So many processes were left behind and have been killed.
    LeftBehind(i32),
}

impl Said {
    fn frame(self) -> [u8; 5] {
        let (tag, value) = match self {
            Said::Started(value) => (b'p', value),
            Said::NotStarted(value) => (b'x', value),
            Said::Stopped(value) => (b't', value),
            Said::Exited(value) => (b'e', value),
            Said::Killed(value) => (b'k', value),
            Said::LeftBehind(value) => (b'l', value),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    fn of([tag, value @ ..]: [u8; 5]) -> Option<Self> {
        let value = i32::from_le_bytes(value);
        Some(match tag {
            b'p' => Said::Started(value),
            b'x' => Said::NotStarted(value),
            b't' => Said::Stopped(value),
            b'e' => Said::Exited(value),
            b'k' => Said::Killed(value),
            b'l' => Said::LeftBehind(value),
            _ => return None,
        })
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Control(UnixStream);

impl Control {
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = UnixStream::pair()?;
        Ok((Self(here), there.into()))
    }

    /// The connection that this process was started with, in the place of its standard input.
    pub(crate) fn of_stdin() -> io::Result<Self> {
        Ok(Self(UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?)))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Hands over a descriptor.
    pub(crate) fn send_descriptor(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        rustix::net::sendmsg(&self.0, &[IoSlice::new(b"d")], &mut ancillary, SendFlags::empty())?;
        Ok(())
    }

    /// Takes the descriptor that the other end hands over.
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

    /// Has a signal sent to the command's group.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        (&self.0).write_all(&[u8::try_from(signal).unwrap_or(0)])
    }

    /// The next signal to send; `None` when it is time to finish.
    pub(crate) fn next_signal(&self) -> Option<i32> {
        let mut byte = [0];
        (&self.0).read_exact(&mut byte).ok().map(|()| i32::from(byte[0]))
    }

    /// Has everything finished that still runs.
    pub(crate) fn finish(&self) {
        // Where the other end is gone, it has finished.
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }

    pub(crate) fn say(&self, said: Said) -> io::Result<()> {
        (&self.0).write_all(&said.frame())
    }

    /// The next thing said; `None` when the other end is gone.
    pub(crate) fn hear(&self) -> Option<Said> {
        let mut frame = [0; 5];
        (&self.0).read_exact(&mut frame).ok().and_then(|()| Said::of(frame))
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Nothing that we start may inherit what we were handed.
fn receive_flags() -> RecvFlags {
    #[cfg(not(target_vendor = "apple"))]
    return RecvFlags::CMSG_CLOEXEC;
    #[cfg(target_vendor = "apple")]
    RecvFlags::empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_until_the_other_end_is_gone() {
        let (here, there) = Control::pair().unwrap();
        let there = Control(UnixStream::from(there));
        let all = [Said::Started(77), Said::Stopped(20), Said::Exited(255), Said::Killed(9), Said::LeftBehind(3)];
        all.into_iter().chain([Said::NotStarted(2)]).for_each(|said| there.say(said).unwrap());
        here.signal(15).unwrap();
        here.finish();
        assert_eq!((there.next_signal(), there.next_signal()), (Some(15), None));
        drop(there);
        let heard: Vec<_> = std::iter::from_fn(|| here.hear()).collect();
        assert_eq!(heard.len(), 6);
        assert_eq!(heard[..5], all);
    }

    #[test]
    fn a_descriptor_that_is_handed_over_is_the_same_file() {
        let (here, there) = Control::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        here.send_descriptor(writer.as_fd()).unwrap();
        drop(writer);
        let mut received = std::fs::File::from(Control(UnixStream::from(there)).receive_descriptor().unwrap());
        received.write_all(b"handed over").unwrap();
        drop(received);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "handed over");
    }
}
