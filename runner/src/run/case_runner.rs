//! One case from its first attempt to its artifact, handed to the disk. Which case is next is decided elsewhere.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use counterproof_artifact::{Case, CaseId};
use counterproof_store::write::WriteError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use crate::attempt::execute::{Bounds, attempt};
use crate::attempt::transport::Transport;
use crate::event::{EventKind, FailureNote, RunEvent};
use crate::policy::circuit::GivenUp;
use crate::policy::pace::Pace;
use crate::policy::retry::{Decision, Failed, RetryPolicy};
use crate::policy::retry_budget::Purse;
use crate::record::attempt_recorder::{self, Keeper, Kept};
use crate::record::run_document::millis;
use crate::record::saved_request::REQUEST_HREF;
use crate::record::skipped_case;
use crate::system::clock::Clock;
use crate::system::interrupt::{Interrupt, Urgency};
use crate::system::jitter::Jitter;

/// What all cases of a run share.
pub(crate) struct Asker {
    pub(crate) transport: Transport,
    pub(crate) bounds: Bounds,
    pub(crate) policy: RetryPolicy,
    pub(crate) purse: Purse,
    pub(crate) pace: Pace,
    /// Once said, nothing more is asked.
    pub(crate) given_up: GivenUp,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) jitter: Jitter,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) keep_requests: bool,
    pub(crate) interrupt: Interrupt,
    pub(crate) events: mpsc::Sender<RunEvent>,
    /// Where it is told that an artifact is on disk. What can wait there is bounded by what may wait for the disk.
    pub(crate) settled: mpsc::UnboundedSender<Settled>,
}

/// An artifact is on disk, or cannot be written.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) written: Result<(), WriteError>,
    pub(crate) asked: Asked,
    /// Tells that the case is complete.
    pub(crate) event: RunEvent,
}

/// How a case ended.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) attempts: u32,
    /// What went wrong last; `None` where the agent answered.
    pub(crate) failure: Option<FailureNote>,
    pub(crate) reached: bool,
    /// True where only the run's retry budget kept it from another attempt.
    pub(crate) over_budget: bool,
}

/// What follows a failed attempt, the run's budget and the agent's state being what they are.
enum Next {
    Retry(Duration),
    Stop { over_budget: bool },
}

/// How a wait came to its end.
enum Waited {
    /// Its time was over.
    Over,
    /// The agent was given up.
    GivenUp(NonZeroU32),
    /// The run was told to leave what is in flight.
    Abandoned,
}

impl Asker {
    /// Asks one case until nothing is left to ask, and hands its artifact to the disk; `None` where the run was told to
    /// abandon it.
    pub(crate) async fn ask(&self, case_id: CaseId, request: Vec<u8>) -> Result<Option<Asked>, WriteError> {
        self.tell(EventKind::CaseStarted { case_id: case_id.clone() }).await;
        let (mut records, mut any_reached, mut over_budget) = (Vec::new(), false, false);
        match self.wait_for_turn(Duration::ZERO).await {
            Waited::Over => {}
            Waited::GivenUp(in_a_row) => return self.leave_out(case_id, in_a_row).await,
            Waited::Abandoned => return Ok(None),
        }
        for number in 1.. {
            self.pace.sent();
            let keeper = &self.keeper;
            let attempt =
                attempt(number, &self.transport, &*self.clock, self.bounds, (&keeper.run, &keeper.redactor), &request);
            let Some(tried) = self.unless_abandoned(attempt).await else { return Ok(None) };
            let tried = tried?;
            if let Some(limit) = self.pace.ended(tried.signal()) {
                self.tell(EventKind::ConcurrencyChanged { limit: limit.get() }).await;
            }
            let (keeper, id) = (self.keeper.clone(), case_id.clone());
            let Kept { mut record, result, reached } = on_disk(move || keeper.keep(tried, &id)).await?;
            any_reached |= reached;
            let (result, failure) = match result {
                Ok(case) => (Ok(case), None),
                Err(failure) => {
                    let next = self.next(&failure.failed);
                    over_budget = matches!(next, Next::Stop { over_budget: true });
                    if let Next::Retry(wait) = next {
                        let kind = EventKind::AttemptFailed {
                            case_id: case_id.clone(),
                            attempt: number,
                            failure: failure.note,
                            retry_in: wait,
                        };
                        self.tell(kind).await;
                        match self.wait_for_turn(wait).await {
                            Waited::Over => {
                                record.extra.insert("retry_delay_ms".to_owned(), millis(wait).into());
                                records.push(record);
                                continue;
                            }
                            // The attempt that was to follow is left out, so this one was the last.
                            Waited::GivenUp(_) => {}
                            Waited::Abandoned => return Ok(None),
                        }
                    }
                    (Err(failure.document), Some(failure.note))
                }
            };
            records.push(record);
            let (id, request) = (case_id.clone(), self.keep_requests.then(|| request.clone()));
            let asked = Asked { attempts: number, failure, reached: any_reached, over_budget };
            self.complete(case_id, asked.clone(), move |keeper| {
                let mut case = attempt_recorder::artifact(result, &id, keeper.run.side(), records);
                if let Some(request) = request {
                    let href = keeper.keep_request(&id, &request)?;
                    case.extra.insert(REQUEST_HREF.to_owned(), href.as_str().into());
                }
                Ok(case)
            })
            .await?;
            return Ok(Some(asked));
        }
        Ok(None)
    }

