//! The agent as a program that is started for each attempt, and what a program that answers many requests has in common with it.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::pin::pin;

use counterproof_safe_run::Ending;
use counterproof_store::write::WriteError;
use reqwest::header::HeaderMap;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::persistent::death;
#[cfg(unix)]
pub(crate) use super::supervised::ProgramInput;
#[cfg(unix)]
use super::supervised::{KillGuard, start};
#[cfg(not(unix))]
pub(crate) use super::unsupervised::ProgramInput;
#[cfg(not(unix))]
use super::unsupervised::{KillGuard, start};
use crate::body_sink::{BodyDestination, BodySink, Extent, SinkLimits, is_file_shortage};
use crate::exchange::{AgentResponse, Exchange, ProgramEnd, ReceivedBody};
use crate::failure::{Fault, Reason};
use crate::settings::{AgentCommand, AttemptLimits};

/// An agent program and its supervisor.
#[derive(Debug, Clone)]
pub(crate) struct AgentProgram {
    pub(crate) command: AgentCommand,
    /// What follows the request on standard input.
    pub(crate) request_end: &'static [u8],
    /// See [`Settings::supervisor`](crate::Settings::supervisor).
    #[cfg_attr(not(unix), expect(dead_code, reason = "programs are supervised on Unix only"))]
    pub(crate) supervisor: Option<PathBuf>,
}

/// An event of a running program.
#[derive(Debug)]
pub(crate) enum ProcessEvent {
    /// A piece of standard output.
    Stdout(Vec<u8>),
    /// A piece of standard error.
    Stderr(Vec<u8>),
    /// The last event: how the program ended, or why it could not be started.
    Ended(io::Result<Ending>),
}

/// How many pieces of output may be queued. Each is the result of one read.
const QUEUED_PIECES: usize = 4;

/// How much of standard error is stored, in bytes.
const STDERR_LIMIT: usize = 64 * 1024;

/// A running program. Dropping it kills the program.
pub(crate) struct RunningProgram {
    events: mpsc::Receiver<ProcessEvent>,
    guard: KillGuard,
}

/// The output of a program as far as it was read.
pub(super) struct ProgramOutput<'run> {
    stdout: BodySink<'run>,
    end: ProgramEnd,
}

/// How the conversation with a program ended.
pub(super) enum Talk {
    /// The program ended, or could not be started.
    Ended(io::Result<Ending>),
    /// The program ended before its answer, and should have gone on.
    Died(Ending),
    /// The program printed its answer and goes on.
    Answered,
    /// The program printed more than its answer, or answered before it had read the request.
    AnsweredOutOfStep,
    /// Standard output exceeds its limit.
    OutputTooLarge,
    /// The time limit expired.
    TimedOut,
}

impl AgentProgram {
    /// Runs the program for one request until it ends or its time limit expires. Errors come from the disk.
    pub(crate) async fn exchange(
        &self,
        request: &[u8],
        limits: AttemptLimits,
        destination: BodyDestination<'_>,
    ) -> Result<Exchange, WriteError> {
        let deadline = Instant::now() + limits.timeout;
        let (mut program, input) = match RunningProgram::start(self) {
            Ok(started) => started,
            Err(error) => return Ok(not_started(&error)),
        };
        // The exit code decides whether the output is an answer, and it is known last. So all output may use the memory of
        // an answer.
        let limits = SinkLimits::of_answer(limits.bytes);
        let mut output = ProgramOutput::new(destination, limits);
        // The time limit includes writing the request: a program that never reads would block the case otherwise.
        let talk = match timeout_at(
            deadline,
            output.talk(&mut program, write_request(input, request, self.request_end)),
        )
        .await
        {
            Ok(Talk::Ended(Err(error))) => return Ok(not_started(&error)),
            Ok(talk) => talk,
            Err(_elapsed) => Talk::TimedOut,
        };
        program.kill().await;
        output.into_exchange(talk, limits)
    }
}

impl RunningProgram {
    pub(crate) fn start(program: &AgentProgram) -> io::Result<(Self, ProgramInput)> {
        let (sender, events) = mpsc::channel(QUEUED_PIECES);
        let (guard, input) = start(program, sender)?;
        Ok((Self { events, guard }, input))
    }

    pub(crate) async fn next_event(&mut self) -> ProcessEvent {
        self.events.recv().await.unwrap_or_else(|| ProcessEvent::Ended(Err(io::ErrorKind::BrokenPipe.into())))
    }

    /// Returns the next event if it has happened already.
    pub(crate) fn waiting_event(&mut self) -> Option<ProcessEvent> {
        self.events.try_recv().ok()
    }

    /// Kills the program if it is still running, and waits until all its processes are gone. Further output is discarded.
    pub(super) async fn kill(mut self) {
        // The channel must be drained: a thread that waits for room in it would never see the program's end.
        drop(self.guard);
        while self.events.recv().await.is_some() {}
    }
}

