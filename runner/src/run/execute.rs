//! The entry point: opens the run folder, runs all cases, and closes the run with its statistics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, Run};
use counterproof_cases::CaseSpec;
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::write::WriteError;
use counterproof_store::{CreateError, ReadError, ReopenError, RunWriter};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::case_runner::AgentDown;
use super::case_runner::CaseRunner;
use super::scheduler::Scheduler;
use super::started_run::{RunInputs, StartedRun};
use crate::agent::ProtocolAdapter;
use crate::attempt::Transport;
use crate::environment::{Environment, Interrupt, Moment, Urgency, whole_millis};
use crate::event::{Counts, EventKind, Reporter, RunEvent};
use crate::folder::{Changes, ClaimError, SalvageError};
use crate::http::ClientError;
use crate::policy::{Pace, RetryTokens};
use crate::record::{AttemptRecorder, RunEnd, finished};
use crate::secret::Secret;
use crate::settings::{AttemptLimits, Settings, Start, known_secrets};
use crate::tools::{McpError, Toolbox};

/// How many events may wait for the reporter. A slower reporter slows the run down.
const QUEUED_EVENTS: usize = 256;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The run folder.
    pub folder: Utf8PathBuf,
    /// The numbers of cases by outcome.
    pub counts: Counts,
    /// Whether any attempt reached the agent.
    pub reached: bool,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// The parts that answers of the native protocol lacked and the runner filled in, with the numbers of cases.
    pub filled_in: BTreeMap<String, usize>,
    /// The limit of the run that skipped cases, with the sum that reached it.
    pub limit: Option<String>,
    /// Whether the run failed: no case was answered, more failed than allowed, or cases were skipped.
    pub failed: bool,
}

/// Runs every case against the agent and records the evidence, in a new run folder or in one that is resumed.
///
/// Blocks until the run is over, and runs its own async runtime: call it from a plain thread, not from an async task.
pub fn run(
    settings: &Settings,
    cases: &[CaseSpec],
    environment: Environment,
    reporter: &mut dyn Reporter,
) -> Result<Summary, RunError> {
    let (runtime, prepared) = prepare(settings, cases, &environment.interrupt)?;
    let start = environment.clock.read();
    let checkout = environment.checkout.as_ref();
    let mut inputs = RunInputs { settings, cases, checkout, redactor: &prepared.redactor, start };
    // Only now, since an earlier process stops once the shard is claimed.
    let claimed = match &settings.shard {
        Some(shard) if settings.start == Start::TakeOver => Some(StartedRun::claimed(&inputs, shard)?),
        _ => None,
    };
    let settings = claimed.as_ref().unwrap_or(settings);
    inputs.settings = settings;
    let StartedRun { folder, document, cases, counts, reruns, used, earlier } = StartedRun::open(&inputs)?;
    let spending = environment.spending.clone();
    for usage in &used {
        spending.add(usage.as_ref());
    }

    let (case_runner, received) = prepared.case_runner(settings, environment, folder, cases.len());
    let recorder = case_runner.recorder.clone();
    let mut scheduler = Scheduler::new(settings, case_runner, spending, received, reporter);
    scheduler.resume_from(counts, reruns);
    // An agent that answered earlier, or that no case needs, does not count as unreachable.
    scheduler.reached = counts.answered > 0 || cases.is_empty();
    scheduler.report(EventKind::RunStarted {
        run_id: settings.run_id.clone(),
        side: settings.side,
        folder: recorder.run.folder().to_owned(),
        cases: cases.len(),
    });
    runtime.block_on(scheduler.run_all(&cases));
    close(&mut scheduler, document, start, earlier)
}

/// What a run needs before its folder is created.
pub(super) struct Prepared {
    adapter: Arc<dyn ProtocolAdapter>,
    transport: Transport,
    redactor: Redactor,
    toolbox: Toolbox,
}

/// Checks the cases, and starts the MCP servers. A server that does not start leaves no run folder behind.
pub(super) fn prepare(
    settings: &Settings,
    cases: &[CaseSpec],
    interrupt: &Interrupt,
) -> Result<(Runtime, Prepared), RunError> {
    let adapter: Arc<dyn ProtocolAdapter> = settings.protocol.adapter(&settings.agent).into();
    let transport = Transport::new(settings, &*adapter)?;
    let redactor = redactor(settings, &transport)?;
    // Before the folder is created, whose name is the run id.
    reject_secret_names(settings, cases)?;
    if settings.saved_request.is_none() {
        check_cases(&*adapter, cases)?;
    }
    let runtime = runtime()?;
    let mut toolbox = Toolbox::new(settings);
    runtime.block_on(async {
        tokio::select! {
            biased;
            started = toolbox.start_servers(settings, settings.timeout) => {
                started.map_err(|error| RunError::Mcp(error.masked(&redactor)))
            }
            () = interrupt.wait_for(Urgency::Finish) => Err(RunError::Interrupted),
        }
    })?;
    Ok((runtime, Prepared { adapter, transport, redactor, toolbox }))
}

impl Prepared {
    /// Returns what runs this many cases, and the receiver of its events.
    pub(super) fn case_runner(
        self,
        settings: &Settings,
        environment: Environment,
        folder: RunWriter,
        cases: usize,
    ) -> (CaseRunner, mpsc::Receiver<RunEvent>) {
        let Self { adapter, transport, redactor, toolbox } = self;
        let (events, received) = mpsc::channel(QUEUED_EVENTS);
        let case_runner = CaseRunner {
            transport,
            limits: AttemptLimits::from_settings(settings),
            policy: settings.retry.clone(),
            tokens: RetryTokens::new(settings.retry.budget.for_cases(cases)),
            pace: Pace::new(settings.concurrency, settings.rate),
            agent_down: AgentDown::default(),
            clock: environment.clock,
            jitter: environment.jitter,
            recorder: Arc::new(recorder(settings, redactor, adapter, folder)),
            save_requests: settings.save_requests,
            interrupt: environment.interrupt,
            run_id: settings.run_id.clone(),
            toolbox,
            max_turns: settings.tools.max_turns,
            events,
            observed: None,
        };
        (case_runner, received)
    }
}

