//! The scheduler: starts cases within the concurrency limit, forwards events, counts outcomes, and stops early when needed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use counterproof_artifact::CaseId;
use counterproof_cases::CaseSpec;
use counterproof_store::write::WriteError;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::case_runner::{CaseOutcome, CaseRunner, SkipCause};
use crate::agent::RequestInput;
use crate::environment::Urgency;
use crate::event::{Counts, EventKind, Reporter, RunEvent};
use crate::policy::{CircuitBreaker, Spending};
use crate::settings::Settings;

/// Skipped cases send no request, so this many are written at the same time.
const CONCURRENT_SKIPS: usize = 16;

/// The state of the loop over all cases.
pub(super) struct Scheduler<'run> {
    settings: &'run Settings,
    pub(super) case_runner: Arc<CaseRunner>,
    /// What case runners report while their cases run.
    events: mpsc::Receiver<RunEvent>,
    tasks: JoinSet<Result<Option<CaseOutcome>, WriteError>>,
    circuit: CircuitBreaker,
    spending: Spending,
    /// Why the remaining cases are skipped, once a limit of the run is reached.
    pub(super) limit: Option<String>,
    pub(super) counts: Counts,
    /// Cases whose artifact is deleted just before they run, with the counts to subtract then.
    reruns: HashMap<CaseId, Counts>,
    /// Whether any attempt reached the agent.
    pub(super) reached: bool,
    /// The first write error. No case is started after it.
    pub(super) error: Option<WriteError>,
    reporter: &'run mut dyn Reporter,
    /// The elapsed time of the latest reported event.
    latest: Duration,
}

impl<'run> Scheduler<'run> {
    pub(super) fn new(
        settings: &'run Settings,
        case_runner: CaseRunner,
        spending: Spending,
        events: mpsc::Receiver<RunEvent>,
        reporter: &'run mut dyn Reporter,
    ) -> Self {
        Self {
            settings,
            case_runner: Arc::new(case_runner),
            events,
            tasks: JoinSet::new(),
            circuit: CircuitBreaker::new(settings.fail_fast),
            spending,
            limit: None,
            counts: Counts::default(),
            reruns: HashMap::new(),
            reached: false,
            error: None,
            reporter,
            latest: Duration::ZERO,
        }
    }

    /// Continues from the counts of complete cases. `reruns` are the complete cases that run again.
    pub(super) fn resume_from(&mut self, counts: Counts, reruns: HashMap<CaseId, Counts>) {
        self.counts = counts;
        self.reruns = reruns;
    }

    /// Runs all cases until every artifact is durable, or until the run is stopped.
    pub(super) async fn run_all(&mut self, cases: &[&CaseSpec]) {
        let mut waiting = cases.iter();
        let interrupt = self.case_runner.interrupt.clone();
        let mut stopping = false;
        loop {
            stopping |= self.error.is_some();
            while !stopping && self.tasks.len() < self.concurrency() {
                let Some(case) = waiting.next() else { break };
                self.check_limits();
                self.start(case);
            }
            if self.tasks.is_empty() {
                break;
            }
            tokio::select! {
                // Events come first, so that a reporter receives all events of a case before the case is counted.
                biased;
                Some(event) = self.events.recv() => self.forward(event),
                Some(task) = self.tasks.join_next() => {
                    // The breaker stays open, so only the task that opens it reports the event.
                    let was_closed = self.circuit.open_after().is_none();
                    self.end_task(task);
                    if was_closed {
                        self.check_circuit(waiting.len());
                    }
                }
                () = interrupt.wait_for(Urgency::Finish), if !stopping => {
                    stopping = true;
                    self.report(EventKind::RunInterrupted { in_flight: self.tasks.len() });
                    self.abandon_after_grace();
                }
            }
        }
        // The loop ends on tasks, so events that the last task sent may still be in the channel.
        while let Ok(event) = self.events.try_recv() {
            self.forward(event);
        }
    }

    /// Returns how many cases may be in flight.
    fn concurrency(&self) -> usize {
        // Skipped cases wait only for the disk, so the limit of requests does not apply to them.
        match self.skip_cause() {
            Some(_) => CONCURRENT_SKIPS,
            None => self.case_runner.pace.limit().get(),
        }
    }

    /// Returns why the remaining cases are skipped.
    fn skip_cause(&self) -> Option<SkipCause> {
        let down = self.circuit.open_after().map(SkipCause::AgentDown);
        down.or_else(|| self.limit.clone().map(SkipCause::Limit))
    }

