//! From the client to the server: forwards every message but the refused calls.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{Action, CallStatus};
use counterproof_store::spill_buffer::SpillBuffer;

use super::answered_call::end_call;
use super::{ClientOutput, LineReader, PendingCalls, Piece};
use crate::cassette::{Cassette, Replayed};
use crate::mcp::{
    ClientMessage, RequestId, Revision, ScannedMessage, Scanner, ToolCall, invalid_message, read_client_message,
    read_responses, refusal_message,
};
use crate::session::{CallResult, IncomingArgs, IncomingCall, Problem, Refusal, ResultBytes, Retry, Session, Verdict};

/// The method of tool calls.
const TOOLS_CALL: &str = "tools/call";

/// Forwarded lines are collected up to this size, as long as more of them have been read.
const WRITE_BYTES: usize = 64 * 1024;

/// The direction from the client to the server.
pub struct ClientPump<'a> {
    /// The run.
    pub session: &'a Session,
    /// The forwarded calls.
    pub pending: &'a PendingCalls,
    /// The output for answers to refused calls.
    pub client: &'a ClientOutput,
    /// The cassette that records requests, or answers them.
    pub cassette: Option<&'a Cassette>,
    /// Called when a rule ends the run, after its answer was written.
    pub on_terminated: &'a dyn Fn(),
}

/// Why the direction ended.
#[derive(Debug)]
pub enum ClientEnd {
    /// The client closed its output.
    Closed,
    /// The client's output could not be read.
    Unreadable(io::Error),
    /// The server does not read any more.
    ServerGone,
    /// The client does not read any more.
    ClientGone,
}

/// A failed write, and who is gone.
enum Gone {
    Server,
    Client,
}

/// What is written to the server instead of a message.
enum Forwarded {
    /// The message as it came.
    Unchanged,
    /// The rest of a batch.
    Replaced(Vec<u8>),
    /// Nothing.
    Nothing,
}

