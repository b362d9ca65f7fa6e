//! Runs a case of several requests: turns of the user, and results of the tools that the model calls. Each request has the attempts
//! and retries of a case with a single one. Tools run only after a request is answered, so a retry never runs one again.

use counterproof_artifact::RunnerFailure;
use counterproof_cases::CaseSpec;
use counterproof_redaction::Applied;
use counterproof_store::write::WriteError;
use serde_json::{Map, Value};

use super::case_runner::{Attempts, CaseOutcome, CaseRunner, SkipCause, WaitEnd};
use crate::agent::{CallResult, ChatMessage, RequestInput, RequestedCall, TurnInput, user_message};
use crate::conversation::{CaseEnvelope, FinishedCall, Place, TURN, Transcript};
use crate::environment::{Urgency, whole_millis};
use crate::event::FailureNote;
use crate::failure::Fault;
use crate::tools::{ToolContext, ToolOutput};

/// A conversation in progress.
struct Conversation<'a> {
    case: &'a CaseSpec,
    attempts: Attempts,
    transcript: Transcript,
    /// The messages after the first one of the user, in the form of the protocol.
    thread: Vec<Value>,
    /// The messages of the user and of the agent so far.
    history: Vec<ChatMessage>,
    applied: Applied,
    /// The first request, which is saved if requests are saved.
    first_request: Option<Vec<u8>>,
    requests: usize,
}

/// How a turn ended.
enum TurnEnd {
    Answered,
    /// The model still called tools after the last request that it may have.
    MaxTurns,
    Failed(Box<(RunnerFailure, FailureNote)>),
    /// The run was asked to abandon the case.
    Abandoned,
}

impl CaseRunner {
    /// Reports whether a case can need several requests.
    pub(super) fn is_conversation(&self, case: &CaseSpec) -> bool {
        let has_results = !case.tool_results.is_empty() || !self.toolbox.definitions().is_empty();
        !case.turns.is_empty() || (has_results && self.recorder.adapter.dialogue().is_some())
    }

    /// Runs such a case until its artifact is durable. Returns `None` if the run was asked to abandon it.
    pub(super) async fn converse(&self, case: CaseSpec) -> Result<Option<CaseOutcome>, WriteError> {
        match self.begin(&case.id).await {
            WaitEnd::Elapsed => {}
            WaitEnd::AgentDown(consecutive) => return self.skip(case.id, SkipCause::AgentDown(consecutive)).await,
            WaitEnd::Abandoned => return Ok(None),
        }
        // Not within a case: the server would have lost what the case did before.
        if self.unless_abandoned(self.toolbox.restart_servers()).await.is_none() {
            return Ok(None);
        }
        let mut conversation = Conversation::new(&case);
        let mut failed = None;
        for index in 0..case.turns.len().max(1) {
            match self.turn(index, &mut conversation).await? {
                TurnEnd::Answered => {}
                TurnEnd::MaxTurns => break,
                TurnEnd::Failed(failure) => {
                    failed = Some(*failure);
                    break;
                }
                TurnEnd::Abandoned => return Ok(None),
            }
        }
        let Conversation { attempts, transcript, applied, first_request, .. } = conversation;
        let envelope = CaseEnvelope { case_id: case.id.clone(), side: self.recorder.run.side() };
        let result = match failed {
            None => Ok((transcript.finish(&envelope), applied)),
            Some((mut document, note)) => {
                // The artifact of a failed case has no events.
                if let (Some(steps), Some(message)) = (transcript.steps(), &mut document.error_message) {
                    *message = format!("{message} ({steps})");
                }
                Err((document, note))
            }
        };
        self.complete(case.id, result, attempts, first_request.unwrap_or_default()).await.map(Some)
    }

    async fn turn(&self, index: usize, conversation: &mut Conversation<'_>) -> Result<TurnEnd, WriteError> {
        let turn = conversation.case.turns.get(index);
        if let Some(turn) = turn {
            // Masked as in the saved request.
            let user = self.recorder.redactor.text(&turn.user, &mut Applied::default());
            conversation.transcript.start_turn(index + 1, &user, self.clock.read().at);
            if index > 0 {
                conversation.thread.push(user_message(&turn.user));
            }
        }
        let before = conversation.attempts.entries.len();
        let no_results = Map::new();
        let given = [turn.map_or(&no_results, |turn| &turn.tool_results), &conversation.case.tool_results];
        for number in 1..=self.max_turns.get() {
            let received = match self.ask(index, conversation).await? {
                Ok(received) => received,
                Err(end) => return Ok(end),
            };
            let reply = self.recorder.adapter.dialogue().map(|dialogue| dialogue.reply(&received.body));
            let place = match &reply {
                None => Place::Whole,
                Some(reply) if reply.calls.is_empty() || number == self.max_turns.get() => Place::End,
                Some(_) => Place::Step,
            };
            conversation.applied.merge(&received.applied);
            let calls = conversation.transcript.add_answer(received.case, received.received.at, place);
            let reply = reply.unwrap_or_default();
            conversation.thread.extend(reply.messages);
            let is_answered = reply.calls.is_empty();
            if place != Place::Step {
                conversation.end_turn(turn.map(|turn| turn.user.as_str()), before);
                if is_answered {
                    return Ok(TurnEnd::Answered);
                }
                conversation.transcript.stop_at(number, received.received.at);
                return Ok(TurnEnd::MaxTurns);
            }
            // The calls of the artifact are those of the reply, in the same order.
            let calls: Vec<_> = calls.into_iter().zip(reply.calls).collect();
            if let Some(end) = self.call_tools(calls, given, conversation).await? {
                return Ok(end);
            }
        }
        Ok(TurnEnd::MaxTurns)
    }

