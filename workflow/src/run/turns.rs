//! The loop of the agent: a request to the model, its tool calls, and a checkpoint after each of them.

use std::io;
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use counterproof_guard::http::UpstreamUrl;
use counterproof_sessions::event::{EventBody, RequestedCall, SessionEvent, ToolCall, ToolResult};
use counterproof_sessions::recorder::SessionRecorder;
use counterproof_sessions::store::MASK;
use hyper::Uri;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::journal::JournalError;
use super::machine::{Run, RunError, Step, Stop};
use super::messages::{relative, tool_result};
use super::state::{Failure, FailureKind, Phase, RunState};
use crate::model::{AskError, Attempts, RecordError};
use crate::tools::{ToolOutcome, Tools};

/// The answer to a call that was running when the process was killed.
const INTERRUPTED: &str =
    "error: the call was interrupted before it ended, and its changes in the workspace were undone";

/// The answer to such a call in a fork or after a rewind, if the call was a command without a sandbox.
const NOT_REPEATED: &str = "error: the call was interrupted before it ended. It had no sandbox and is not run again, because its effects \
    outside of the workspace are not known. Its changes in the workspace were undone";

/// The end of [`ToolResult::error`] of a call that was interrupted.
const WAS_INTERRUPTED: &str = "interrupted";

/// The answer to a call whose arguments are not in the checkpoint.
const MASKED: &str =
    "error: the call was not run, because its arguments have a value that is masked as a secret in the record";

/// Why a checkpoint within a command cannot be resumed.
const UNKNOWN_EFFECTS: &str =
    "a shell command without a sandbox was stopped, and its effects outside of the workspace are not known";

