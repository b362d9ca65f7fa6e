//! The session: from a call to its decision, and from its result to its last event.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use counterproof_artifact::canonical::canonical_hash;
use counterproof_ledger::event::{
    Action, CallEnd, CallError, CallId, CallRef, CallStart, CallStatus, DecisionRecord, ErrorClass, EventBody,
    Explanation, HintedCall, LoadedPolicy, Mode, PolicyRef, ProcessExit, ResultPreview, RunEnd, RunStart, RunStatus,
    RunSummary, SecretInjection, Severity, ShimHealth, Termination, Transport,
};
use counterproof_redaction::{Applied, Redactor};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::call::{self, OpenCall, OpenCalls, Refusal};
use super::decider::{Decider, RunMembership};
use super::{CallResult, IncomingArgs, IncomingCall};
use crate::agent_run::{EndKind, count_end};
use crate::identity::RunIdentity;
use crate::policy::{Args, CallFacts, Decision, Engine, OnError, Policy};

/// Most calls without an answer. Each is remembered until its end, and a server may never answer.
pub(super) const MAX_OPEN_CALLS: usize = 10_000;

pub struct SessionOptions {
    pub server_name: String,
    pub transport: Transport,
    pub identity: RunIdentity,
    pub policy: Arc<Policy>,
    pub redactor: Redactor,
    pub sink: Arc<dyn EventSink>,
    /// Reports a problem to people. It is called a bounded number of times, and must not block.
    pub warn: Box<dyn Fn(&str) + Send + Sync>,
    pub meta: Map<String, Value>,
    pub secrets: Vec<SecretInjection>,
    pub run: RunMembership,
}

pub struct Session {
    server_name: String,
    transport: Transport,
    run_id: String,
    policy: Arc<Policy>,
    redactor: Redactor,
    sink: Arc<dyn EventSink>,
    warn: Box<dyn Fn(&str) + Send + Sync>,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    decider: Decider,
    open: OpenCalls,
    summary: RunSummary,
    terminated: Option<DecisionRecord>,
    is_finished: bool,
    has_warned: bool,
    reported: [bool; Problem::COUNT],
    client_name: Option<String>,
}