    /// Sends the next request. The inner error is the end of the turn.
    async fn ask(
        &self,
        index: usize,
        conversation: &mut Conversation<'_>,
    ) -> Result<Result<Box<crate::record::ReceivedAnswer>, TurnEnd>, WriteError> {
        if conversation.requests > 0 {
            // A request of its own for the rate limit. The agent answered before, so that it looks down changes nothing here.
            if matches!(self.wait_for_turn(std::time::Duration::ZERO).await, WaitEnd::Abandoned) {
                return Ok(Err(TurnEnd::Abandoned));
            }
        }
        let case = conversation.case;
        let turn = case.turns.get(index);
        let request_input = RequestInput {
            turn: turn.map(|turn| TurnInput { index, user: &turn.user, history: &conversation.history }),
            thread: &conversation.thread,
            tools: self.toolbox.definitions(),
            ..RequestInput::single(case, self.recorder.run.side(), &self.run_id)
        };
        let request = self.recorder.adapter.request(request_input);
        let request = request.map_err(|error| self.recorder.request_error(&case.id, error))?;
        conversation.requests += 1;
        let before = conversation.attempts.entries.len();
        let result = self.request(&case.id, &request, &mut conversation.attempts).await?;
        conversation.first_request.get_or_insert(request);
        for entry in &mut conversation.attempts.entries[before..] {
            entry.extra.insert("request".to_owned(), conversation.requests.into());
            entry.extra.extend(turn.map(|_| (TURN.to_owned(), (index + 1).into())));
        }
        Ok(match result {
            None => Err(TurnEnd::Abandoned),
            Some(Ok(received)) => Ok(received),
            Some(Err(failure)) => {
                let mut document = failure.document;
                // Which of the requests failed; a case with a single one needs no number.
                document.extra.insert("request".to_owned(), conversation.requests.into());
                document.extra.extend(turn.map(|_| (TURN.to_owned(), (index + 1).into())));
                Err(TurnEnd::Failed(Box::new((document, failure.note))))
            }
        })
    }

    /// Executes calls in order, and adds their results. Returns the end of the turn if the conversation cannot go on.
    async fn call_tools(
        &self,
        calls: Vec<(String, RequestedCall)>,
        given: [&Map<String, Value>; 2],
        conversation: &mut Conversation<'_>,
    ) -> Result<Option<TurnEnd>, WriteError> {
        let mut results = Vec::new();
        for (call_id, call) in calls {
            let context = ToolContext { limits: self.limits, destination: self.destination() };
            let started = self.clock.read();
            let outcome = tokio::select! {
                biased;
                () = self.interrupt.wait_for(Urgency::Abandon) => return Ok(Some(TurnEnd::Abandoned)),
                outcome = self.toolbox.call(&call, given, &context) => outcome?,
            };
            let ended = self.clock.read();
            let output = match outcome {
                Ok(output) => output,
                Err(fault) => return Ok(Some(self.fail(&fault, conversation))),
            };
            results.push(CallResult { call, text: output.text(), is_error: output.is_error });
            let mut masked = ToolOutput { value: output.value, is_error: output.is_error };
            self.recorder.redactor.json(&mut masked.value, &mut conversation.applied);
            conversation.transcript.add_result(&FinishedCall {
                call_id: &call_id,
                output: &masked,
                at: ended.at,
                latency_ms: whole_millis(ended.elapsed.saturating_sub(started.elapsed)),
            });
        }
        if let Some(dialogue) = self.recorder.adapter.dialogue() {
            conversation.thread.extend(dialogue.results(&results));
        }
        Ok(None)
    }

    /// Fails the case after an answer that the conversation cannot go on with.
    fn fail(&self, fault: &Fault, conversation: &mut Conversation<'_>) -> TurnEnd {
        let document = self.recorder.conversation_failure(conversation.attempts.entries.len(), fault);
        if let Some(entry) = conversation.attempts.entries.last_mut() {
            entry.outcome = counterproof_artifact::AttemptOutcome::RunnerError;
            entry.error_class = Some(fault.reason.class());
            entry.extra.insert("error_name".to_owned(), fault.reason.name().into());
        }
        let note = FailureNote { class: fault.reason.class(), name: fault.reason.name(), status: None };
        TurnEnd::Failed(Box::new((document, note)))
    }
}

impl<'a> Conversation<'a> {
    fn new(case: &'a CaseSpec) -> Self {
        Self {
            case,
            attempts: Attempts::default(),
            transcript: Transcript::new(),
            thread: Vec::new(),
            history: Vec::new(),
            applied: Applied::default(),
            first_request: None,
            requests: 0,
        }
    }

    /// Ends a turn, which started after this many attempts.
    fn end_turn(&mut self, user: Option<&str>, attempts_before: usize) {
        let Some(user) = user else { return };
        let answered = self.attempts.entries[attempts_before..].iter().filter(|entry| entry.error_class.is_none());
        let latency: f64 =
            answered.filter_map(|entry| entry.latency_ms.as_ref()).map(counterproof_artifact::Millis::as_f64).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of whole milliseconds")]
        self.transcript.end_turn(latency as u64);
        self.history.push(ChatMessage { role: "user", content: user.to_owned() });
        self.history.push(ChatMessage { role: "assistant", content: self.transcript.latest_text() });
    }
}