impl Run<'_> {
    /// Fails if no connection to the model of the built-in agent is possible. Its first request is sent only after the tests ran.
    pub(super) fn check_model(&self) -> Result<(), Stop> {
        if self.agent_upstreams.is_some() {
            return Ok(());
        }
        match unreachable(self.model.base_url(), |name| std::env::var_os(name).is_some()) {
            None => Ok(()),
            Some(reason) => {
                let text = format!("{reason}; start the model server, or pass another `--model-url`");
                Err(Failure::new(FailureKind::Model, text).into())
            }
        }
    }

    /// Takes one turn. Returns the next state if the model has ended its attempt.
    pub(super) fn turn(&mut self) -> Result<Option<Step>, Stop> {
        if !self.state.pending.is_empty() {
            return self.run_calls().map(|()| None);
        }
        if let Some(failure) = self.state.exhausted() {
            return Err(failure.into());
        }
        let body = self.model.body(&self.messages, &Tools::definitions());
        let recorder = self.journal.recorder().clone();
        let mut attempts = Recorded {
            state: &mut self.state,
            recorder: &recorder,
            progress: &self.control.progress,
            failed: None,
            answered: None,
        };
        let answer = self.model.ask(&body, &self.control.cancel, &mut attempts);
        if let Some(event) = attempts.answered {
            self.journal.add(event);
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(AskError::Cancelled) => return Err(Stop::Interrupted(None)),
            Err(AskError::Budget) => {
                let failure = self.state.exhausted();
                return Err(failure
                    .unwrap_or_else(|| Failure::new(FailureKind::Model, "no request is allowed"))
                    .into());
            }
            // What cannot be recorded could not be resumed.
            Err(AskError::Record(error)) => return Err(Stop::Error(RunError::Record(error))),
            Err(error @ AskError::Model { .. }) => {
                return Err(Failure::new(FailureKind::Model, error.to_string()).into());
            }
        };
        self.state.spent.answers += 1;
        self.messages.push(self.journal.masked(answer.message));
        if answer.calls.is_empty() {
            self.state.last_text = answer.text.map(|text| text_of(self.journal.masked(Value::String(text))));
            return Ok(Some(Step::new(self.first_check(), "attempt_ended")));
        }
        self.state.pending = answer.calls;
        self.state.is_running = true;
        self.end_of_turn_part()?;
        self.run_calls().map(|()| None)
    }

    /// Runs the calls that have no result yet.
    fn run_calls(&mut self) -> Result<(), Stop> {
        while let Some(call) = self.state.pending.first().cloned() {
            let at = Timestamp::now();
            let function = &call.function;
            let mut outcome = self.tools.run(&function.name, &function.arguments, &self.control.cancel);
            if let Some(content) = self.patcher.content(&call) {
                outcome.message = content;
            }
            let is_interrupted = outcome.interrupted;
            let is_unsafe = is_interrupted && outcome.result.sandbox.as_deref() == Some("none");
            self.record_call(at, &call, outcome)?;
            if is_interrupted {
                // The next one has not begun.
                self.state.is_running = false;
                return Err(Stop::Interrupted(is_unsafe.then_some(UNKNOWN_EFFECTS)));
            }
            self.end_of_turn_part()?;
        }
        Ok(())
    }

    /// Adds the records and the message of a call that has ended.
    fn record_call(&mut self, at: Timestamp, call: &RequestedCall, outcome: ToolOutcome) -> Result<(), Stop> {
        let latency_ms = u64::try_from(Timestamp::now().duration_since(at).as_millis()).ok();
        let ToolOutcome { message, arguments, result, reads, command, decision, .. } = outcome;
        let has_read = result.success == Some(true) && !reads.is_empty();
        let body = ToolCall {
            tool_name: call.function.name.clone(),
            arguments,
            result,
            latency_ms,
            call_id: call.id.clone(),
            decision,
        };
        self.journal.add(SessionEvent::captured(at, EventBody::ToolCall(body)));
        if let Some(mut command) = command {
            command.call_id.clone_from(&call.id);
            self.journal.add(SessionEvent::captured(at, EventBody::Command(command)));
        }
        for read in reads {
            self.journal.add(SessionEvent::captured(at, EventBody::FileOperation(read)));
        }
        let has_changed = may_change(&call.function.name) && self.journal.observe()?;
        let message = relative(&message, self.journal.workspace().folder());
        let message = message.replace(self.private.as_str(), "$TMPDIR");
        let message = text_of(self.journal.masked(Value::String(message)));
        self.messages.push(tool_result(call.id.as_deref(), &message));
        self.state.pending.remove(0);
        self.state.is_running = !self.state.pending.is_empty();
        self.advance(has_read, has_changed);
        Ok(())
    }

    /// The agent has found a place once it has read, and works on it once it has changed a file.
    fn advance(&mut self, has_read: bool, has_changed: bool) {
        let (to, trigger) = match self.state.phase {
            Phase::Localise | Phase::Understand if has_changed => (Phase::Edit, "file_changed"),
            Phase::Localise if has_read => (Phase::Understand, "file_read"),
            _ => return,
        };
        (self.control.progress)(&format!("{to} ({})", trigger.replace('_', " ")));
        self.journal.transition(to, trigger, json!({}));
        self.state.phase = to;
    }

    fn end_of_turn_part(&mut self) -> Result<(), JournalError> {
        if self.state.spent.answers.is_multiple_of(self.state.settings.checkpoint_every.max(1)) {
            self.journal.checkpoint(&self.state, &self.messages, None)
        } else {
            self.journal.flush()
        }
    }
}

/// How long a connection to the model may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Variables with a proxy, which may reach what this machine cannot. They also exist in small letters.
const PROXIES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// Returns why no connection to a URL is possible. `is_set` reports whether a variable of the environment is set.
fn unreachable(url: &str, is_set: impl Fn(&str) -> bool) -> Option<String> {
    // Without the credentials, which the reason must not have.
    let url = url.parse::<UpstreamUrl>().ok()?.recorded();
    let uri: Uri = url.parse().ok()?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if !is_loopback && PROXIES.iter().any(|name| is_set(name) || is_set(&name.to_lowercase())) {
        return None;
    }
    let connected = (host.as_str(), port).to_socket_addrs().and_then(|addresses| {
        let mut result = Err(io::Error::other("the host has no address"));
        for address in addresses {
            result = TcpStream::connect_timeout(&address, CONNECT_WITHIN);
            if result.is_ok() {
                break;
            }
        }
        result
    });
    connected.err().map(|error| format!("cannot connect to the model at {url}: {error}"))
}

