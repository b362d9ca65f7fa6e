//! From the client to the server: forwards every message but the refused calls.

use std::convert::Infallible;
use std::io::{self, Read, Write};

use counterproof_artifact::with_causes;
use counterproof_ledger::event::CallId;
use counterproof_store::spill_buffer::SpillBuffer;

use super::{ClientOutput, LineEnds, LinePart, LineReader, Piece};
use crate::cassette::{Cassette, CassetteLookup, MAX_MESSAGE_BYTES};
use crate::mcp::{
    Answers, ClientMessage, MessageHandler, PendingCalls, RequestId, ScannedMessage, Scanner, ToServer,
    decide_messages, decide_scanned, end_calls, read_client_message, read_client_messages, read_responses,
    uninspected_message,
};
use crate::session::{Problem, Session};

/// Why a message with another end of a line in it is not inspected.
const OTHER_LINE_END: &str = "the message has a carriage return in it, at which some servers end a line";

/// Forwarded lines are collected up to this size, as long as more of them have been read.
const WRITE_BYTES: usize = 64 * 1024;

pub struct ClientPump<'a> {
    pub session: &'a Session,
    pub pending: &'a PendingCalls,
    pub client: &'a ClientOutput,
    /// The cassette that records requests, or answers them.
    pub cassette: Option<&'a Cassette>,
    /// Called when a rule ends the run, after its answer was written.
    pub on_terminated: &'a dyn Fn(),
}

#[derive(Debug)]
pub enum ClientEnd {
    Closed,
    Unreadable(io::Error),
    ServerGone,
    ClientGone,
}

enum GonePeer {
    Server,
    Client,
}