/// Writes the manifest and the statistics.
fn close(scheduler: &mut Scheduler<'_>, document: Run, start: Moment, earlier: Duration) -> Result<Summary, RunError> {
    let counts = scheduler.counts;
    let recorder = scheduler.case_runner.recorder.clone();
    let interrupted = scheduler.case_runner.interrupt.reached(Urgency::Finish) && counts.not_run() > 0;
    let end = scheduler.case_runner.clock.read();
    let duration = end.elapsed.saturating_sub(start.elapsed) + earlier;
    let failed = !interrupted && scheduler.has_failed();
    let document = finished(document, &RunEnd { counts: &counts, duration, interrupted, failed });
    let closed = recorder.run.write_manifest(&end.iso()).and_then(|()| recorder.run.write_run(&document));
    // The first error is the cause; later ones are its consequences.
    scheduler.error.take().map_or(closed, Err)?;
    scheduler.report(EventKind::RunFinished { counts });
    let folder = recorder.run.folder().to_owned();
    let (reached, limit, filled_in) = (scheduler.reached, scheduler.limit.clone(), recorder.filled_in());
    Ok(Summary { folder, counts, reached, interrupted, filled_in, limit, failed })
}

/// Creates the async runtime. Recording happens on blocking threads, so one worker is enough for many requests in flight.
fn runtime() -> Result<Runtime, RunError> {
    // With a second worker, a request that is passed to a connection at the moment when the connection closes can be lost:
    // it then waits for its whole time-out, because the channel between the two (tokio's `mpsc`) keeps a value that is sent
    // while its receiver is dropped on another thread.
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("counterproof-runner")
        .enable_all()
        .build()
        .map_err(RunError::Start)
}

fn recorder(
    settings: &Settings,
    redactor: Redactor,
    adapter: Arc<dyn ProtocolAdapter>,
    run: RunWriter,
) -> AttemptRecorder {
    AttemptRecorder {
        url: redactor.text(&settings.recorded_url(), &mut Applied::default()),
        timeout_ms: whole_millis(settings.timeout),
        limits: settings.limits,
        redactor,
        adapter,
        protocol: settings.protocol,
        filled_in: Mutex::default(),
        header_names: settings.headers.iter().map(|header| header.name().to_string()).collect(),
        run,
    }
}

fn redactor(settings: &Settings, transport: &Transport) -> Result<Redactor, ClientError> {
    let secrets = known_secrets(settings);
    Ok(Redactor::new(secrets.iter().chain(transport.secrets()).map(Secret::expose))?)
}

/// Rejects ids that contain a secret, because file names cannot be masked.
fn reject_secret_names(settings: &Settings, cases: &[CaseSpec]) -> Result<(), RunError> {
    // Only configured secrets count. Header values are treated as secrets elsewhere, but many are not, and an id may
    // legitimately contain one.
    let contains_secret = |name: &str| {
        let mut values = settings.secrets.iter().map(Secret::expose).filter(|value| !value.is_empty());
        values.any(|value| name.contains(value))
    };
    if contains_secret(settings.run_id.as_str()) {
        return Err(RunError::SecretRunId);
    }
    match cases.iter().position(|case| contains_secret(case.id.as_str())) {
        Some(index) => Err(RunError::SecretCaseId { number: index + 1 }),
        None => Ok(()),
    }
}

/// Checks that every request can be built.
fn check_cases(adapter: &dyn ProtocolAdapter, cases: &[CaseSpec]) -> Result<(), RunError> {
    cases.iter().try_for_each(|case| {
        adapter.check_case(case).map_err(|message| RunError::Request { case_id: case.id.clone(), message })
    })
}

/// Why a run could not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run folder could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The run could not be resumed.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The shard could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The run id, which is a file name, contains a configured secret. The message does not quote it.
    #[error("the run id contains a secret, and run ids are file names")]
    SecretRunId,
    /// A case id, which is a file name, contains a configured secret. The message does not quote it.
    #[error("the id of case number {number} contains a secret, and case ids are file names")]
    SecretCaseId {
        /// The position of the case, counted from 1.
        number: usize,
    },
    /// The body of the configuration has a placeholder for which a case has no value.
    #[error("case `{case_id}`: {message}")]
    Request {
        /// The case.
        case_id: CaseId,
        /// The placeholder and its line.
        message: String,
    },
    /// An MCP server could not be started.
    #[error(transparent)]
    Mcp(#[from] McpError),
    /// The run was interrupted while the MCP servers were starting. There is no run folder.
    #[error("interrupted before the first request")]
    Interrupted,
    /// The HTTP client could not be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The system provides no threads or timers.
    #[error("failed to start the runner")]
    Start(#[source] std::io::Error),
}

/// Why a run could not be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The run folder could not be reopened.
    #[error(transparent)]
    Reopen(#[from] ReopenError),
    /// A file of the run could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be written or removed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The cases or settings differ from the ones of the started run.
    #[error("the run `{}` was started with other cases or settings: {changes}", run.run_id)]
    Changed {
        /// The document of the started run.
        run: Box<Run>,
        /// The differences.
        changes: Changes,
    },
}

impl From<SalvageError> for ResumeError {
    fn from(error: SalvageError) -> Self {
        match error {
            SalvageError::Read(error) => error.into(),
            SalvageError::Write(error) => error.into(),
        }
    }
}
