//! Runs one case from its first attempt to its artifact. The scheduler decides which case is next.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use counterproof_artifact::{Attempt, Case, CaseId, REQUEST_ASSET_HREF, RunId, RunnerFailure, Usage};
use counterproof_redaction::Applied;
use counterproof_store::write::WriteError;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use super::trial::TrialExchange;
use crate::attempt::{AttemptContext, Transport};
use crate::body_sink::BodyDestination;
use crate::environment::{Clock, Interrupt, Jitter, Urgency, whole_millis};
use crate::event::{EventKind, FailureNote, RunEvent};
use crate::http::Connection;
use crate::policy::{Decision, FailedAttempt, Pace, RetryPolicy, RetryTokens};
use crate::record::{
    AttemptRecorder, ReceivedAnswer, RecordedAttempt, RecordedFailure, SKIPPED, artifact, skipped_case,
};
use crate::settings::AttemptLimits;
use crate::tools::Toolbox;

/// The field of an attempt that another one follows: how long the runner waited.
const RETRY_DELAY: &str = "retry_delay_ms";

/// Runs cases. All cases of a run share it.
pub(super) struct CaseRunner {
    pub(super) transport: Transport,
    pub(super) limits: AttemptLimits,
    pub(super) policy: RetryPolicy,
    pub(super) tokens: RetryTokens,
    pub(super) pace: Pace,
    /// Once set, no request is sent.
    pub(super) agent_down: AgentDown,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) jitter: Jitter,
    pub(super) recorder: Arc<AttemptRecorder>,
    pub(super) save_requests: bool,
    pub(super) interrupt: Interrupt,
    pub(super) run_id: RunId,
    pub(super) toolbox: Toolbox,
    /// The maximum number of requests until the model calls no more tools.
    pub(super) max_turns: NonZeroU32,
    pub(super) events: mpsc::Sender<RunEvent>,
    /// All exchanges, if they are shown and not only recorded.
    pub(super) observed: Option<Mutex<Vec<TrialExchange>>>,
}

/// A case whose artifact is durable.
#[derive(Debug)]
pub(super) struct CaseOutcome {
    pub(super) attempts: u32,
    /// Whether a request was sent again. A conversation has several requests, each with its own attempts.
    pub(super) retried: bool,
    /// The failure of the last attempt; `None` if the agent answered.
    pub(super) failure: Option<FailureNote>,
    pub(super) reached: bool,
    /// Whether only the run's retry budget prevented another attempt.
    pub(super) over_budget: bool,
    /// What the answer used, if it reports that.
    pub(super) usage: Option<Usage>,
    /// The event that the case is complete.
    pub(super) event: RunEvent,
}

/// The attempts of a case so far.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// Their entries in the artifact.
    pub(super) entries: Vec<Attempt>,
    /// Whether any attempt reached the agent.
    pub(super) reached: bool,
    /// Whether only the run's retry budget prevented another attempt.
    pub(super) over_budget: bool,
}

/// Why a case is completed without a request.
#[derive(Debug, Clone)]
pub(super) enum SkipCause {
    /// The agent looks down after this many consecutive failures.
    AgentDown(NonZeroU32),
    /// A limit of the run is reached, as this text says.
    Limit(String),
}

impl SkipCause {
    fn message(&self) -> String {
        match self {
            Self::AgentDown(consecutive) => {
                let failures = if consecutive.get() == 1 { "failure" } else { "consecutive failures" };
                format!("the case was not run: the agent looks down after {consecutive} {failures}")
            }
            Self::Limit(cause) => format!("the case was not run: {cause}"),
        }
    }
}

/// What follows a failed attempt.
enum AfterFailure {
    /// Retry now. The runner has already waited this long.
    Retry(Duration),
    Stop {
        over_budget: bool,
    },
    Abandon,
}

/// Why a wait ended.
pub(super) enum WaitEnd {
    Elapsed,
    /// The agent looks down after this many consecutive failures.
    AgentDown(NonZeroU32),
    /// The run was asked to abandon attempts in flight.
    Abandoned,
}

impl CaseRunner {
    /// Runs a case with a single request until its artifact is durable. Returns `None` if the run was asked to abandon it.
    pub(super) async fn run(&self, case_id: CaseId, request: Vec<u8>) -> Result<Option<CaseOutcome>, WriteError> {
        match self.begin(&case_id).await {
            WaitEnd::Elapsed => {}
            WaitEnd::AgentDown(consecutive) => return self.skip(case_id, SkipCause::AgentDown(consecutive)).await,
            WaitEnd::Abandoned => return Ok(None),
        }
        let mut attempts = Attempts::default();
        let Some(result) = self.request(&case_id, &request, &mut attempts).await? else { return Ok(None) };
        let result = match result {
            Ok(answer) => Ok((answer.case, answer.applied)),
            Err(failure) => Err((failure.document, failure.note)),
        };
        self.complete(case_id, result, attempts, request).await.map(Some)
    }