impl ClientPump<'_> {
    pub fn run(&self, input: impl Read, mut server: impl Write) -> ClientEnd {
        let mut reader = LineReader::new(input);
        let mut collected = Vec::new();
        let mut long: Option<LongMessage> = None;
        loop {
            // One write for many lines, but never a wait for more: the client may wait for the answer to what it has sent.
            let is_due = collected.len() >= WRITE_BYTES || !collected.is_empty() && !reader.has_next();
            if is_due && !send(&mut collected, &mut server) {
                return ClientEnd::ServerGone;
            }
            let forwarded = match reader.next_piece() {
                Ok(None) => return ClientEnd::Closed,
                Err(error) => return ClientEnd::Unreadable(error),
                Ok(Some(Piece::Line(line))) => self.line(line, &mut collected),
                Ok(Some(Piece::Part(part))) => {
                    if part.is_first {
                        long = Some(LongMessage::start(part.bytes));
                    }
                    // The parts are written directly, after the lines before them.
                    if !send(&mut collected, &mut server) {
                        return ClientEnd::ServerGone;
                    }
                    self.part(long.as_mut(), part, &mut server)
                }
            };
            match forwarded {
                Ok(()) => {}
                Err(GonePeer::Server) => return ClientEnd::ServerGone,
                Err(GonePeer::Client) => return ClientEnd::ClientGone,
            }
        }
    }

    fn line(&self, line: &[u8], out: &mut Vec<u8>) -> Result<(), GonePeer> {
        match self.inspect(line)? {
            ToServer::Unchanged => out.extend_from_slice(line),
            ToServer::Rest(rest) => {
                out.extend_from_slice(rest.as_bytes());
                out.push(b'\n');
            }
            ToServer::Nothing => {}
        }
        Ok(())
    }

    fn inspect(&self, line: &[u8]) -> Result<ToServer, GonePeer> {
        if line.trim_ascii().is_empty() {
            return Ok(ToServer::Unchanged);
        }
        let mut ends = LineEnds::default();
        ends.push(line);
        // Before the message is read: to a server that ends a line there, it is several messages.
        if ends.has_other() {
            return self.uninspected(OTHER_LINE_END);
        }
        let messages = match read_client_messages(line) {
            Ok(messages) => messages,
            Err(problem) => return self.uninspected(&problem.to_string()),
        };
        if let Some(name) = messages.client_name() {
            self.session.set_client_name(name);
        }
        let mut lines = Lines { pump: self, answers: Vec::new() };
        let Ok(mut decided) = decide_messages(self.session, &messages, &mut lines);
        decided.answers.texts.append(&mut lines.answers);
        self.send(&decided.answers)?;
        Ok(decided.to_server)
    }

    fn send(&self, answers: &Answers) -> Result<(), GonePeer> {
        // The answer is written before the run ends, so that the agent can read why.
        let written = answers.message().map_or(Ok(()), |message| self.client.answer(&message));
        if answers.terminates {
            (self.on_terminated)();
        }
        written.map_err(|_| GonePeer::Client)
    }

    /// Returns the answer of the cassette to a request, or records the request there. Returns none if the request is forwarded.
    fn replayed(&self, id: Option<&RequestId>, method: Option<&str>, params: Option<&str>) -> Option<String> {
        let (cassette, id, method) = (self.cassette?, id?, method?);
        let replay = match cassette {
            Cassette::Record(recording) => {
                if let Err(error) = recording.request(id, method, params) {
                    self.session.report(Problem::Cassette, &with_causes(&error));
                }
                return None;
            }
            Cassette::Replay(replay) => replay,
        };
        let answer = match replay.request(id, method, params) {
            CassetteLookup::Forward => return None,
            CassetteLookup::Answer(answer) | CassetteLookup::Missing(answer) => answer,
        };
        // A replayed call ends as if the server had answered: records of a replay and of a recording are compared with each other.
        end_calls(self.session, &read_responses(&answer), |id| self.pending.take(id));
        Some(answer)
    }

    fn uninspected(&self, problem: &str) -> Result<ToServer, GonePeer> {
        self.session.report(Problem::Uninspected, problem);
        if !self.session.fails_closed() {
            return Ok(ToServer::Unchanged);
        }
        self.client.answer(&uninspected_message(problem)).map_err(|_| GonePeer::Client)?;
        Ok(ToServer::Nothing)
    }

    fn part(
        &self,
        long: Option<&mut LongMessage>,
        part: LinePart<'_>,
        server: &mut impl Write,
    ) -> Result<(), GonePeer> {
        let (Some(long), LinePart { bytes, is_last, .. }) = (long, part) else { return Ok(()) };
        match &mut long.state {
            LongState::Opaque { is_reported } => {
                if !std::mem::replace(is_reported, true)
                    && self.uninspected("the message does not start as JSON does")? == ToServer::Nothing
                {
                    long.state = LongState::Dropped;
                    return Ok(());
                }
                server.write_all(bytes).and_then(|()| server.flush()).map_err(|_| GonePeer::Server)
            }
            LongState::Dropped => Ok(()),
            LongState::Held { scanner, ends, bytes: held } => {
                scanner.push(bytes);
                ends.push(bytes);
                let before = held.len();
                // A full disk. What is held so far is forwarded or dropped, as for any message that cannot be inspected.
                if let Err(error) = held.write_all(bytes) {
                    let written = usize::try_from(held.len() - before).unwrap_or_default();
                    return self.unheld(long, &bytes[written..], &error, server);
                }
                if !is_last {
                    return Ok(());
                }
                // Only now: the decision depends on the whole message, as the last key can change what it is.
                let found = std::mem::take(scanner).finish();
                let problem = if ends.has_other() { Some(OTHER_LINE_END.to_owned()) } else { found.unreadable() };
                let to_server = match problem {
                    Some(problem) => self.uninspected(&problem)?,
                    None => self.decide_long(&found, held.len())?,
                };
                if to_server == ToServer::Unchanged && !self.is_long_replayed(&found, held)? {
                    let end = held.len();
                    held.copy(0, end, server).and_then(|()| server.flush()).map_err(|_| GonePeer::Server)?;
                }
                Ok(())
            }
        }
    }

    fn decide_long(&self, found: &ScannedMessage, bytes_in: u64) -> Result<ToServer, GonePeer> {
        let decided = decide_scanned(self.session, found, bytes_in, &mut Lines { pump: self, answers: Vec::new() });
        self.send(&decided.answers)?;
        Ok(decided.to_server)
    }

    /// Answers a long request from the cassette, or expects its response. Returns false if it is forwarded.
    fn is_long_replayed(&self, found: &ScannedMessage, held: &SpillBuffer) -> Result<bool, GonePeer> {
        let (Some(id), Some(method)) = (&found.id, &found.method) else { return Ok(false) };
        if let Some(answer) = self.long_replayed(id, method, held) {
            return self.client.answer(&answer).map(|()| true).map_err(|_| GonePeer::Client);
        }
        // The shim waits for the responses to all requests before it ends the server, not only to calls.
        if !found.is_call {
            self.pending.insert_other(id.clone());
        }
        Ok(false)
    }

    fn long_replayed(&self, id: &RequestId, method: &str, held: &SpillBuffer) -> Option<String> {
        // The key of a request is a hash of its whole parameters.
        if held.len() <= MAX_MESSAGE_BYTES as u64 {
            self.cassette?;
            let mut text = String::new();
            let is_text = held.reader(0).read_to_string(&mut text).is_ok();
            let message = read_client_message(&text).ok().filter(|_| is_text).and_then(|mut messages| messages.pop());
            return self.replayed(Some(id), Some(method), message.as_ref().and_then(ClientMessage::params));
        }
        if !matches!(self.cassette, Some(Cassette::Record(_))) {
            // No cassette has such a request.
            return self.replayed(Some(id), Some(method), None);
        }
        let message = format!("a request of {} bytes is larger than a cassette can hold", held.len());
        self.session.report(Problem::Cassette, &message);
        None
    }

    /// Handles a long message that fits neither in memory nor on disk. `rest` is what was read but not held.
    fn unheld(
        &self,
        long: &mut LongMessage,
        rest: &[u8],
        error: &io::Error,
        server: &mut impl Write,
    ) -> Result<(), GonePeer> {
        let problem = format!("the message is too large to be held back for inspection: {error}");
        let forwarded = self.uninspected(&problem)?;
        let next = match forwarded {
            ToServer::Unchanged => LongState::Opaque { is_reported: true },
            _ => LongState::Dropped,
        };
        let LongState::Held { bytes: held, .. } = std::mem::replace(&mut long.state, next) else { return Ok(()) };
        if matches!(long.state, LongState::Dropped) {
            return Ok(());
        }
        let end = held.len();
        let written = held.copy(0, end, server).and_then(|()| server.write_all(rest)).and_then(|()| server.flush());
        written.map_err(|_| GonePeer::Server)
    }
}