/// Answers the call that was running when a process was killed. Its changes are undone, because the workspace is that of the
/// checkpoint before it.
pub(super) fn close_running_call(state: &mut RunState, messages: &mut Vec<Value>) -> Option<SessionEvent> {
    if !std::mem::replace(&mut state.is_running, false) || state.pending.is_empty() {
        return None;
    }
    Some(close(state.pending.remove(0), messages, INTERRUPTED, WAS_INTERRUPTED))
}

/// Answers the call that was running at an older checkpoint, if it is a command that must not run again. Other calls have no effects
/// outside of the workspace.
pub(super) fn close_command(state: &mut RunState, messages: &mut Vec<Value>) -> Option<SessionEvent> {
    let is_command = state.pending.first().is_some_and(|call| call.function.name == "shell");
    (state.is_running && is_command).then(|| close(state.pending.remove(0), messages, NOT_REPEATED, WAS_INTERRUPTED))
}

/// True for a call that ran to its end: it was not interrupted.
pub(super) fn has_ended(call: &ToolCall) -> bool {
    !call.result.error.as_deref().is_some_and(|error| error.ends_with(WAS_INTERRUPTED))
}

/// Answers the calls whose arguments were masked: they cannot be run as they were asked for.
pub(super) fn close_masked_calls(state: &mut RunState, messages: &mut Vec<Value>) -> Vec<SessionEvent> {
    // All of them, in their order, because later calls may need earlier ones.
    if !state.pending.iter().any(|call| call.function.arguments.contains(MASK)) {
        return Vec::new();
    }
    std::mem::take(&mut state.pending).into_iter().map(|call| close(call, messages, MASKED, "masked")).collect()
}

fn close(call: RequestedCall, messages: &mut Vec<Value>, message: &str, error: &str) -> SessionEvent {
    messages.push(tool_result(call.id.as_deref(), message));
    let arguments = serde_json::from_str(&call.function.arguments);
    let body = ToolCall {
        tool_name: call.function.name,
        arguments: arguments.unwrap_or(Value::String(call.function.arguments)),
        result: ToolResult {
            success: Some(false),
            content: Some(message.to_owned()),
            truncated: Some(false),
            error: Some(error.to_owned()),
            sandbox: None,
        },
        latency_ms: None,
        call_id: call.id,
        decision: None,
    };
    SessionEvent::captured(Timestamp::now(), EventBody::ToolCall(body))
}

/// Counts what the attempts of a request use. The record of the answer is kept back: it is stored with the checkpoint that has
/// the answer, so that no answer is known without it.
struct Recorded<'a> {
    state: &'a mut RunState,
    recorder: &'a SessionRecorder,
    progress: &'a dyn Fn(&str),
    /// Why the attempt before got no answer.
    failed: Option<String>,
    answered: Option<SessionEvent>,
}

impl Attempts for Recorded<'_> {
    fn may_send(&mut self) -> bool {
        if self.state.exhausted().is_some() {
            return false;
        }
        self.state.spent.requests += 1;
        if let Some(reason) = self.failed.take() {
            (self.progress)(&format!("asking the model again: {reason}"));
        }
        true
    }

    fn record(&mut self, event: SessionEvent) -> Result<(), RecordError> {
        if let EventBody::LlmCall(call) = &event.body {
            let usage = call.response.as_ref().and_then(|response| response.usage);
            let spent = &mut self.state.spent;
            spent.tokens = spent.tokens.saturating_add(usage.and_then(|usage| usage.total_tokens).unwrap_or(0));
            if let Some(cost) = call.cost {
                spent.cost = Some(spent.cost.unwrap_or(0.0) + cost);
            }
        }
        if let Some(error) = &event.error {
            self.failed = Some(error.message.clone());
            return Ok(self.recorder.record(vec![event])?);
        }
        self.answered = Some(event);
        Ok(())
    }
}

fn may_change(tool: &str) -> bool {
    !matches!(tool, "read" | "search")
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cannot_be_reached_is_named_without_its_credentials() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://user:word@127.0.0.1:{port}/v1?key=k");
        assert_eq!(unreachable(&url, |_| false), None);
        drop(listener);
        let reason = unreachable(&url, |_| true).unwrap();
        assert!(
            reason.starts_with(&format!("cannot connect to the model at http://127.0.0.1:{port}/v1: ")),
            "{reason}"
        );
        assert_eq!(unreachable("https://model.invalid/v1", |name| name == "https_proxy"), None);
    }
}
