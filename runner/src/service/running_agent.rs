//! An agent that is started before a run and stopped after it, under the supervision of safe-run.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::{RedactError, Redactor, url_secrets};
use counterproof_safe_run::{Cancellation, Command, Ending, Input, Options, OutputMode, StartError};
use counterproof_store::write::WriteError;

use super::output::Output;
use super::readiness::{Probe, Question, accepts};
use super::start_spec::{Awaited, PlacedSpec, StartSpec, free_port};
use crate::environment::{Interrupt, Urgency};
use crate::secret::Secret;
use crate::settings::{AgentCommand, BaseUrl, BaseUrlError};

/// How long the agent may take to end after TERM, before it is killed.
const GRACE: Duration = Duration::from_secs(1);

/// The time between two questions whether the agent is ready.
const PROBE_INTERVAL: Duration = Duration::from_millis(25);

/// How long to look for another server at the address of the agent.
const LOOK: Duration = Duration::from_millis(500);

/// What the programs of a side are started with.
#[derive(Debug, Clone, Default)]
pub struct StartContext {
    /// See [`Settings::supervisor`](crate::Settings::supervisor).
    pub supervisor: Option<PathBuf>,
    /// The file for the output of the program, which must not exist. Its folder is created.
    pub log: Utf8PathBuf,
    /// Text that the file must not contain, in addition to the values of variables and the secrets of the command.
    pub secrets: Vec<Secret>,
    /// Ends the start. It is abandoned when the agent ends while it is needed.
    pub interrupt: Interrupt,
}

/// An agent that is ready. Dropping it stops the agent with all processes that it has started, and waits until they are gone.
/// They also end if this process is killed.
#[derive(Debug)]
pub struct RunningAgent {
    base_url: BaseUrl,
    process: Process,
}

/// A process of an agent, ready or not.
#[derive(Debug)]
struct Process {
    output: Arc<Output>,
    log: Utf8PathBuf,
    stop: Cancellation,
    thread: Option<JoinHandle<()>>,
}