#[derive(Debug)]
pub enum Admission {
    /// The adapter forwards the request and calls [`Session::end`] with the id.
    Forward(CallId),
    /// The adapter answers with an error and calls [`Session::refused`].
    Refuse(Box<Refusal>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCallsEnd {
    pub status: CallStatus,
    pub class: ErrorClass,
    pub message: &'static str,
}

impl Session {
    pub fn start(options: SessionOptions) -> Result<Self, SinkError> {
        let engine = Engine::new(options.policy.clone(), &options.identity);
        let session = Self {
            server_name: options.server_name,
            transport: options.transport,
            run_id: options.identity.run_id,
            policy: options.policy,
            redactor: options.redactor,
            sink: options.sink,
            warn: options.warn,
            started: Instant::now(),
            state: Mutex::new(State {
                decider: Decider::new(engine, options.run),
                open: OpenCalls::default(),
                summary: RunSummary::default(),
                terminated: None,
                is_finished: false,
                has_warned: false,
                reported: [false; Problem::COUNT],
                client_name: None,
            }),
        };
        let run = RunStart {
            started_at: Timestamp::now(),
            mode: session.policy.mode,
            policy: session.policy.reference(),
            meta: Some(options.meta),
        };
        session.sink.record(EventBody::RunStart { run })?;
        if session.policy.is_loaded() {
            session.sink.record(EventBody::PolicyLoaded { policy: session.loaded_policy() })?;
        }
        for secret_injection in options.secrets {
            session.sink.record(EventBody::SecretInjection { secret_injection })?;
        }
        Ok(session)
    }

    fn loaded_policy(&self) -> LoadedPolicy {
        let PolicyRef { policy_id, policy_version, policy_hash } = self.policy.reference();
        let mut rules = self.policy.document.get("rules").cloned();
        if let Some(rules) = &mut rules {
            // A policy may have a secret in a message or in a condition.
            self.redactor.json(rules, &mut Applied::default());
        }
        LoadedPolicy { policy_id, policy_version, policy_hash, rules }
    }

    pub fn begin(&self, incoming: &IncomingCall<'_>) -> Admission {
        let (args, args_hash) = match &incoming.args {
            IncomingArgs::Inspected { value, .. } => (Some(Args::Inspected(value)), canonical_hash(value)),
            IncomingArgs::Uninspected { hash, .. } => (Some(Args::TooLarge), *hash),
            IncomingArgs::Ambiguous { hash, .. } => (None, *hash),
        };
        let mut state = self.state();
        // A run that has ended, or a request without an agreed meaning, continues nothing.
        let may_continue = args.is_some() && state.terminated.is_none() && !state.is_finished;
        // Not decided again: the call was allowed when it came first, and answers to the questions of its server must neither count
        // nor be a duplicate.
        if let Some(retry) = incoming.retry.filter(|_| may_continue)
            && let Some(call_id) = state.open.resume(incoming.tool_name, &args_hash, retry.request_state)
        {
            return Admission::Forward(call_id);
        }
        let call = CallRef {
            call_id: CallId::new_random(),
            server_name: self.server_name.clone(),
            // An agent chooses the name, which may contain a secret. Rules see it unmasked.
            tool_name: call::redacted_name(incoming.tool_name, &self.redactor),
            args_hash,
        };
        let (mut decision, number) = match (&state.terminated, args, &incoming.args) {
            // After the end of the run, every call gets the same answer.
            (Some(record), _, _) => {
                let record = record.clone();
                (without_rules(record), state.decider.number())
            }
            // In every mode: the server might execute another call than the one that the rules see.
            (None, _, IncomingArgs::Ambiguous { problem, .. }) => {
                (without_rules(self.ambiguous(problem)), state.decider.number())
            }
            (None, ..) if state.open.len() >= MAX_OPEN_CALLS && self.fails_closed() => {
                let summary = format!("{MAX_OPEN_CALLS} calls of the server have no answer yet");
                let record = self.block("TOO_MANY_OPEN_CALLS", Severity::Warn, summary);
                (without_rules(record), state.decider.number())
            }
            (None, args, _) => {
                let facts = CallFacts {
                    server_name: &self.server_name,
                    tool_name: incoming.tool_name,
                    args: args.unwrap_or(Args::TooLarge),
                    args_hash: &args_hash,
                    bytes_in: incoming.bytes_in,
                    transport: self.transport,
                };
                self.decide(&mut state, &facts)
            }
        };
        // Before it is recorded or sent: a person who writes a policy can repeat a secret in its messages.
        call::redact_decision(&mut decision.record, &self.redactor);
        if state.is_finished {
            // Without a record: the last event is written, and nothing may come after it.
            return Admission::Refuse(Box::new(self.refusal(call, self.ended())));
        }
        // Before the call is forwarded: what a server has executed must be in the ledger, also if this process is killed now.
        let recorded = self.record_begin(incoming, &call, &decision, number);
        let mut record = decision.record;
        if let Err(error) = recorded {
            self.warn_once(&mut state, &error);
            // A refusal stays what it is. Only a call that would be executed needs its record.
            if record.action == Action::Allow && self.fails_closed() {
                record = self.unrecorded();
            }
        }
        if record.action == Action::TerminateRun && state.terminated.is_none() {
            state.terminated = Some(record.clone());
        }
        if record.action == Action::Allow {
            let call_id = call.call_id.clone();
            // Refused above, unless the policy must not refuse it.
            while state.open.len() >= MAX_OPEN_CALLS
                && let Some(oldest) = state.open.take_oldest()
            {
                let message = "too many later calls were open";
                self.end_call(
                    &mut state,
                    oldest,
                    CallResult::unanswered(CallStatus::Error, ErrorClass::Unknown, message),
                );
            }
            state.open.insert(call, incoming.tool_name);
            return Admission::Forward(call_id);
        }
        let refusal = self.refusal(call, record);
        // The end of a refused call is recorded when the answer is written, whose size is then known.
        state.open.insert_refusal(refusal.clone());
        Admission::Refuse(Box::new(refusal))
    }

    fn decide(&self, state: &mut State, facts: &CallFacts<'_>) -> (Decision, u64) {
        let now = self.started.elapsed();
        match state.decider.decide(facts, now) {
            Ok(decided) => decided,
            Err(_) if self.fails_closed() => {
                let summary = "`guard run` does not answer, which counts the calls of all servers";
                let record = self.block("RUN_UNREACHABLE", Severity::Critical, summary.to_owned());
                (without_rules(record), state.decider.number())
            }
            Err(error) => {
                let message = format!("the run does not answer, so this server counts its calls alone: {error}");
                self.warn_once(state, &message);
                state.decider.decide_alone(facts, now)
            }
        }
    }

    fn refusal(&self, call: CallRef, decision: DecisionRecord) -> Refusal {
        Refusal { run_id: self.run_id.clone(), call, decision, started: Instant::now() }
    }

    fn record_begin(
        &self,
        incoming: &IncomingCall<'_>,
        call: &CallRef,
        decision: &Decision,
        seq: u64,
    ) -> Result<(), SinkError> {
        let (preview, args_stream_hash) = call::args_preview(&incoming.args, &self.redactor);
        let start = CallStart {
            call: call.clone(),
            transport: self.transport,
            bytes_in: incoming.bytes_in,
            preview,
            seq,
            tags: decision.tags.clone(),
            // MCP requests state no time limit.
            timeout_ms: None,
            args_stream_hash,
        };
        self.sink.record(EventBody::ToolCallStart { call: start })?;
        let record = decision.record.clone();
        // After the start, so that a reader of the events knows the call that is decided.
        self.sink.record(EventBody::ToolCallDecision { call: call.clone(), decision: record })?;
        if let Some(breaker) = &decision.breaker {
            self.sink.record(EventBody::BreakerTrip { call: call.clone(), breaker: breaker.clone() })?;
        }
        if let Some(hint) = &decision.record.hint {
            let call = HintedCall { call_id: call.call_id.clone() };
            self.sink.record(EventBody::HintIssued { call, hint: hint.clone() })?;
        }
        Ok(())
    }

    /// Records a problem of the guard itself, and warns about the first one of its kind.
    pub fn report(&self, problem: Problem, message: &str) {
        let message = call::redacted_message(message, &self.redactor);
        let mut state = self.state();
        // Once for each kind: a client can send any number of such messages, and a person reads the warnings.
        if !std::mem::replace(&mut state.reported[problem as usize], true) {
            (self.warn)(&format!("{}: {message}", problem.summary()));
        }
        if state.is_finished {
            return;
        }
        let health = ShimHealth { code: problem.code().to_owned(), message };
        if let Err(error) = self.sink.record(EventBody::ShimHealth { health }) {
            self.warn_once(&mut state, &error);
        }
    }

    pub fn warn(&self, message: &str) {
        (self.warn)(&call::redacted_message(message, &self.redactor));
    }

    /// Returns true if messages that cannot be inspected, and calls that cannot be recorded, are refused.
    pub fn fails_closed(&self) -> bool {
        // A policy that observes must not change what the agent can do.
        self.policy.mode != Mode::Observe && self.policy.defaults.decision_on_error == OnError::Block
    }

    fn unrecorded(&self) -> DecisionRecord {
        let summary = "the call cannot be recorded, and the policy refuses calls without a record";
        self.block("RECORDING_FAILED", Severity::Critical, summary.to_owned())
    }

    fn ended(&self) -> DecisionRecord {
        self.block("RUN_ENDED", Severity::Warn, "the run has ended".to_owned())
    }

    fn ambiguous(&self, problem: &str) -> DecisionRecord {
        // The problem quotes keys, which may be long or secret.
        let problem = call::redacted_message(problem, &self.redactor);
        self.block("AMBIGUOUS_REQUEST", Severity::Warn, format!("the request is ambiguous: {problem}"))
    }

    fn block(&self, reason_code: &str, severity: Severity, summary: String) -> DecisionRecord {
        let explain = Explanation { summary, reason_code: reason_code.to_owned() };
        DecisionRecord::new(Action::Block, severity, explain, self.policy.reference())
    }

    /// Records the end of a refused call. `bytes_out` is the size of the response to the client.
    pub fn refused(&self, refusal: &Refusal, bytes_out: u64) {
        let mut state = self.state();
        if state.open.take_refusal(&refusal.call.call_id) {
            self.end_refusal(&mut state, refusal, bytes_out);
        }
    }

    fn end_refusal(&self, state: &mut State, refusal: &Refusal, bytes_out: u64) {
        let action = refusal.decision.action;
        let kind = if action == Action::Throttle { EndKind::Throttled } else { EndKind::Refused };
        let error = CallError {
            class: ErrorClass::PolicyBlock,
            message: call::redacted_message(&refusal.decision.explain.summary, &self.redactor),
            code: Some(refusal.decision.explain.reason_code.clone()),
            retryable: Some(action == Action::Throttle),
        };
        let end = CallEnd {
            call: refusal.call.clone(),
            status: CallStatus::Error,
            latency_ms: milliseconds(refusal.started.elapsed()),
            bytes_out,
            preview: ResultPreview::default(),
            error: Some(error),
            result_stream_hash: None,
        };
        state.decider.end(&self.server_name, &refusal.call.tool_name, kind, self.started.elapsed());
        self.record_end(state, end, kind);
    }

    pub fn end(&self, call_id: &CallId, result: CallResult<'_>) {
        let mut state = self.state();
        let Some(open) = state.open.take(call_id) else { return };
        self.end_call(&mut state, open, result);
    }

    fn end_call(&self, state: &mut State, open: OpenCall, result: CallResult<'_>) {
        let kind = match result.status {
            CallStatus::Ok => EndKind::Answered,
            CallStatus::Error | CallStatus::Timeout => EndKind::Failed,
            CallStatus::Cancelled => EndKind::Cancelled,
        };
        // Before the event: the next call must not be decided without this error.
        state.decider.end(&self.server_name, &open.tool_name, kind, self.started.elapsed());
        let (preview, result_stream_hash) = call::result_preview(&result.result, &self.redactor);
        let mut error = result.error;
        if let Some(error) = &mut error {
            // The message comes from the server, which may repeat a secret in it.
            error.message = call::redacted_message(&error.message, &self.redactor);
        }
        let end = CallEnd {
            call: open.call,
            status: result.status,
            latency_ms: milliseconds(open.started.elapsed()),
            bytes_out: result.bytes_out,
            preview,
            error,
            result_stream_hash,
        };
        self.record_end(state, end, kind);
    }

    fn record_end(&self, state: &mut State, end: CallEnd, kind: EndKind) {
        // Counted even if the event cannot be recorded: `ledger doctor` compares the count with the events.
        count_end(&mut state.summary, kind);
        if let Err(error) = self.sink.record(EventBody::ToolCallEnd(end)) {
            self.warn_once(state, &error);
        }
    }

    /// Marks a call whose server asked the client for input. The next request with the same tool, arguments and state continues it.
    pub fn wait_for_input(&self, call_id: &CallId, request_state: Option<String>) {
        let mut state = self.state();
        state.open.wait_for_input(call_id, request_state);
        // Here, because only such calls can wait without an end: a client may never answer the questions.
        for abandoned in state.open.take_abandoned() {
            self.end_call(&mut state, abandoned, CallResult::cancelled());
        }
    }

    /// Remembers the name that the client states in `initialize`; the form of refusals depends on it.
    pub fn set_client_name(&self, name: String) {
        self.state().client_name = Some(name);
    }

    pub fn client_name(&self) -> Option<String> {
        self.state().client_name.clone()
    }

    pub fn open_calls(&self) -> usize {
        self.state().open.len()
    }

    pub fn termination(&self) -> Option<Termination> {
        self.state().terminated.as_ref()?.terminate.clone()
    }

    /// Ends the run: ends the open calls, and records the last event. Later calls of methods have no effect on the record.
    pub fn finish(&self, status: RunStatus, open_calls: OpenCallsEnd) {
        self.finish_process(status, open_calls, None);
    }

    /// Ends the run like [`Self::finish`], and states how the process of the server ended.
    pub fn finish_process(&self, status: RunStatus, open_calls: OpenCallsEnd, exit: Option<ProcessExit>) {
        let mut state = self.state();
        // Several threads may end the run: the first one states how.
        if std::mem::replace(&mut state.is_finished, true) {
            return;
        }
        // The answers of these refusals are not written yet, so their ends have no bytes.
        for refusal in state.open.take_refusals() {
            // Every call has an end, so that a reader can tell a refusal from a call whose process was killed.
            self.end_refusal(&mut state, &refusal, 0);
        }
        for open in state.open.take_all() {
            if open.waiting.is_some() {
                // The server has answered, and the client has not.
                self.end_call(&mut state, open, CallResult::cancelled());
                continue;
            }
            let OpenCallsEnd { status, class, message } = open_calls;
            self.end_call(&mut state, open, CallResult::unanswered(status, class, message));
        }
        state.summary.duration_ms = milliseconds(self.started.elapsed());
        let run = RunEnd { ended_at: Timestamp::now(), status, summary: state.summary, exit: self.redacted(exit) };
        if let Err(error) = self.sink.record(EventBody::RunEnd { run }) {
            self.warn_once(&mut state, &error);
        }
    }

    fn redacted(&self, exit: Option<ProcessExit>) -> Option<ProcessExit> {
        match exit {
            Some(ProcessExit::NotStarted(reason)) => {
                Some(ProcessExit::NotStarted(call::redacted_message(&reason, &self.redactor)))
            }
            exit => exit,
        }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn warn_once(&self, state: &mut State, error: &dyn fmt::Display) {
        if !std::mem::replace(&mut state.has_warned, true) {
            (self.warn)(&error.to_string());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn without_rules(record: DecisionRecord) -> Decision {
    Decision { record, tags: Vec::new(), breaker: None }
}

/// Rounds up, so that only an instant takes 0 ms.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

pub trait EventSink: Send + Sync {
    /// Stores an event. When this returns, the event is not lost if this process is killed.
    fn record(&self, body: EventBody) -> Result<(), SinkError>;
}

#[derive(Debug, thiserror::Error)]
#[error("failed to record an event: {message}")]
pub struct SinkError {
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    Uninspected,
    /// The server lists other tools than before, or than the cassette has.
    ToolsChanged,
    Cassette,
    CassetteMisses,
    Unreachable,
}

impl Problem {
    pub(super) const COUNT: usize = 5;

    pub const fn code(self) -> &'static str {
        match self {
            Problem::Uninspected => "uninspected_message",
            Problem::ToolsChanged => "tools_changed",
            Problem::Cassette => "cassette_failed",
            Problem::CassetteMisses => "cassette_misses",
            Problem::Unreachable => "server_unreachable",
        }
    }

    pub(super) const fn summary(self) -> &'static str {
        match self {
            Problem::Uninspected => "a message cannot be inspected",
            Problem::ToolsChanged => "the list of tools has changed",
            Problem::Cassette => "the cassette is incomplete",
            Problem::CassetteMisses => "the replay is incomplete",
            Problem::Unreachable => "the server does not answer",
        }
    }
}
