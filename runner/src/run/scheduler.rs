//! A whole run: the folder, the cases with bounded concurrency, the end. How one case is asked is told elsewhere.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::CaseId;
use counterproof_cases::CaseSpec;
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::CreateError;
use counterproof_store::write::WriteError;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use crate::agent::{Asking, Dialect};
use crate::attempt::execute::Bounds;
use crate::attempt::transport::Transport;
use crate::event::{Counts, EventKind, Reporter, RunEvent};
use crate::http::client::ClientError;
use crate::policy::circuit::{Circuit, GivenUp};
use crate::policy::pace::Pace;
use crate::policy::retry_budget::Purse;
use crate::record::attempt_recorder::Keeper;
use crate::record::run_document::{self, millis};
use crate::run::case_runner::{Asked, Asker, Settled};
use crate::run::start::{self, ResumeError};
use crate::settings::run_settings::{PhaseTimeouts, Settings};
use crate::settings::secret::{self, Secret};
use crate::system::checkout::Checkout;
use crate::system::clock::{Clock, SystemClock};
use crate::system::interrupt::{Interrupt, Urgency};
use crate::system::jitter::Jitter;

/// Events that may wait for the reporter; a reporter that is slower than that slows the run down.
const WAITING_EVENTS: usize = 256;

/// Cases that are left out cost the agent nothing; this many are written at once.
const UNASKED_AT_ONCE: usize = 16;

/// Longer time-outs end no attempt of any use, and the system's clocks cannot count to all of them.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24 * 365);

/// What a run takes from its surroundings.
pub struct Environment {
    /// Where times are read.
    pub clock: Arc<dyn Clock>,
    /// Where the random part of waits comes from.
    pub jitter: Jitter,
    /// What is checked out here, for `run.json`.
    pub checkout: Option<Checkout>,
    /// The handle by which the run is stopped.
    pub interrupt: Interrupt,
}

impl Environment {
    /// The real clock and real randomness, and no checkout.
    pub fn of_system() -> Self {
        Self {
            clock: Arc::new(SystemClock::start()),
            jitter: Jitter::from_system(),
            checkout: None,
            interrupt: Interrupt::default(),
        }
    }
}

/// How a run went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The run folder.
    pub folder: Utf8PathBuf,
    /// How many cases went which way.
    pub counts: Counts,
    /// True where any attempt got as far as the agent.
    pub reached: bool,
    /// True where the run was stopped before its end.
    pub interrupted: bool,
    /// For how long of the run its files were on their way to the disk, and waited for; cases are asked meanwhile.
    pub syncing: Duration,
}

/// Why a run could not be made, or not be finished. A case that fails is no such error: it has its artifact.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run folder could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The run could not be resumed.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A name that goes into names of files holds a text that was named as a secret. It is not quoted.
    #[error("{0} holds a secret, and it names files")]
    SecretName(String),
    /// The HTTP client could not be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The system gives no threads or no timers.
    #[error("failed to start the runner")]
    Start(#[source] std::io::Error),
}

