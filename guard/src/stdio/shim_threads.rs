//! The threads of a shim: both directions, the standard error of the server, and the signals.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use counterproof_redaction::{RedactingStream, Redactor};
use counterproof_safe_run::Ending;
use rustix::fs::{Mode, OFlags};

use super::{ClientEnd, ClientOutput, ClientPump, ServerEnd, ServerPump};
use crate::cassette::Cassette;
use crate::mcp::PendingCalls;
use crate::session::Session;

/// Bytes per read of the server's standard error.
const STDERR_BYTES: usize = 64 * 1024;

/// What happens while a shim runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Happened {
    ClientClosed,
    ClientGone,
    ServerClosed,
    StderrClosed,
    ServerEnded(Ending),
    Signal(u8),
    Terminated,
}

/// Returns the standard error of the server. It is our own, unless secrets must be masked in it.
pub(super) fn server_stderr(secrets: Option<&Redactor>) -> io::Result<(OwnedFd, Option<PipeReader>)> {
    if secrets.is_none() {
        return Ok((rustix::stdio::stderr().try_clone_to_owned()?, None));
    }
    let (reader, writer) = io::pipe()?;
    Ok((writer.into(), Some(reader)))
}

/// What both directions share.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) session: Arc<Session>,
    pub(super) pending: Arc<PendingCalls>,
    pub(super) client: Arc<ClientOutput>,
    pub(super) cassette: Option<Arc<Cassette>>,
    pub(super) sender: Sender<Happened>,
}

/// Starts the thread of the direction from the client to the server.
pub(super) fn spawn_client(wire: Wire, to_server: io::PipeWriter) -> io::Result<()> {
    let input = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
    thread::Builder::new().name("client".to_owned()).spawn(move || {
        let on_terminated = || {
            let _ = wire.sender.send(Happened::Terminated);
        };
        let pump = ClientPump {
            session: &wire.session,
            pending: &wire.pending,
            client: &wire.client,
            cassette: wire.cassette.as_deref(),
            on_terminated: &on_terminated,
        };
        let end = pump.run(input, to_server);
        // The server does not read any more. A client that still writes gets an error, as without the guard.
        if let Ok(nothing) = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            let _ = rustix::stdio::dup2_stdin(&nothing);
        }
        let _ = match end {
            ClientEnd::Closed | ClientEnd::Unreadable(_) => wire.sender.send(Happened::ClientClosed),
            ClientEnd::ClientGone => wire.sender.send(Happened::ClientGone),
            // The end of the server is reported by the thread that waits for it.
            ClientEnd::ServerGone => Ok(()),
        };
    })?;
    Ok(())
}

/// Starts the thread of the direction from the server to the client.
pub(super) fn spawn_server(wire: Wire, from_server: PipeReader, secrets: Option<Redactor>) -> io::Result<()> {
    thread::Builder::new().name("server-output".to_owned()).spawn(move || {
        let pump = ServerPump {
            session: &wire.session,
            pending: &wire.pending,
            client: &wire.client,
            secrets: secrets.as_ref(),
            cassette: wire.cassette.as_deref(),
        };
        // The reader is dropped here, so a server that still writes gets an error.
        if matches!(pump.run(from_server), ServerEnd::ClientGone) {
            let _ = wire.sender.send(Happened::ClientGone);
        }
        // The client reads the end of the output, even if the server keeps running.
        wire.client.close();
        if let Ok(nothing) = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            let _ = rustix::stdio::dup2_stdout(&nothing);
        }
        let _ = wire.sender.send(Happened::ServerClosed);
    })?;
    Ok(())
}

/// Starts the thread that calls a function with each signal of this process.
pub(super) fn spawn_signals(mut signals: PipeReader, on_signal: impl Fn(u8) + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut signal = [0];
        while signals.read_exact(&mut signal).is_ok() {
            on_signal(signal[0]);
        }
    })?;
    Ok(())
}

/// Starts the thread that forwards the server's standard error.
pub(super) fn spawn_stderr(from_stderr: PipeReader, secrets: Redactor, sender: Sender<Happened>) -> io::Result<()> {
    thread::Builder::new().name("stderr".to_owned()).spawn(move || {
        // An output that cannot be written has no other place for its error.
        let _ = forward_stderr(from_stderr, secrets);
        let _ = sender.send(Happened::StderrClosed);
    })?;
    Ok(())
}

/// Forwards the server's standard error without secrets. What may be the beginning of a secret waits for what follows.
fn forward_stderr(mut from_stderr: PipeReader, secrets: Redactor) -> io::Result<()> {
    let mut redacting = RedactingStream::new(secrets);
    let mut piece = vec![0; STDERR_BYTES];
    loop {
        let read = match from_stderr.read(&mut piece) {
            Ok(0) => return io::stderr().write_all(&redacting.finish().0),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut safe = redacting.push(&piece[..read]);
        safe.extend(redacting.flush());
        io::stderr().write_all(&safe)?;
    }
}
