//! The connection between safe-run, the supervisor and the launcher: a socket pair.
//!
//! Downwards, the first message carries a file descriptor; each further byte is the number of a signal to send, and the end of the
//! stream means "finish". Upwards, each message is a [`Status`] frame of five bytes; the end of the stream means that the process
//! is gone.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use super::status::Status;

/// One end of the connection.
#[derive(Debug)]
pub(crate) struct Connection(UnixStream);

impl Connection {
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = UnixStream::pair()?;
        Ok((Self(here), there.into()))
    }

    /// Returns the connection that this process received as its standard input.
    pub(crate) fn from_stdin() -> io::Result<Self> {
        Ok(Self(UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?)))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Sends a file descriptor.
    pub(crate) fn send_descriptor(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        // A descriptor travels with at least one byte of data; the value of the byte has no meaning.
        rustix::net::sendmsg(&self.0, &[IoSlice::new(b"d")], &mut ancillary, SendFlags::empty())?;
        Ok(())
    }

    /// Receives the file descriptor that the other end sends.
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

    /// Asks the other end to send a signal to the command's process group.
    pub(crate) fn send_signal(&self, signal: i32) -> io::Result<()> {
        (&self.0).write_all(&[u8::try_from(signal).unwrap_or(0)])
    }

    /// Receives the next signal to send; `None` means "finish".
    pub(crate) fn receive_signal(&self) -> Option<i32> {
        let mut byte = [0];
        (&self.0).read_exact(&mut byte).ok().map(|()| i32::from(byte[0]))
    }

    /// Asks the other end to kill every remaining process.
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

/// A received descriptor must not be inherited by the processes that this one starts.
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
}