/// Asks every case of the agent and keeps what came back: in a new run folder, or what is missing in one that is there.
///
/// The call blocks until the run is over, and drives its requests on a runtime of its own: call it from a plain thread,
/// not from within an async task.
pub fn run(
    settings: &Settings,
    cases: &[CaseSpec],
    environment: Environment,
    reporter: &mut dyn Reporter,
) -> Result<Summary, RunError> {
    let dialect: Arc<dyn Dialect> = settings.protocol.dialect(&settings.agent).into();
    let transport = Transport::new(settings, dialect.path())?;
    let redactor = redactor(settings)?;
    refuse_secret_names(settings, cases)?;
    // Answers are judged and written on blocking threads, so two threads keep many requests in flight.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("counterproof-runner")
        .enable_all()
        .build()
        .map_err(RunError::Start)?;

    let clock = environment.clock.clone();
    let start = clock.read();
    let begun = start::begin(settings, cases, environment.checkout.as_ref(), &redactor, start)?;

    let (events, received) = mpsc::channel(WAITING_EVENTS);
    let (settled, settling) = mpsc::unbounded_channel();
    let keeper = Arc::new(Keeper {
        url: redactor.text(&settings.recorded_url(), &mut Applied::default()),
        timeout_ms: millis(settings.timeout),
        limits: settings.limits,
        redactor,
        dialect,
        protocol: settings.protocol,
        header_names: settings.headers.iter().map(|header| header.name().to_string()).collect(),
        run: begun.folder.with_journal()?,
    });
    let asker = Asker {
        transport,
        bounds: bounds(settings),
        policy: settings.retry.clone(),
        purse: Purse::new(settings.retry.budget.for_cases(begun.cases.len())),
        pace: Pace::new(settings.concurrency, settings.rate),
        given_up: GivenUp::default(),
        clock: environment.clock,
        jitter: environment.jitter,
        keeper: keeper.clone(),
        keep_requests: settings.keep_requests,
        interrupt: environment.interrupt,
        events,
        settled,
    };
    let mut drive = Drive {
        settings,
        asker: Arc::new(asker),
        received,
        settling,
        unsettled: 0,
        tasks: JoinSet::new(),
        counts: begun.counts,
        circuit: Circuit::new(settings.fail_fast),
        again: begun.again,
        // An agent that answered before, or is not asked at all, is not out of reach.
        reached: begun.counts.answered > 0 || begun.cases.is_empty(),
        error: None,
        reporter,
        latest: Duration::ZERO,
    };
    drive.tell(EventKind::RunStarted {
        run_id: settings.run_id.clone(),
        side: settings.side,
        folder: keeper.run.folder().to_owned(),
        cases: begun.cases.len(),
    });
    runtime.block_on(drive.all(&begun.cases));

    let interrupted = drive.asker.interrupt.reached(Urgency::Finish) && drive.counts.not_run() > 0;
    let finished = keeper.run.finish();
    let end = clock.read();
    let duration = end.elapsed.saturating_sub(start.elapsed) + begun.earlier;
    let document = run_document::ended(begun.document, &drive.counts, duration, interrupted);
    let closed = finished.and_then(|syncing| {
        keeper.run.write_manifest(&end.iso())?;
        keeper.run.write_run(&document)?;
        Ok(syncing)
    });
    // The first failure is the cause; what follows it is its consequence.
    let syncing = drive.error.take().map_or(closed, Err)?;
    drive.tell(EventKind::RunFinished { counts: drive.counts });
    let folder = keeper.run.folder().to_owned();
    Ok(Summary { folder, counts: drive.counts, reached: drive.reached, interrupted, syncing })
}

fn redactor(settings: &Settings) -> Result<Redactor, ClientError> {
    let secrets = secret::all(settings);
    Ok(Redactor::new(secrets.iter().map(Secret::expose))?)
}

/// Ids are names of files, which cannot be masked. Only what somebody named as a secret counts: the values of headers are
/// taken for secrets too, and an id may well hold one that is none.
fn refuse_secret_names(settings: &Settings, cases: &[CaseSpec]) -> Result<(), RunError> {
    let holds_secret = |name: &str| {
        let mut values = settings.secrets.iter().map(Secret::expose).filter(|value| !value.is_empty());
        values.any(|value| name.contains(value))
    };
    if holds_secret(settings.run_id.as_str()) {
        return Err(RunError::SecretName("the id of the run".to_owned()));
    }
    match cases.iter().position(|case| holds_secret(case.id.as_str())) {
        Some(index) => Err(RunError::SecretName(format!("the id of case number {}", index + 1))),
        None => Ok(()),
    }
}

fn bounds(settings: &Settings) -> Bounds {
    let timeout = settings.timeout.min(LONGEST_TIMEOUT);
    let PhaseTimeouts { first_byte, idle, .. } = settings.phases;
    let first_byte = first_byte.map_or(timeout, |first_byte| first_byte.min(timeout));
    Bounds { timeout, first_byte, idle: idle.min(LONGEST_TIMEOUT), limits: settings.limits }
}

/// The loop that starts cases, passes events on and counts.
struct Drive<'run> {
    settings: &'run Settings,
    asker: Arc<Asker>,
    received: mpsc::Receiver<RunEvent>,
    settling: mpsc::UnboundedReceiver<Settled>,
    /// Cases that were asked to their end, less those whose artifact is known to be on disk: the one may be told before the
    /// other.
    unsettled: isize,
    tasks: JoinSet<Result<Option<Asked>, WriteError>>,
    circuit: Circuit,
    counts: Counts,
    /// Cases whose artifact goes when they are asked, with what it counted for.
    again: HashMap<CaseId, Counts>,
    reached: bool,
    /// The first file that could not be written: no further case is started after it.
    error: Option<WriteError>,
    reporter: &'run mut dyn Reporter,
    /// The time of the event that was reported last.
    latest: Duration,
}

