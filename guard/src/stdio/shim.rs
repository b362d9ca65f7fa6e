//! The process of a shim: starts the server and the threads of both directions, and ends everything in bounded time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use counterproof_ledger::event::{CallStatus, ErrorClass, RunStatus, Termination};
use counterproof_redaction::{RedactingStream, Redactor};
use counterproof_safe_run::{
    CommandSignals, CommandStreams, Ending, Options, StartError, SupervisedCommand, TakenSignals,
};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

use super::{ClientEnd, ClientOutput, ClientPump, ServerEnd, ServerPump};
use crate::agent_run;
use crate::cassette::Cassette;
use crate::mcp::{PendingCalls, error_message};
use crate::session::{CallResult, OpenCallsEnd, Session};

/// How long the server may run after its input has ended, after a signal, and after TERM.
const GRACE: Duration = Duration::from_secs(5);

/// How long the server may work on open requests after its input has ended.
const LAST_REQUESTS: Duration = Duration::from_mins(1);

/// How long a server may run after it has closed its output, before its open requests are answered with an error.
const CLOSED_OUTPUT: Duration = Duration::from_millis(500);

/// The code of the error that answers a request whose server has ended: the first of those that JSON-RPC leaves to servers.
const SERVER_ENDED: i64 = -32000;

/// How long to read what the server has written before it ended.
const DRAIN: Duration = Duration::from_secs(2);

pub struct ShimOptions<'a> {
    pub command: &'a [OsString],
    /// Changes of its environment: secrets, and variables that it must not receive.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    /// The injected secrets, which the client must not receive.
    pub secrets: Option<Redactor>,
    pub cassette: Option<Arc<Cassette>>,
    pub session: Arc<Session>,
    /// The signals of this process, as [`counterproof_safe_run::Signals::take_from_process`] sends them.
    pub signals: PipeReader,
    pub taken: TakenSignals,
    pub on_terminated: Box<dyn Fn(&Termination)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShimEnd {
    pub status: RunStatus,
    pub server: Ending,
}

#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("failed to set up the streams of the server: {0}")]
    Setup(#[from] io::Error),
}

/// Runs a shim on the standard streams of this process until the server has ended. Records the end of the run.
pub fn run_shim(options: ShimOptions<'_>) -> Result<ShimEnd, ShimError> {
    let session = options.session.clone();
    match start(options) {
        Ok(mut running) => {
            let end = running.run();
            let exit = agent_run::process_exit(end.server);
            session.finish_process(end.status, open_calls_end(end.status), Some(exit));
            Ok(end)
        }
        Err(error) => {
            let exit = agent_run::failed_start(&error);
            session.finish_process(RunStatus::Failed, open_calls_end(RunStatus::Failed), Some(exit));
            Err(error)
        }
    }
}

/// How calls end whose response never came.
pub(super) const fn open_calls_end(status: RunStatus) -> OpenCallsEnd {
    match status {
        RunStatus::Cancelled => OpenCallsEnd {
            status: CallStatus::Cancelled,
            class: ErrorClass::Unknown,
            message: "the run was cancelled before the server answered",
        },
        RunStatus::Terminated => OpenCallsEnd {
            status: CallStatus::Cancelled,
            class: ErrorClass::PolicyBlock,
            message: "a rule ended the run before the server answered",
        },
        RunStatus::Failed | RunStatus::Succeeded => OpenCallsEnd {
            status: CallStatus::Error,
            class: ErrorClass::Transport,
            message: "the server ended without an answer",
        },
    }
}

pub(super) fn is_ending(signal: u8) -> bool {
    let ending = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::XCPU];
    Signal::from_named_raw(i32::from(signal)).is_some_and(|signal| ending.contains(&signal))
}

struct Running {
    session: Arc<Session>,
    pending: Arc<PendingCalls>,
    client: Arc<ClientOutput>,
    happened: Receiver<ShimEvent>,
    signals: CommandSignals,
    waiter: Option<thread::JoinHandle<SupervisedCommand>>,
    on_terminated: Box<dyn Fn(&Termination)>,
    /// What happens next if nothing else does.
    deadline: Option<(Instant, Next)>,
    status: Option<RunStatus>,
    has_stopped_server: bool,
    /// True if the server ended, or closed its output, before it answered all calls.
    has_lost_calls: bool,
    ending: Option<Ending>,
    /// Number of outputs of the server that are read and have not ended.
    open_outputs: usize,
    is_server_output_open: bool,
    last_requests_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Answer the requests that are open at a server that has closed its output and runs on.
    AnswerOpen,
    Terminate,
    Kill,
    /// Kill what is left after the server itself has ended.
    Finish,
}

