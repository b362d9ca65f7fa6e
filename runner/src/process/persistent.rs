//! Agent programs that answer many requests: one line of input, one line of output. Each worker is one process.

use std::io;
use std::sync::{Mutex, PoisonError};

use counterproof_safe_run::Ending;
use counterproof_store::write::WriteError;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};

use super::run_program::{AgentProgram, ProcessEvent, ProgramInput, ProgramOutput, RunningProgram, Talk, not_started};
use crate::body_sink::{BodyDestination, SinkLimits};
use crate::exchange::Exchange;
use crate::settings::AttemptLimits;

/// The workers of a program. As many run as cases are in flight.
pub(crate) struct PersistentProgram {
    program: AgentProgram,
    /// The workers that wait for a request.
    idle: Mutex<Vec<Worker>>,
}

/// One process that answers one request after the other. Dropping it kills the process.
struct Worker {
    program: RunningProgram,
    input: ProgramInput,
}

/// Whether a worker can answer another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It has answered and waits for the next request.
    In,
    /// It has ended, or has printed what does not belong to a request. Its next line could answer an earlier request.
    Out,
}

impl PersistentProgram {
    pub(crate) fn new(program: AgentProgram) -> Self {
        let command = program.command.clone().unbuffered();
        Self { program: AgentProgram { command, ..program }, idle: Mutex::default() }
    }

    /// Sends one request to a worker, which is started if none waits. Errors come from the disk.
    pub(crate) async fn exchange(
        &self,
        request: &[u8],
        limits: AttemptLimits,
        destination: BodyDestination<'_>,
    ) -> Result<Exchange, WriteError> {
        let deadline = Instant::now() + limits.timeout;
        let limits = SinkLimits::of_answer(limits.bytes);
        let mut output = ProgramOutput::new(destination, limits);
        let mut worker = match self.worker(&mut output) {
            Ok(worker) => worker,
            Err(error) => return Ok(not_started(&error)),
        };
        let talk = match timeout_at(deadline, worker.answer(request, &mut output)).await {
            Ok(Talk::Ended(Err(error))) => return Ok(not_started(&error)),
            // A program that answers many requests does not end, whatever its exit code.
            Ok(Talk::Ended(Ok(ending))) => Talk::Died(ending),
            Ok(talk) => talk,
            Err(_elapsed) => Talk::TimedOut,
        };
        if matches!(talk, Talk::Answered) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        } else {
            worker.program.kill().await;
        }
        output.into_exchange(talk, limits)
    }

    /// Returns a worker that waits for a request.
    fn worker(&self, output: &mut ProgramOutput<'_>) -> io::Result<Worker> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut worker) = idle else { return Worker::start(&self.program) };
            if worker.catch_up(output) == Step::In {
                return Ok(worker);
            }
        }
    }
}

impl Worker {
    fn start(program: &AgentProgram) -> io::Result<Self> {
        let (program, input) = RunningProgram::start(program)?;
        Ok(Self { program, input })
    }

    /// Reads what the worker has printed since its last answer.
    fn catch_up(&mut self, output: &mut ProgramOutput<'_>) -> Step {
        while let Some(event) = self.program.waiting_event() {
            match event {
                ProcessEvent::Stderr(piece) => output.store_stderr(&piece),
                ProcessEvent::Stdout(piece) if piece.trim_ascii().is_empty() => {}
                ProcessEvent::Stdout(_) | ProcessEvent::Ended(_) => return Step::Out,
            }
        }
        Step::In
    }

    /// Writes the request as one line, and reads one line. It does both at the same time, because a program may print before it
    /// has read the whole request.
    async fn answer(&mut self, request: &[u8], output: &mut ProgramOutput<'_>) -> Talk {
        let Self { program, input } = self;
        let mut writing = std::pin::pin!(write_line(input, request));
        let mut is_written = false;
        loop {
            tokio::select! {
                // First the request, whose end decides below whether the worker is in step.
                biased;
                () = &mut writing, if !is_written => is_written = true,
                event = program.next_event() => match event {
                    ProcessEvent::Stdout(piece) => match output.store_line(&piece) {
                        Err(()) => return Talk::OutputTooLarge,
                        Ok(None) => {}
                        // Without the whole request, the worker would read its rest as the next request.
                        Ok(Some(rest)) if is_written && rest.trim_ascii().is_empty() => return Talk::Answered,
                        Ok(Some(_)) => return Talk::AnsweredOutOfStep,
                    },
                    ProcessEvent::Stderr(piece) => output.store_stderr(&piece),
                    ProcessEvent::Ended(ending) => return Talk::Ended(ending),
                },
            }
        }
    }
}

async fn write_line(input: &mut (impl AsyncWrite + Unpin), request: &[u8]) {
    // An error means that the program has closed its input. Its end, or the time limit, is then the result.
    if input.write_all(request).await.is_ok() && input.write_all(b"\n").await.is_ok() {
        let _ = input.flush().await;
    }
}

/// Returns how a worker ended, for messages.
pub(super) fn death(ending: Ending) -> String {
    match ending {
        Ending::Exited(code) => format!("the agent exited with code {code} before it answered"),
        Ending::Killed(signal) => format!("the agent was terminated by signal {signal} before it answered"),
    }
}