impl Drive<'_> {
    async fn all(&mut self, cases: &[&CaseSpec]) {
        let mut waiting = cases.iter();
        let interrupt = self.asker.interrupt.clone();
        let mut stopping = false;
        loop {
            stopping |= self.error.is_some();
            while !stopping && self.tasks.len() < self.room() {
                let Some(case) = waiting.next() else { break };
                self.start(case);
            }
            if self.tasks.is_empty() && self.unsettled == 0 {
                break;
            }
            tokio::select! {
                // Events come first, so that a reporter hears of a case before it is counted.
                biased;
                Some(event) = self.received.recv() => self.pass_on(event),
                Some(settled) = self.settling.recv() => self.count(settled),
                Some(ended) = self.tasks.join_next() => {
                    let was_open = self.circuit.open();
                    self.end(ended);
                    if let Some(in_a_row) = self.circuit.open().filter(|_| was_open.is_none()) {
                        self.asker.given_up.say(in_a_row);
                        self.tell(EventKind::AgentGivenUp { in_a_row: in_a_row.get(), not_asked: waiting.len() });
                    }
                }
                () = interrupt.wait_for(Urgency::Finish), if !stopping => {
                    stopping = true;
                    self.tell(EventKind::RunInterrupted { in_flight: self.tasks.len() });
                    let (interrupt, grace) = (interrupt.clone(), self.settings.grace);
                    // Not one of the run's tasks: it ends with the runtime, whether or not its time has come.
                    tokio::spawn(async move {
                        tokio::time::sleep(grace).await;
                        interrupt.raise(Urgency::Abandon);
                    });
                }
            }
        }
        while let Ok(event) = self.received.try_recv() {
            self.pass_on(event);
        }
    }

    /// How many cases may be in flight.
    fn room(&self) -> usize {
        match self.circuit.open() {
            Some(_) => UNASKED_AT_ONCE,
            None => self.asker.pace.limit().get(),
        }
    }

    fn start(&mut self, case: &CaseSpec) {
        if let Some(in_a_row) = self.circuit.open() {
            // What was kept of an earlier try says more than that there was no later one.
            if !self.again.contains_key(&case.id) {
                let (asker, case_id) = (self.asker.clone(), case.id.clone());
                self.tasks.spawn(async move { asker.leave_out(case_id, in_a_row).await });
            }
            return;
        }
        if let Some(counted) = self.again.remove(&case.id) {
            self.counts.take_back(&counted);
            if let Err(error) = self.asker.keeper.run.discard_case(&case.id) {
                self.error.get_or_insert(error);
                return;
            }
        }
        let asking = Asking { case, side: self.settings.side, run_id: &self.settings.run_id };
        let written = match &self.settings.resend {
            Some(body) => Ok(body.clone()),
            None => self.asker.keeper.dialect.request(asking),
        };
        match written {
            Ok(request) => {
                let (asker, case_id) = (self.asker.clone(), case.id.clone());
                self.tasks.spawn(async move { asker.ask(case_id, request).await });
            }
            // JSON values and strings always serialise; a type that does not would be our own mistake.
            Err(error) => {
                let path = self.asker.keeper.run.folder().join(format!("{}.json", case.id));
                self.error.get_or_insert(WriteError { path, source: error.into() });
            }
        }
    }

    /// A case leaves its place to the next one.
    fn end(&mut self, ended: Result<Result<Option<Asked>, WriteError>, JoinError>) {
        match ended {
            Ok(Ok(Some(asked))) => {
                self.unsettled += 1;
                self.reached |= asked.reached;
                self.circuit.count(asked.failure.as_ref());
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                self.error.get_or_insert(error);
            }
            Err(error) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }

    /// A case is complete.
    fn count(&mut self, Settled { written, asked, event }: Settled) {
        self.unsettled -= 1;
        if let Err(error) = written {
            self.error.get_or_insert(error);
            return;
        }
        self.pass_on(event);
        self.counts.attempts += asked.attempts as usize;
        self.counts.retried += usize::from(asked.attempts > 1);
        self.counts.over_budget += usize::from(asked.over_budget);
        self.counts.not_asked += usize::from(asked.attempts == 0);
        let count = if asked.failure.is_some() { &mut self.counts.failed } else { &mut self.counts.answered };
        *count += 1;
    }

    fn tell(&mut self, kind: EventKind) {
        self.pass_on(RunEvent::now(&*self.asker.clock, kind));
    }

    /// Events of several cases can overtake each other on their way here; for their reader, time goes on.
    fn pass_on(&mut self, event: RunEvent) {
        self.latest = self.latest.max(event.elapsed);
        self.reporter.report(&RunEvent { elapsed: self.latest, ..event });
    }
}