    /// Completes a case without asking it: the agent was given up.
    pub(crate) async fn leave_out(&self, case_id: CaseId, in_a_row: NonZeroU32) -> Result<Option<Asked>, WriteError> {
        let asked = Asked { attempts: 0, failure: Some(skipped_case::NOTE), reached: false, over_budget: false };
        let id = case_id.clone();
        self.complete(case_id, asked.clone(), move |keeper| Ok(skipped_case::artifact(keeper, id, in_a_row))).await?;
        Ok(Some(asked))
    }

    /// Hands an artifact to the disk. The next case may be asked while it is on its way there.
    async fn complete(
        &self,
        case_id: CaseId,
        asked: Asked,
        artifact: impl FnOnce(&Keeper) -> Result<Case, WriteError> + Send + 'static,
    ) -> Result<(), WriteError> {
        // After a failure the run may give the agent up, and is to know of all that came before.
        let is_waited_for = asked.failure.is_some() && asked.attempts > 0;
        // Read now: later the clock is read for other cases, and nothing tells in which order.
        let kind = EventKind::CaseFinished { case_id, attempts: asked.attempts, failure: asked.failure };
        let event = RunEvent::now(&*self.clock, kind);
        let (keeper, settled) = (self.keeper.clone(), self.settled.clone());
        let (told, on_its_way) = oneshot::channel::<()>();
        on_disk(move || {
            let case = artifact(&keeper)?;
            let done = move |written| {
                // Nobody listens any more only when the run is over.
                let _ = settled.send(Settled { written, asked, event });
                drop(told);
            };
            keeper.run.submit_case(&case, Box::new(done))
        })
        .await?;
        if is_waited_for {
            // Nothing is ever sent: it ends with the closure that was told.
            let _ = on_its_way.await;
        }
        Ok(())
    }

    fn next(&self, failed: &Failed) -> Next {
        match self.policy.decide(failed, self.jitter.fraction()) {
            Decision::Retry(wait) if !self.given_up.was_said() => {
                if self.purse.take() {
                    Next::Retry(wait)
                } else {
                    Next::Stop { over_budget: true }
                }
            }
            _ => Next::Stop { over_budget: false },
        }
    }

    /// Waits, and then for the next free place in the run's pace.
    async fn wait_for_turn(&self, first: Duration) -> Waited {
        if !first.is_zero() {
            let waited = self.wait(first).await;
            if !matches!(waited, Waited::Over) {
                return waited;
            }
        }
        match self.pace.turn(|| self.clock.read().elapsed) {
            Some(wait) => self.wait(wait).await,
            None => Waited::Over,
        }
    }

    async fn wait(&self, span: Duration) -> Waited {
        tokio::select! {
            biased;
            () = self.interrupt.wait_for(Urgency::Abandon) => Waited::Abandoned,
            in_a_row = self.given_up.wait() => Waited::GivenUp(in_a_row),
            () = tokio::time::sleep(span) => {
                self.clock.waited(span);
                Waited::Over
            }
        }
    }

    async fn unless_abandoned<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.interrupt.wait_for(Urgency::Abandon) => None,
            done = work => Some(done),
        }
    }

    async fn tell(&self, kind: EventKind) {
        // The time is read here and not where the event is passed on: it is the time at which it happened.
        let event = RunEvent::now(&*self.clock, kind);
        // Nobody listens any more only when the run is over.
        let _ = self.events.send(event).await;
    }
}

/// Does work that touches the disk where it holds up no other case.
async fn on_disk<T: Send + 'static>(
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
