//! Starts the agent of a run under supervision, and ends it.

use std::ffi::OsString;
use std::io::{self, PipeReader, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use counterproof_ledger::event::{RunStatus, Termination};
use counterproof_safe_run::{
    Ending, Input, Io, Options, OutputMode, Signals, StartError, Stream, TakenSignals, record_after_taking,
};

use super::variables::TERMINATION;
use super::{RunSettings, TerminationPipe};

/// TERM, which asks the agent to end. After the grace time, every process of the agent is killed.
const TERM: u8 = 15;

/// An agent and how it is run.
#[derive(Debug)]
pub struct AgentRun {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The identity and the settings of the run.
    pub settings: RunSettings,
    /// Gives the agent a terminal: input and output of this process are one.
    pub has_terminal: bool,
    /// How long the agent may run after it was asked to end.
    pub grace: Duration,
    /// The signals of this process, which were taken before, and their receiver.
    pub signals: (Signals, PipeReader, TakenSignals),
    /// The program that supervises the agent; see the options of safe-run.
    pub supervisor: Option<PathBuf>,
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEnd {
    /// How its process ended.
    pub ending: Ending,
    /// The rule that ended the run.
    pub termination: Option<Termination>,
    /// True if a signal to this process, a key of the terminal, or the end of the reader of its output ended the agent.
    pub is_cancelled: bool,
    /// Number of processes that it left behind and that were killed.
    pub left_behind: u32,
}

impl AgentEnd {
    /// Returns how the run ended.
    pub fn status(&self) -> RunStatus {
        match &self.termination {
            Some(_) => RunStatus::Terminated,
            None if self.is_cancelled => RunStatus::Cancelled,
            None if self.ending.is_success() => RunStatus::Succeeded,
            None => RunStatus::Failed,
        }
    }
}

/// An agent that was not started.
#[derive(Debug, thiserror::Error)]
pub enum AgentRunError {
    /// The command failed to start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The pipe for the end of the run could not be created.
    #[error("cannot create the pipe by which a rule ends the run")]
    Pipe(#[source] io::Error),
}

/// Runs an agent to its end, with the streams of this process. Kills the processes that it leaves behind.
pub fn run_agent(run: AgentRun) -> Result<AgentEnd, AgentRunError> {
    let pipe = TerminationPipe::create().map_err(AgentRunError::Pipe)?;
    let mut reader = pipe.open().map_err(AgentRunError::Pipe)?;
    let (signals, received, taken) = run.signals;
    let termination = Arc::new(Mutex::new(None));
    {
        let (termination, signals) = (termination.clone(), signals.clone());
        // Never joined: it waits for requests until the process ends.
        thread::spawn(move || {
            loop {
                let request = reader.next();
                lock(&termination).get_or_insert(request);
                signals.send(TERM);
            }
        });
    }
    let mut environment = run.settings.environment();
    environment.insert(TERMINATION.into(), Some(pipe.path().as_str().into()));
    let options = Options {
        terminal: run.has_terminal,
        output: OutputMode::ObserveOnly,
        grace: run.grace,
        owns_process: true,
        supervisor: run.supervisor,
        environment,
        ..Options::default()
    };
    let io = Io { input: Input::Inherited, signals: signals.clone(), received };
    let has_terminal = run.has_terminal;
    let mut is_closed = false;
    let record = record_after_taking(&run.command, &options, io, taken, &mut |stream, _, bytes| {
        if !is_closed && forward(stream, bytes).is_err() {
            // The reader of the output has gone. Without this process in between, the agent would receive SIGPIPE.
            is_closed = true;
            signals.send(TERM);
        }
    })?;
    Ok(AgentEnd {
        ending: record.ending,
        termination: lock(&termination).take(),
        is_cancelled: if is_closed {
            // Without a reader, an agent may have ended well before it noticed.
            !record.ending.is_success()
        } else {
            record.aborted_by.is_some() || (has_terminal && is_interrupt(record.ending))
        },
        left_behind: record.left_behind,
    })
}

/// Returns true for the signals of the keys that interrupt and quit. On a terminal of its own, only the agent receives them.
const fn is_interrupt(ending: Ending) -> bool {
    matches!(ending, Ending::Killed(2 | 3))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forward(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        Stream::Stdout => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes)?;
            stdout.flush()
        }
        Stream::Stderr => io::stderr().write_all(bytes),
    }
}