    /// Starts a case, or skips it if the agent looks down or a limit is reached.
    fn start(&mut self, case: &CaseSpec) {
        if let Some(cause) = self.skip_cause() {
            // The artifact of an earlier failure is more informative than the artifact of a skipped case, so it stays.
            if !self.reruns.contains_key(&case.id) {
                let (runner, case_id) = (self.case_runner.clone(), case.id.clone());
                self.tasks.spawn(async move { runner.skip(case_id, cause).await });
            }
            return;
        }
        if let Some(counts) = self.reruns.remove(&case.id) {
            // Not at the start of the run: if the run is stopped before this case, its old artifact still counts.
            self.counts.subtract(&counts);
            if let Err(error) = self.case_runner.recorder.run.discard_case(&case.id) {
                self.error.get_or_insert(error);
                return;
            }
        }
        let runner = self.case_runner.clone();
        if self.settings.saved_request.is_none() && runner.is_conversation(case) {
            let case = case.clone();
            self.tasks.spawn(async move { runner.converse(case).await });
            return;
        }
        let request_input = RequestInput::single(case, self.settings.side, &self.settings.run_id);
        let request = match &self.settings.saved_request {
            Some(body) => Ok(body.clone()),
            None => runner.recorder.adapter.request(request_input),
        };
        match request {
            Ok(request) => {
                let case_id = case.id.clone();
                self.tasks.spawn(async move { runner.run(case_id, request).await });
            }
            // JSON values and strings always serialise. An error would be a bug in a protocol's request type.
            Err(error) => {
                self.error.get_or_insert(runner.recorder.request_error(&case.id, error));
            }
        }
    }

    /// Handles the end of a case's task: its artifact is durable, unless the case was abandoned.
    fn end_task(&mut self, task: Result<Result<Option<CaseOutcome>, WriteError>, JoinError>) {
        match task {
            Ok(Ok(Some(outcome))) => {
                self.reached |= outcome.reached;
                match outcome.failure {
                    Some(failure) => self.circuit.record_failure(failure.class, failure.status),
                    None => self.circuit.record_answer(),
                }
                if outcome.reached {
                    self.spending.add(outcome.usage.as_ref());
                }
                self.count(outcome);
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

    /// Skips the remaining cases if the circuit breaker has just opened.
    fn check_circuit(&mut self, remaining: usize) {
        if let Some(consecutive) = self.circuit.open_after() {
            self.case_runner.agent_down.set(consecutive);
            self.report(EventKind::AgentDown { consecutive_failures: consecutive.get(), skipped: remaining });
        }
    }

    /// Returns whether the run failed: no case was answered, more failed than allowed, or cases were skipped.
    pub(super) fn has_failed(&self) -> bool {
        let Counts { selected, answered, failed, skipped, .. } = self.counts;
        (answered == 0 && selected > 0) || skipped > 0 || self.settings.max_failed.is_some_and(|most| failed > most)
    }

    /// Skips the remaining cases once a limit on usage is reached.
    fn check_limits(&mut self) {
        if let (None, Some(cause)) = (&self.limit, self.spending.exceeded(&self.settings.usage_limits)) {
            self.report(EventKind::LimitReached { cause: cause.clone() });
            self.limit = Some(cause);
            // An earlier run reached it, if this run sent no request.
            self.reached = true;
        }
    }

    fn abandon_after_grace(&self) {
        let (interrupt, grace) = (self.case_runner.interrupt.clone(), self.settings.grace);
        // Not one of `tasks`: the loop must not wait for the grace period, and the runtime drops the timer at its end.
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            interrupt.raise(Urgency::Abandon);
        });
    }

    fn count(&mut self, outcome: CaseOutcome) {
        // Only now: a reporter must never show a case as complete that a crash could still lose.
        self.forward(outcome.event);
        self.counts.attempts += outcome.attempts as usize;
        self.counts.retried += usize::from(outcome.retried);
        self.counts.over_budget += usize::from(outcome.over_budget);
        self.counts.skipped += usize::from(outcome.attempts == 0);
        let count = if outcome.failure.is_some() { &mut self.counts.failed } else { &mut self.counts.answered };
        *count += 1;
    }

    pub(super) fn report(&mut self, kind: EventKind) {
        self.forward(RunEvent::now(&*self.case_runner.clock, kind));
    }

    fn forward(&mut self, event: RunEvent) {
        // Events of concurrent cases can arrive out of order, and the reported time must not decrease.
        self.latest = self.latest.max(event.elapsed);
        self.reporter.report(&RunEvent { elapsed: self.latest, ..event });
    }
}