    /// Reports that a case starts, and waits for its first request.
    pub(super) async fn begin(&self, case_id: &CaseId) -> WaitEnd {
        // Before the wait, so that the reporter shows a case that waits for its turn as running.
        self.report(EventKind::CaseStarted { case_id: case_id.clone() }).await;
        self.wait_for_turn(Duration::ZERO).await
    }

    /// Sends one request until it is answered or not retried. Returns `None` if the run was asked to abandon it.
    pub(super) async fn request(
        &self,
        case_id: &CaseId,
        request: &[u8],
        attempts: &mut Attempts,
    ) -> Result<Option<Result<Box<ReceivedAnswer>, Box<RecordedFailure>>>, WriteError> {
        for number in 1.. {
            let of_case = u32::try_from(attempts.entries.len() + 1).unwrap_or(u32::MAX);
            // A kept connection may have caused the failure of an earlier attempt.
            let connection = if number == 1 { Connection::KeptOrFresh } else { Connection::Fresh };
            let Some(attempt) = self.attempt(of_case, connection, case_id, request).await? else { return Ok(None) };
            let RecordedAttempt { mut entry, result, reached } = attempt;
            // Over all attempts: a later attempt that fails to connect does not undo that the agent was reached.
            attempts.reached |= reached;
            if let Err(failure) = &result {
                match self.after_failure(case_id, failure, number).await {
                    AfterFailure::Retry(waited) => {
                        entry.extra.insert(RETRY_DELAY.to_owned(), whole_millis(waited).into());
                        attempts.entries.push(entry);
                        continue;
                    }
                    AfterFailure::Stop { over_budget } => attempts.over_budget = over_budget,
                    AfterFailure::Abandon => return Ok(None),
                }
            }
            attempts.entries.push(entry);
            return Ok(Some(result));
        }
        Ok(None)
    }

    /// Writes the artifact of a case: of its answer with the redaction rules that masked something, or of its failure.
    pub(super) async fn complete(
        &self,
        case_id: CaseId,
        result: Result<(Case, Applied), (RunnerFailure, FailureNote)>,
        attempts: Attempts,
        request: Vec<u8>,
    ) -> Result<CaseOutcome, WriteError> {
        let Attempts { entries, reached, over_budget } = attempts;
        let retried = entries.iter().any(|entry| entry.extra.contains_key(RETRY_DELAY));
        let failure = result.as_ref().err().map(|(_, note)| *note);
        let number = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let (id, saved_request) = (case_id.clone(), self.save_requests.then_some(request));
        let usage = result.as_ref().ok().and_then(|(case, _)| case.usage.clone());
        let event = self.record(case_id, number, failure, move |recorder| {
            let result = match result {
                Ok((case, applied)) => Ok(recorder.finish_answer(case, &applied)?),
                Err((document, _)) => Err(document),
            };
            let mut case = artifact(result, &id, recorder.run.side(), entries);
            // Before the artifact, which links to it.
            if let Some(request) = saved_request {
                let href = recorder.save_request(&id, &request)?;
                case.extra.insert(REQUEST_ASSET_HREF.to_owned(), href.as_str().into());
            }
            Ok(case)
        });
        let event = event.await?;
        Ok(CaseOutcome { attempts: number, retried, failure, reached, over_budget, usage, event })
    }

    /// Completes a case without a request.
    pub(super) async fn skip(&self, case_id: CaseId, cause: SkipCause) -> Result<Option<CaseOutcome>, WriteError> {
        let id = case_id.clone();
        let skipped = move |recorder: &AttemptRecorder| Ok(skipped_case(recorder, id, cause.message()));
        let event = self.record(case_id, 0, Some(SKIPPED), skipped).await?;
        let (failure, usage) = (Some(SKIPPED), None);
        Ok(Some(CaseOutcome { attempts: 0, retried: false, failure, reached: false, over_budget: false, usage, event }))
    }