fn start(options: ShimOptions<'_>) -> Result<Running, ShimError> {
    // Pipes, and not the streams of this process: every byte passes the guard.
    let (server_input, to_server) = io::pipe()?;
    let (from_server, server_output) = io::pipe()?;
    let (stderr, from_stderr) = server_stderr(options.secrets.as_ref())?;
    // The supervisor kills the server and all processes below it, also if this process is killed.
    let run = Options { owns_process: true, environment: options.environment, ..Options::default() };
    let streams = CommandStreams { stdin: server_input.as_fd(), stdout: server_output.into(), stderr };
    let command = SupervisedCommand::start(options.command, &run, streams, &options.taken)?;
    // Only the server holds its end now: when this process closes the other end, the server's input ends.
    drop(server_input);
    let (sender, happened) = mpsc::channel();
    let signals = command.signals();
    let pending = Arc::new(PendingCalls::default());
    let stdout = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
    let client = Arc::new(ClientOutput::new(Box::new(stdout)));
    let wire = Wire {
        session: options.session.clone(),
        pending: pending.clone(),
        client: client.clone(),
        cassette: options.cassette,
        sender: sender.clone(),
    };
    // A thread for each direction: the server may not read while it writes, and a loop over both would wait for one of them
    // forever.
    spawn_client(wire.clone(), to_server)?;
    spawn_server(wire, from_server, options.secrets.clone())?;
    let mut open_outputs = 1;
    if let (Some(from_stderr), Some(secrets)) = (from_stderr, options.secrets) {
        spawn_stderr(from_stderr, secrets, sender.clone())?;
        open_outputs += 1;
    }
    let to_main = sender.clone();
    spawn_signals(options.signals, move |signal| _ = to_main.send(ShimEvent::Signal(signal)))?;
    let waiter = thread::Builder::new().name("server".to_owned()).spawn(move || {
        let _ = sender.send(ShimEvent::ServerEnded(command.wait()));
        command
    })?;
    Ok(Running {
        session: options.session,
        pending,
        client,
        happened,
        signals,
        waiter: Some(waiter),
        on_terminated: options.on_terminated,
        deadline: None,
        status: None,
        has_stopped_server: false,
        has_lost_calls: false,
        ending: None,
        open_outputs,
        is_server_output_open: true,
        last_requests_until: None,
    })
}