impl<'run> ProgramOutput<'run> {
    pub(super) fn new(destination: BodyDestination<'run>, limits: SinkLimits) -> Self {
        Self { stdout: BodySink::new(destination, limits), end: ProgramEnd::default() }
    }

    /// Writes the request and reads the output at the same time: a program may fill its output pipe before it has read the
    /// whole request, and sequential code would then deadlock.
    async fn talk(&mut self, program: &mut RunningProgram, writing: impl Future<Output = ()>) -> Talk {
        let mut writing = pin!(writing);
        let mut is_written = false;
        loop {
            tokio::select! {
                () = &mut writing, if !is_written => is_written = true,
                event = program.next_event() => match event {
                    ProcessEvent::Stdout(piece) => {
                        if self.stdout.write_all(&piece).is_err() {
                            return Talk::OutputTooLarge;
                        }
                    }
                    ProcessEvent::Stderr(piece) => self.store_stderr(&piece),
                    ProcessEvent::Ended(ending) => return Talk::Ended(ending),
                },
            }
        }
    }

    /// Stores a piece of a line. Returns what follows the line, once it has ended. Lines without text are skipped.
    pub(super) fn store_line<'piece>(&mut self, mut piece: &'piece [u8]) -> Result<Option<&'piece [u8]>, ()> {
        if self.stdout.accepted() == 0 {
            piece = piece.trim_ascii_start();
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        self.stdout.write_all(&piece[..end.unwrap_or(piece.len())]).map_err(drop)?;
        Ok(end.map(|end| &piece[end + 1..]))
    }

    pub(super) fn store_stderr(&mut self, piece: &[u8]) {
        // The rest is read and dropped, because a full pipe would block the program.
        let available = STDERR_LIMIT - self.end.stderr.len();
        self.end.stderr.extend_from_slice(&piece[..piece.len().min(available)]);
        if piece.len() > available {
            self.end.stderr_extent = Extent::Truncated;
        }
    }

    pub(super) fn into_exchange(self, talk: Talk, limits: SinkLimits) -> Result<Exchange, WriteError> {
        let Self { stdout, mut end } = self;
        let fault = match talk {
            Talk::Ended(Ok(ending)) => {
                end.ending = Some(ending);
                ending_fault(ending)
            }
            Talk::Ended(Err(error)) => return Ok(not_started(&error)),
            Talk::Died(ending) => {
                (end.ending, end.died) = (Some(ending), true);
                Some(Fault::new(Reason::AgentExit, death(ending)))
            }
            Talk::Answered | Talk::AnsweredOutOfStep => None,
            Talk::OutputTooLarge => {
                let message = format!("the output is larger than the limit of {} bytes", limits.total);
                Some(Fault::new(Reason::BodyTooLarge, message))
            }
            Talk::TimedOut => Some(Fault::new(Reason::ResponseTimeout, "the agent did not answer in time")),
        };
        // The output of a program that ended is complete. If the runner stopped it, more output could have followed.
        let interrupted = fault.clone().filter(|_| end.ending.is_none());
        let extent = if interrupted.is_some() { Extent::Truncated } else { Extent::Complete };
        if interrupted.is_some() {
            end.stderr_extent = Extent::Truncated;
        }
        let total = interrupted.is_none().then_some(stdout.accepted() as u64);
        let (bytes, _full) = stdout.finish(extent)?;
        let body = ReceivedBody { bytes, total, fault: interrupted, extent, note: None };
        let fault = fault.or_else(|| body.answer_size_fault(limits));
        let response = AgentResponse { status: None, headers: HeaderMap::new(), body };
        Ok(Exchange { response: Some(response), program: Some(end), fault, ..Exchange::default() })
    }
}

async fn write_request(mut input: impl AsyncWrite + Unpin, request: &[u8], end: &[u8]) {
    // A program may answer and close its input before it has read the request, so errors are ignored.
    if input.write_all(request).await.is_ok() {
        let _ = input.write_all(end).await;
    }
}

pub(super) fn not_started(error: &io::Error) -> Exchange {
    if is_file_shortage(error) {
        return Exchange::without_files();
    }
    let message = format!("the agent's program could not be started: {error}");
    let fault = Fault::new(Reason::AgentNotStarted, message);
    Exchange { program: Some(ProgramEnd::default()), ..Exchange::failed(fault) }
}

/// Returns the fault of an ending other than exit code 0, which does not depend on the output.
fn ending_fault(ending: Ending) -> Option<Fault> {
    match ending {
        Ending::Exited(0) => None,
        Ending::Exited(code) => Some(Fault::new(Reason::AgentExit, format!("the agent exited with code {code}"))),
        Ending::Killed(signal) => {
            Some(Fault::new(Reason::AgentSignal, format!("the agent was terminated by signal {signal}")))
        }
    }
}