impl ClientPump<'_> {
    /// Forwards until one side ends.
    pub fn run(&self, input: impl Read, mut server: impl Write) -> ClientEnd {
        let mut reader = LineReader::new(input);
        let mut collected = Vec::new();
        let mut long: Option<LongMessage> = None;
        loop {
            if !collected.is_empty() && (collected.len() >= WRITE_BYTES || !reader.has_next()) {
                if server.write_all(&collected).and_then(|()| server.flush()).is_err() {
                    return ClientEnd::ServerGone;
                }
                collected.clear();
            }
            let forwarded = match reader.next_piece() {
                Ok(None) => return ClientEnd::Closed,
                Err(error) => return ClientEnd::Unreadable(error),
                Ok(Some(Piece::Line(line))) => self.line(line, &mut collected),
                Ok(Some(Piece::Part { bytes, is_first, is_last })) => {
                    if is_first {
                        long = Some(LongMessage::start(bytes));
                    }
                    self.part(long.as_mut(), bytes, is_last, &mut server)
                }
            };
            match forwarded {
                Ok(()) => {}
                Err(Gone::Server) => return ClientEnd::ServerGone,
                Err(Gone::Client) => return ClientEnd::ClientGone,
            }
        }
    }

    /// Handles a whole line. What is forwarded is added to `out`.
    fn line(&self, line: &[u8], out: &mut Vec<u8>) -> Result<(), Gone> {
        match self.inspect(line)? {
            Forwarded::Unchanged => out.extend_from_slice(line),
            Forwarded::Replaced(rest) => out.extend_from_slice(&rest),
            Forwarded::Nothing => {}
        }
        Ok(())
    }

    fn inspect(&self, line: &[u8]) -> Result<Forwarded, Gone> {
        if line.trim_ascii().is_empty() {
            return Ok(Forwarded::Unchanged);
        }
        let messages = match std::str::from_utf8(line) {
            Ok(text) => read_client_message(text).map_err(|error| error.to_string()),
            Err(_) => Err("the message is not UTF-8".to_owned()),
        };
        let messages = match messages {
            Ok(messages) => messages,
            Err(problem) => return self.uninspected(&problem),
        };
        let is_batch = line.trim_ascii_start().starts_with(b"[");
        let mut kept = Vec::new();
        let mut answers = Vec::new();
        let mut refusals = Vec::new();
        for message in &messages {
            match message {
                ClientMessage::Other { text, cancels, method, id, params } => {
                    if let Some(call) = cancels.as_ref().and_then(|id| self.pending.take(id)) {
                        self.session.end(&call, cancelled());
                    }
                    if !self.is_replayed(id.as_ref(), method.as_deref(), *params)? {
                        kept.push(*text);
                    }
                }
                ClientMessage::Call(call) => {
                    let bytes = if is_batch { call.text.len() } else { line.len() };
                    match self.call(call, bytes as u64) {
                        None if self.is_replayed(call.id.as_ref(), Some(TOOLS_CALL), call.params)? => {}
                        None => kept.push(call.text),
                        Some(refusal) => {
                            answers.extend(self.answer_to(&refusal, call.id.as_ref(), revision(call.is_stateless)));
                            refusals.push(refusal);
                        }
                    }
                }
            }
        }
        self.send_refusals(&refusals, &answers, is_batch)?;
        if kept.len() == messages.len() {
            return Ok(Forwarded::Unchanged);
        }
        if kept.is_empty() {
            return Ok(Forwarded::Nothing);
        }
        Ok(Forwarded::Replaced(format!("[{}]\n", kept.join(",")).into_bytes()))
    }

    /// Answers a request from the cassette, or records it there. Returns false if the request is forwarded.
    fn is_replayed(&self, id: Option<&RequestId>, method: Option<&str>, params: Option<&str>) -> Result<bool, Gone> {
        let (Some(cassette), Some(id), Some(method)) = (self.cassette, id, method) else { return Ok(false) };
        let replay = match cassette {
            Cassette::Record(recording) => {
                recording.request(id, method, params);
                return Ok(false);
            }
            Cassette::Replay(replay) => replay,
        };
        let answer = match replay.request(id, method, params) {
            Replayed::Forward => return Ok(false),
            Replayed::Answer(answer) | Replayed::Missing(answer) => answer,
        };
        if let Some(call) = self.pending.take(id) {
            for response in read_responses(&answer) {
                let result = ResultBytes::Inspected(response.payload.as_bytes());
                end_call(self.session, &call, response.kind, answer.len() as u64 + 1, result);
            }
        }
        self.client.answer(&answer).map_err(|_| Gone::Client)?;
        Ok(true)
    }

    /// Decides about a call. Returns the refusal, or none if the call is forwarded.
    fn call(&self, call: &ToolCall<'_>, bytes_in: u64) -> Option<Box<Refusal>> {
        let args = match &call.args {
            Ok(value) => IncomingArgs::Inspected { value, text: Cow::Borrowed(&*call.args_text) },
            Err(problem) => IncomingArgs::Ambiguous { hash: call.raw_hash(), problem: problem.to_string() },
        };
        let retry = call.is_retry.then_some(Retry { request_state: call.request_state.as_deref() });
        let incoming = IncomingCall { tool_name: &call.tool_name, args, bytes_in, timeout_ms: None, retry };
        self.begin(&incoming, call.id.as_ref())
    }

    fn begin(&self, incoming: &IncomingCall<'_>, id: Option<&RequestId>) -> Option<Box<Refusal>> {
        match self.session.begin(incoming) {
            Verdict::Forward(call) => {
                if let Some(id) = id {
                    self.pending.insert(id.clone(), call);
                }
                None
            }
            Verdict::Refuse(refusal) => Some(refusal),
        }
    }

    fn answer_to(&self, refusal: &Refusal, id: Option<&RequestId>, revision: Revision) -> Option<String> {
        // A message without an id gets no answer.
        id.map(|id| refusal_message(refusal, id, self.session.policy().responses(), revision))
    }

    /// Records refusals and answers them. A call is recorded before it is answered.
    fn send_refusals(&self, refusals: &[Box<Refusal>], answers: &[String], is_batch: bool) -> Result<(), Gone> {
        for (index, refusal) in refusals.iter().enumerate() {
            self.session.refused(refusal, answers.get(index).map_or(0, |answer| answer.len() as u64 + 1));
        }
        let written = match answers {
            [] => Ok(()),
            answers if is_batch => self.client.answer(&format!("[{}]", answers.join(","))),
            answers => answers.iter().try_for_each(|answer| self.client.answer(answer)),
        };
        if refusals.iter().any(|refusal| refusal.decision.action == Action::TerminateRun) {
            (self.on_terminated)();
        }
        written.map_err(|_| Gone::Client)
    }

    /// Handles a message that cannot be inspected.
    fn uninspected(&self, problem: &str) -> Result<Forwarded, Gone> {
        self.session.report(Problem::Uninspected, problem);
        if !self.session.fails_closed() {
            return Ok(Forwarded::Unchanged);
        }
        self.client.answer(&invalid_message(&refused(problem))).map_err(|_| Gone::Client)?;
        Ok(Forwarded::Nothing)
    }

    /// Handles a part of a long line.
    fn part(
        &self,
        long: Option<&mut LongMessage>,
        bytes: &[u8],
        is_last: bool,
        server: &mut impl Write,
    ) -> Result<(), Gone> {
        let Some(long) = long else { return Ok(()) };
        match &mut long.state {
            LongState::Opaque { is_reported } => {
                if !std::mem::replace(is_reported, true)
                    && let Forwarded::Nothing = self.uninspected("the message does not start as JSON does")?
                {
                    long.state = LongState::Dropped;
                    return Ok(());
                }
                server.write_all(bytes).and_then(|()| server.flush()).map_err(|_| Gone::Server)
            }
            LongState::Dropped => Ok(()),
            LongState::Held { scanner, bytes: held } => {
                scanner.push(bytes);
                if let Err(error) = held.write_all(bytes) {
                    return self.unheld(long, &error, server);
                }
                if !is_last {
                    return Ok(());
                }
                let found = std::mem::take(scanner).finish();
                if self.may_forward(&found, held.len())? && !self.is_long_replayed(&found, held)? {
                    let end = held.len();
                    held.copy(0, end, server).and_then(|()| server.flush()).map_err(|_| Gone::Server)?;
                }
                Ok(())
            }
        }
    }

    /// Decides about a long message that was read to its end.
    fn may_forward(&self, found: &ScannedMessage, bytes_in: u64) -> Result<bool, Gone> {
        if !found.is_object {
            let problem = "the message is larger than the guard inspects, and is no JSON object";
            return Ok(matches!(self.uninspected(problem)?, Forwarded::Unchanged));
        }
        let is_call = found.method.as_deref() == Some(TOOLS_CALL);
        if !is_call && found.problem.is_none() {
            return Ok(true);
        }
        let hash = found.args_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b"{}"));
        let args = match &found.problem {
            Some(problem) => IncomingArgs::Ambiguous { hash, problem: problem.to_string() },
            None => IncomingArgs::TooLarge { hash },
        };
        let retry = found.is_retry.then_some(Retry { request_state: found.request_state.as_deref() });
        let incoming = IncomingCall { tool_name: &found.tool_name, args, bytes_in, timeout_ms: None, retry };
        let Some(refusal) = self.begin(&incoming, found.id.as_ref()) else { return Ok(true) };
        let answer = self.answer_to(&refusal, found.id.as_ref(), revision(found.is_stateless));
        self.send_refusals(&[refusal], answer.as_slice(), false)?;
        Ok(false)
    }

    /// Answers a long request from the cassette; see [`Self::is_replayed`].
    fn is_long_replayed(&self, found: &ScannedMessage, held: &SpillBuffer) -> Result<bool, Gone> {
        let (Some(_), Some(method)) = (self.cassette, &found.method) else { return Ok(false) };
        // The key of a request is a hash of its whole parameters.
        let mut text = String::new();
        let is_text = held.reader(0).read_to_string(&mut text).is_ok();
        let message = read_client_message(&text).ok().filter(|_| is_text).and_then(|mut messages| messages.pop());
        let params = match &message {
            Some(ClientMessage::Other { params, .. }) => *params,
            Some(ClientMessage::Call(call)) => call.params,
            None => None,
        };
        self.is_replayed(found.id.as_ref(), Some(method), params)
    }

    /// Handles a long message for which there is no room, neither in memory nor on disk.
    fn unheld(&self, long: &mut LongMessage, error: &io::Error, server: &mut impl Write) -> Result<(), Gone> {
        let problem = format!("the message is too large to be held back for inspection: {error}");
        let forwarded = self.uninspected(&problem)?;
        let next = match forwarded {
            Forwarded::Unchanged => LongState::Opaque { is_reported: true },
            _ => LongState::Dropped,
        };
        let LongState::Held { bytes: held, .. } = std::mem::replace(&mut long.state, next) else { return Ok(()) };
        if matches!(long.state, LongState::Dropped) {
            return Ok(());
        }
        let end = held.len();
        held.copy(0, end, server).and_then(|()| server.flush()).map_err(|_| Gone::Server)
    }
}

/// A line that comes in parts.
struct LongMessage {
    state: LongState,
}

enum LongState {
    /// It is no JSON message and is forwarded as it comes.
    Opaque { is_reported: bool },
    /// It is refused; the rest of it is read and dropped.
    Dropped,
    /// It is held back until its end, because the decision depends on all of it.
    Held { scanner: Box<Scanner>, bytes: SpillBuffer },
}

impl LongMessage {
    fn start(bytes: &[u8]) -> Self {
        let state = match bytes.trim_ascii_start().first() {
            Some(b'{' | b'[') => LongState::Held { scanner: Box::default(), bytes: SpillBuffer::default() },
            _ => LongState::Opaque { is_reported: false },
        };
        Self { state }
    }
}

const fn revision(is_stateless: bool) -> Revision {
    if is_stateless { Revision::Stateless } else { Revision::WithInitialize }
}

const fn cancelled() -> CallResult<'static> {
    CallResult { status: CallStatus::Cancelled, error: None, bytes_out: 0, result: ResultBytes::None }
}

fn refused(problem: &str) -> String {
    format!("the guard cannot inspect the message, and the policy refuses such messages: {problem}")
}