impl Running {
    fn run(&mut self) -> ShimEnd {
        // Both: a server can end before its last bytes are read, and close its output before it ends.
        while !(self.ending.is_some() && self.open_outputs == 0) {
            match self.next() {
                Ok(happened) => self.handle(happened),
                Err(RecvTimeoutError::Timeout) => {
                    if self.on_deadline() {
                        break;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.finish()
    }

    fn next(&self) -> Result<ShimEvent, RecvTimeoutError> {
        match self.deadline {
            Some((deadline, _)) => self.happened.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            None => self.happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn handle(&mut self, happened: ShimEvent) {
        match happened {
            ShimEvent::ClientClosed => {
                self.status.get_or_insert(RunStatus::Succeeded);
                // A script may pipe requests into a server and close its end at once: their responses are still forwarded.
                self.last_requests_until = self.is_server_output_open.then(|| Instant::now() + LAST_REQUESTS);
                self.end_within(GRACE, Next::Terminate);
            }
            ShimEvent::ClientGone => {
                self.status.get_or_insert(RunStatus::Succeeded);
                self.last_requests_until = None;
                self.end_within(GRACE, Next::Terminate);
            }
            ShimEvent::Terminated => {
                if let Some(termination) = self.session.termination() {
                    (self.on_terminated)(&termination);
                }
                // Also over an earlier status: the rule is the reason that counts.
                self.status = Some(RunStatus::Terminated);
                self.stop_server(Signal::TERM.as_raw());
            }
            ShimEvent::Signal(signal) => self.handle_signal(signal),
            ShimEvent::ServerClosed => {
                // No response can come any more.
                self.last_requests_until = None;
                self.is_server_output_open = false;
                self.open_outputs -= 1;
                match self.ending {
                    Some(_) => self.end_client(),
                    // Usually the end of its process follows at once, and says why.
                    None => self.end_within(CLOSED_OUTPUT, Next::AnswerOpen),
                }
            }
            ShimEvent::StderrClosed => self.open_outputs -= 1,
            ShimEvent::ServerEnded(ending) => {
                self.ending = Some(ending);
                if !self.is_server_output_open {
                    self.end_client();
                }
                // A process that the server has left behind may hold its output open.
                self.deadline = Some((Instant::now() + DRAIN, Next::Finish));
            }
        }
    }

    fn handle_signal(&mut self, signal: u8) {
        let number = i32::from(signal);
        if is_ending(signal) {
            // The signals of a client that reacts to the end of the run do not cancel it.
            if self.status != Some(RunStatus::Terminated) {
                self.status = Some(RunStatus::Cancelled);
            }
            return self.stop_server(number);
        }
        self.signals.send(number);
        if Signal::from_named_raw(number) == Some(Signal::TSTP) {
            // The server has got the signal. This process stops itself, since it handles TSTP instead of being stopped by it.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        }
    }

    /// Sends a signal that ends the server, and kills it after the grace time.
    fn stop_server(&mut self, signal: i32) {
        if self.ending.is_none() {
            self.has_stopped_server = true;
            self.last_requests_until = None;
            self.signals.send(signal);
            self.end_within(GRACE, Next::Kill);
        }
    }

    /// Sets a deadline, unless a later stage is already scheduled.
    fn end_within(&mut self, time: Duration, next: Next) {
        let is_next = match self.deadline {
            None => true,
            // Only a stricter stage replaces a deadline, so that repeated signals do not delay the end.
            Some((_, before)) => match next {
                Next::AnswerOpen => before == Next::Terminate,
                Next::Terminate => false,
                Next::Kill => matches!(before, Next::AnswerOpen | Next::Terminate),
                Next::Finish => true,
            },
        };
        if is_next && self.ending.is_none() {
            self.deadline = Some((Instant::now() + time, next));
        }
    }

    fn on_deadline(&mut self) -> bool {
        let next = self.deadline.take().map(|(_, next)| next);
        match next {
            Some(Next::AnswerOpen) => {
                self.end_client();
                // A server without output cannot be used. If the client has closed its end before, only its open calls are lost.
                if self.has_lost_calls && self.status == Some(RunStatus::Succeeded) {
                    self.status = Some(RunStatus::Failed);
                }
                self.status.get_or_insert(RunStatus::Failed);
                self.end_within(GRACE, Next::Terminate);
                false
            }
            Some(Next::Terminate) => {
                let now = Instant::now();
                if self.last_requests_until.is_some_and(|until| now < until) && !self.pending.is_empty() {
                    // The client may still read: a script that pipes requests into a server waits for all answers.
                    self.deadline = Some((now + Duration::from_millis(100), Next::Terminate));
                    return false;
                }
                self.stop_server(Signal::TERM.as_raw());
                false
            }
            Some(Next::Kill) => {
                // The end of the server follows within some seconds.
                self.signals.kill();
                false
            }
            Some(Next::Finish) | None => true,
        }
    }

    /// Answers the open requests with an error, and closes the output of the client.
    fn end_client(&mut self) {
        let reason = match self.ending {
            Some(Ending::Exited(code)) => format!("the server ended with code {code}"),
            Some(Ending::Killed(signal)) => format!("the server was ended by signal {signal}"),
            None => "the server closed its output".to_owned(),
        };
        let OpenCallsEnd { status, class, message } = open_calls_end(self.status.unwrap_or(RunStatus::Failed));
        // A client that has closed its end, and a server that then ends well without an answer, have agreed on that.
        let is_shutdown = self.status == Some(RunStatus::Succeeded) && self.ending.is_some_and(Ending::is_success);
        let mut answers = Vec::new();
        for (id, call) in self.pending.take_requests() {
            if let Some(call) = call {
                self.has_lost_calls = true;
                // As for any answer: the end is recorded before it is written.
                self.session.end(&call, CallResult::unanswered(status, class, message));
            }
            if !is_shutdown {
                answers.push(error_message(Some(&id), SERVER_ENDED, &reason));
            }
        }
        let (client, (done, written)) = (self.client.clone(), mpsc::channel());
        // A thread of its own, which a client that does not read can block.
        let writer = thread::Builder::new().name("last answers".to_owned()).spawn(move || {
            // A client that has gone needs no answer.
            let _ = answers.iter().try_for_each(|answer| client.answer(answer));
            client.close();
            let _ = done.send(());
        });
        if writer.is_ok() {
            let _ = written.recv_timeout(DRAIN);
        }
        // The client reads the end of the output, even if the server keeps running.
        if let Ok(nothing) = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            let _ = rustix::stdio::dup2_stdout(&nothing);
        }
    }

    /// Kills what is left, and waits for the last bytes.
    fn finish(&mut self) -> ShimEnd {
        let ending = self.ending.unwrap_or(Ending::Killed(9));
        self.signals.kill();
        if self.ending.is_some()
            && let Some(command) = self.waiter.take().and_then(|waiter| waiter.join().ok())
        {
            command.finish();
        }
        // With all processes gone, the server's output ends.
        let deadline = Instant::now() + DRAIN;
        while self.open_outputs > 0 {
            match self.happened.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(ShimEvent::ServerClosed | ShimEvent::StderrClosed) => self.open_outputs -= 1,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        self.end_client();
        ShimEnd { status: self.status(ending), server: ending }
    }

    fn status(&self, ending: Ending) -> RunStatus {
        // A server that this process has stopped may end with any code. One that ended on its own must have answered all calls.
        let is_crash = !self.has_stopped_server && (!ending.is_success() || self.has_lost_calls);
        match self.status {
            Some(RunStatus::Cancelled | RunStatus::Terminated | RunStatus::Failed) => {
                self.status.unwrap_or(RunStatus::Failed)
            }
            _ if is_crash => RunStatus::Failed,
            _ => RunStatus::Succeeded,
        }
    }
}

const STDERR_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
pub(super) enum ShimEvent {
    ClientClosed,
    ClientGone,
    ServerClosed,
    StderrClosed,
    ServerEnded(Ending),
    Signal(u8),
    Terminated,
}

pub(super) fn server_stderr(secrets: Option<&Redactor>) -> io::Result<(OwnedFd, Option<PipeReader>)> {
    // Without secrets, the server writes to the standard error of this process itself: nothing can be lost or delayed.
    if secrets.is_none() {
        return Ok((rustix::stdio::stderr().try_clone_to_owned()?, None));
    }
    let (reader, writer) = io::pipe()?;
    Ok((writer.into(), Some(reader)))
}

#[derive(Clone)]
pub(super) struct Wire {
    pub(super) session: Arc<Session>,
    pub(super) pending: Arc<PendingCalls>,
    pub(super) client: Arc<ClientOutput>,
    pub(super) cassette: Option<Arc<Cassette>>,
    pub(super) sender: Sender<ShimEvent>,
}

pub(super) fn spawn_client(wire: Wire, to_server: io::PipeWriter) -> io::Result<()> {
    let input = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
    thread::Builder::new().name("client".to_owned()).spawn(move || {
        let on_terminated = || {
            let _ = wire.sender.send(ShimEvent::Terminated);
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
            ClientEnd::Closed | ClientEnd::Unreadable(_) => wire.sender.send(ShimEvent::ClientClosed),
            ClientEnd::ClientGone => wire.sender.send(ShimEvent::ClientGone),
            // The end of the server is reported by the thread that waits for it.
            ClientEnd::ServerGone => Ok(()),
        };
    })?;
    Ok(())
}

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
            let _ = wire.sender.send(ShimEvent::ClientGone);
        }
        let _ = wire.sender.send(ShimEvent::ServerClosed);
    })?;
    Ok(())
}

pub(super) fn spawn_signals(mut signals: PipeReader, on_signal: impl Fn(u8) + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut signal = [0];
        while signals.read_exact(&mut signal).is_ok() {
            on_signal(signal[0]);
        }
    })?;
    Ok(())
}

pub(super) fn spawn_stderr(from_stderr: PipeReader, secrets: Redactor, sender: Sender<ShimEvent>) -> io::Result<()> {
    thread::Builder::new().name("stderr".to_owned()).spawn(move || {
        // An output that cannot be written has no other place for its error.
        let _ = forward_stderr(from_stderr, secrets);
        let _ = sender.send(ShimEvent::StderrClosed);
    })?;
    Ok(())
}

/// Forwards the server's standard error without secrets.
fn forward_stderr(mut from_stderr: PipeReader, secrets: Redactor) -> io::Result<()> {
    // What may be the beginning of a secret waits for what follows.
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