fn send(collected: &mut Vec<u8>, server: &mut impl Write) -> bool {
    // An error is the end of the server. The thread that waits for its process reports how it ended.
    let is_sent = collected.is_empty() || server.write_all(collected).and_then(|()| server.flush()).is_ok();
    collected.clear();
    is_sent
}

struct LongMessage {
    state: LongState,
}

enum LongState {
    Opaque {
        is_reported: bool,
    },
    /// It is refused; the rest of it is read and dropped.
    Dropped,
    /// It is held back until its end, because the decision depends on all of it.
    Held {
        scanner: Box<Scanner>,
        ends: LineEnds,
        bytes: SpillBuffer,
    },
}

impl LongMessage {
    fn start(bytes: &[u8]) -> Self {
        let state = match bytes.trim_ascii_start().first() {
            // Only what may be JSON is held back. Other text could be another framing, which must not wait.
            Some(b'{' | b'[') => {
                LongState::Held { scanner: Box::default(), ends: LineEnds::default(), bytes: SpillBuffer::default() }
            }
            _ => LongState::Opaque { is_reported: false },
        };
        Self { state }
    }
}

struct Lines<'a> {
    pump: &'a ClientPump<'a>,
    answers: Vec<String>,
}

impl MessageHandler for Lines<'_> {
    type Error = Infallible;

    const FRAME_BYTES: u64 = 1;

    fn forwarded(&mut self, id: &RequestId, call: CallId) {
        self.pump.pending.insert(id.clone(), call);
    }

    fn cancelled(&mut self, id: &RequestId) -> Option<CallId> {
        if let Some(Cassette::Record(recording)) = self.pump.cassette {
            // The server may still answer a cancelled request, and a cassette must not have that answer.
            recording.forget(id);
        }
        self.pump.pending.take(id)
    }

    fn answers(&mut self, message: &ClientMessage<'_>) -> Result<bool, Infallible> {
        let answer = self.pump.replayed(message.id(), message.method(), message.params());
        if let (None, ClientMessage::Other { id: Some(id), method: Some(_), .. }) = (&answer, message) {
            self.pump.pending.insert_other(id.clone());
        }
        let is_replayed = answer.is_some();
        self.answers.extend(answer);
        Ok(is_replayed)
    }
}