    pub(super) fn destination(&self) -> BodyDestination<'_> {
        BodyDestination { run: &self.recorder.run, redactor: &self.recorder.redactor }
    }

    /// Makes one attempt and records it. Returns `None` if the run was asked to abandon it.
    async fn attempt(
        &self,
        number: u32,
        connection: Connection,
        case_id: &CaseId,
        request: &[u8],
    ) -> Result<Option<RecordedAttempt>, WriteError> {
        self.pace.sent();
        let context = AttemptContext {
            transport: &self.transport,
            limits: self.limits,
            destination: self.destination(),
            clock: &*self.clock,
        };
        let Some(attempt) = self.unless_abandoned(context.attempt(number, connection, request)).await else {
            return Ok(None);
        };
        let attempt = attempt?;
        if let Some(limit) = self.pace.ended(attempt.signal()) {
            self.report(EventKind::ConcurrencyChanged { limit: limit.get() }).await;
        }
        if let Some(observed) = &self.observed {
            let exchange = TrialExchange::new(request, &attempt.exchange, &self.recorder.redactor);
            observed.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
        }
        let (recorder, id) = (self.recorder.clone(), case_id.clone());
        on_blocking_thread(move || recorder.record(attempt, &id)).await.map(Some)
    }

    /// Applies the retry policy, takes a retry token, and waits for the next attempt.
    async fn after_failure(&self, case_id: &CaseId, failure: &RecordedFailure, number: u32) -> AfterFailure {
        // Each request of a conversation has its own retries.
        let failed = FailedAttempt { attempt: number, ..failure.failed };
        let wait = match self.policy.decide(&failed, self.jitter.fraction()) {
            Decision::Retry(wait) if !self.agent_down.is_set() => wait,
            _ => return AfterFailure::Stop { over_budget: false },
        };
        // Taken last, so that a failure that is not retried for another reason leaves the tokens of the run untouched.
        if !self.tokens.take() {
            return AfterFailure::Stop { over_budget: true };
        }
        let event = EventKind::AttemptFailed {
            case_id: case_id.clone(),
            attempt: failure.failed.attempt,
            failure: failure.note,
            retry_in: wait,
        };
        self.report(event).await;
        match self.wait_for_turn(wait).await {
            WaitEnd::Elapsed => AfterFailure::Retry(wait),
            // The retry is skipped, so this attempt was the last one.
            WaitEnd::AgentDown(_) => AfterFailure::Stop { over_budget: false },
            WaitEnd::Abandoned => AfterFailure::Abandon,
        }
    }

    /// Writes an artifact, and returns the event that the case is complete.
    async fn record(
        &self,
        case_id: CaseId,
        attempts: u32,
        failure: Option<FailureNote>,
        artifact: impl FnOnce(&AttemptRecorder) -> Result<Case, WriteError> + Send + 'static,
    ) -> Result<RunEvent, WriteError> {
        // The clock is read now: after the write, other cases would have advanced it in an unpredictable order.
        let event = RunEvent::now(&*self.clock, EventKind::CaseFinished { case_id, attempts, failure });
        let recorder = self.recorder.clone();
        // The case holds its slot until the artifact is durable: a few milliseconds, where an agent takes seconds. It bounds
        // the writes at the same time, and the circuit breaker counts failures in the order of their artifacts.
        on_blocking_thread(move || recorder.run.write_case(&artifact(&recorder)?)).await?;
        Ok(event)
    }

    /// Waits this long, and then for the next turn of the rate limit.
    pub(super) async fn wait_for_turn(&self, backoff: Duration) -> WaitEnd {
        if !backoff.is_zero() {
            let end = self.wait(backoff).await;
            if !matches!(end, WaitEnd::Elapsed) {
                return end;
            }
        }
        match self.pace.turn(|| self.clock.read().elapsed) {
            Some(wait) => self.wait(wait).await,
            None => WaitEnd::Elapsed,
        }
    }

    async fn wait(&self, span: Duration) -> WaitEnd {
        tokio::select! {
            biased;
            () = self.interrupt.wait_for(Urgency::Abandon) => WaitEnd::Abandoned,
            consecutive = self.agent_down.wait() => WaitEnd::AgentDown(consecutive),
            () = tokio::time::sleep(span) => {
                self.clock.waited(span);
                WaitEnd::Elapsed
            }
        }
    }

    pub(super) async fn unless_abandoned<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            // A result that is ready at the same time is dropped: an abandoned run must not start further work.
            biased;
            () = self.interrupt.wait_for(Urgency::Abandon) => None,
            done = work => Some(done),
        }
    }

    async fn report(&self, kind: EventKind) {
        // The clock is read here and not by the receiver: the event carries the time at which it happened.
        let event = RunEvent::now(&*self.clock, kind);
        // Fails only after the run ended.
        let _ = self.events.send(event).await;
    }
}

/// Runs disk work on a blocking thread, so that it does not delay other cases.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WriteError> + Send + 'static,
) -> Result<T, WriteError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(WriteError { path: "the run folder".into(), source: std::io::Error::other(error) }),
        },
    }
}

/// Set once by the scheduler when the circuit breaker opens, and never cleared. Case runners poll it and wait for it.
#[derive(Debug, Default)]
pub(crate) struct AgentDown(watch::Sender<Option<NonZeroU32>>);

impl AgentDown {
    /// Sets the flag with the number of consecutive failures that opened the circuit breaker.
    pub(crate) fn set(&self, consecutive: NonZeroU32) {
        self.0.send_replace(Some(consecutive));
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the flag is set, and returns the number of consecutive failures.
    pub(crate) async fn wait(&self) -> NonZeroU32 {
        let mut flag = self.0.subscribe();
        // An error would mean that the sender was dropped, but `self` owns it.
        let consecutive = flag.wait_for(Option::is_some).await;
        consecutive.ok().and_then(|consecutive| *consecutive).unwrap_or(NonZeroU32::MIN)
    }
}