/// An agent that ended although it was needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent ended with {ending} {when}{}", LastLines(lines, log))]
pub struct AgentDied {
    /// How it ended.
    pub ending: Ending,
    /// `before it was ready` or `during the run`.
    pub when: &'static str,
    /// The last lines of its output, masked.
    pub lines: Vec<String>,
    /// The file with its output.
    pub log: Utf8PathBuf,
}

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AgentStartError {
    /// The program could not be started.
    #[error("the agent could not be started")]
    NotStarted(#[source] StartError),
    /// The agent ended before it was ready.
    #[error(transparent)]
    Died(#[from] AgentDied),
    /// The agent was not ready in time. It was stopped.
    #[error("the agent was not ready within {timeout:?}: waited for {awaited}{}", LastLines(lines, log))]
    NeverReady {
        /// What was waited for.
        awaited: String,
        /// How long.
        timeout: Duration,
        /// The last lines of its output, masked.
        lines: Vec<String>,
        /// The file with its output.
        log: Utf8PathBuf,
    },
    /// Another program listens at the address of the agent, and would answer in its place.
    #[error("another program listens at {0}, where the agent would start")]
    AddressInUse(String),
    /// No port is free.
    #[error("no free port for the agent")]
    NoPort(#[source] io::Error),
    /// The base URL or the URL of `ready` is invalid.
    #[error(transparent)]
    Url(#[from] BaseUrlError),
    /// The file for the output could not be created.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A secret cannot be masked.
    #[error(transparent)]
    Secret(#[from] RedactError),
    /// The system provides no thread, timer or HTTP client.
    #[error("cannot wait for the agent")]
    System(#[source] io::Error),
    /// The start was interrupted.
    #[error("interrupted while the agent was starting")]
    Interrupted,
}

/// The end of a message about a program: its last lines, or that there are none.
pub(super) struct LastLines<'a>(pub(super) &'a [String], pub(super) &'a Utf8Path);

impl fmt::Display for LastLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("; it printed nothing");
        }
        write!(f, "; the last lines of {}:", self.1)?;
        self.0.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl RunningAgent {
    /// Starts an agent and waits until it is ready.
    pub fn start(spec: &StartSpec, context: &StartContext) -> Result<Self, AgentStartError> {
        let port = free_port().map_err(AgentStartError::NoPort)?;
        let PlacedSpec { command, base_url, ready } = spec.at_port(port)?;
        if !spec.has_own_port() && base_url.is_loopback() && accepts(&base_url, LOOK) {
            return Err(AgentStartError::AddressInUse(base_url.recorded().to_owned()));
        }
        let secrets = url_secrets(base_url.full().as_str());
        let redactor = redactor(&command, context, &secrets)?;
        let awaited = if let Awaited::Line(text) = &ready { Some(text.clone()) } else { None };
        let probe = Probe::new(&ready).map_err(AgentStartError::System)?;
        let output = Output::create(&context.log, redactor, awaited)?;
        let process = Process::start(&command, context, output).map_err(AgentStartError::System)?;
        process.wait_until_ready(spec.ready_timeout, &probe, &ready, &context.interrupt)?;
        Ok(Self { base_url, process })
    }

    /// Returns the base URL with the chosen port.
    pub fn base_url(&self) -> &BaseUrl {
        &self.base_url
    }

    /// Returns the last lines of its output, masked.
    pub fn last_lines(&self) -> Vec<String> {
        self.process.output.last_lines()
    }

    /// Returns how the agent ended, if it ended since it was ready.
    pub fn died(&self) -> Option<AgentDied> {
        self.process.died("during the run")?.ok()
    }
}

impl Process {
    fn start(command: &AgentCommand, context: &StartContext, output: Output) -> io::Result<Self> {
        let (output, stop) = (Arc::new(output), Cancellation::default());
        let run = supervised(command, context, stop.clone(), GRACE)?;
        let observed = output.clone();
        let thread = thread::Builder::new().name("agent".to_owned()).spawn(move || {
            let ended = run.run(&mut |stream, _, bytes| observed.push(stream, bytes));
            observed.end(ended.map(|record| record.ending));
        })?;
        Ok(Self { output, log: context.log.clone(), stop, thread: Some(thread) })
    }

    fn wait_until_ready(
        &self,
        timeout: Duration,
        probe: &Probe,
        awaited: &Awaited,
        interrupt: &Interrupt,
    ) -> Result<(), AgentStartError> {
        let started = Instant::now();
        // A time that the clock cannot represent has no practical use.
        let deadline = started + timeout.min(Duration::from_hours(24));
        let question = Question { started, deadline, output: &self.output, interrupt };
        loop {
            let is_ready = probe.is_ready(&question);
            // Before the answer counts: another program may have given it.
            if let Some(died) = self.died("before it was ready") {
                return Err(died.map_or_else(AgentStartError::NotStarted, AgentStartError::Died));
            }
            if interrupt.reached(Urgency::Finish) {
                return Err(AgentStartError::Interrupted);
            }
            if is_ready && self.output.interrupt_on_end(interrupt.clone()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let (lines, log) = (self.output.last_lines(), self.log.clone());
                return Err(AgentStartError::NeverReady { awaited: awaited.to_string(), timeout, lines, log });
            }
            interrupt.at(Urgency::Finish).wait(PROBE_INTERVAL);
        }
    }

    fn died(&self, when: &'static str) -> Option<Result<AgentDied, StartError>> {
        // The end comes after the last line.
        let ending = self.output.ending()?;
        let (lines, log) = (self.output.last_lines(), self.log.clone());
        Some(ending.map(|ending| AgentDied { ending, when, lines, log }))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.output.forget_interrupt();
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // It returns when no process is left.
            let _ = thread.join();
        }
    }
}

/// Returns a supervised command without input.
pub(super) fn supervised(
    command: &AgentCommand,
    context: &StartContext,
    cancel: Cancellation,
    grace: Duration,
) -> io::Result<Command> {
    let options = Options {
        output: OutputMode::ObserveOnly,
        grace,
        drain: Duration::ZERO,
        supervisor: context.supervisor.clone(),
        working_directory: command.folder().map(Into::into),
        environment: command.variables().to_options(),
        ..Options::default()
    };
    Ok(Command { options, input: Input::bytes(b"")?, cancel, ..Command::new(command.words()) })
}

/// Returns what masks the output of a command.
pub(super) fn redactor(
    command: &AgentCommand,
    context: &StartContext,
    others: &[String],
) -> Result<Redactor, RedactError> {
    let secrets = command.secrets();
    let configured = context.secrets.iter().map(Secret::expose);
    Redactor::new(configured.chain(secrets.iter().chain(others).map(String::as_str)))
}
