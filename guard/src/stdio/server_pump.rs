//! From the server to the client: forwards every byte, and records the ends of calls.

use std::borrow::Cow;
use std::io::{self, Read};

use counterproof_artifact::with_causes;
use counterproof_redaction::{Applied, JsonRedactingStream, JsonUse, Redactor, redact_json};

use super::{ClientOutput, LineReader, Part, Piece};
use crate::cassette::{Cassette, MAX_MESSAGE_BYTES};
use crate::mcp::{
    PendingCalls, Response, ScannedMessage, Scanner, end_calls, end_scanned_call, end_unreadable_call, read_responses,
};
use crate::session::{Problem, Session};

/// The direction from the server to the client.
pub struct ServerPump<'a> {
    /// The run.
    pub session: &'a Session,
    pub pending: &'a PendingCalls,
    pub client: &'a ClientOutput,
    /// The injected secrets, which the client must not receive.
    pub secrets: Option<&'a Redactor>,
    /// The cassette that records the answers, or replays others.
    pub cassette: Option<&'a Cassette>,
}

/// Why the direction ended.
#[derive(Debug)]
pub enum ServerEnd {
    /// The server closed its output.
    Closed,
    /// The server's output could not be read.
    Unreadable(io::Error),
    /// The client does not read any more.
    ClientGone,
}

impl ServerPump<'_> {
    /// Forwards until one side ends.
    pub fn run(&self, input: impl Read) -> ServerEnd {
        let mut reader = LineReader::new(input);
        let mut long: Option<LongLine> = None;
        loop {
            let forwarded = match reader.next_piece() {
                Ok(None) => return ServerEnd::Closed,
                Err(error) => return ServerEnd::Unreadable(error),
                Ok(Some(Piece::Line(line))) => {
                    self.inspect(line);
                    self.client.forward_line(&self.redacted(line))
                }
                Ok(Some(Piece::Part(part))) => {
                    if part.is_first {
                        long = Some(LongLine::start(self.secrets, self.cassette));
                    }
                    match &mut long {
                        Some(line) => self.part(line, part),
                        None => Ok(()),
                    }
                }
            };
            if forwarded.is_err() {
                return ServerEnd::ClientGone;
            }
        }
    }

    /// Records the ends of the calls that a line answers. They are recorded before the line is forwarded.
    fn inspect(&self, line: &[u8]) {
        if self.pending.is_empty() && self.cassette.is_none() {
            return;
        }
        let responses = std::str::from_utf8(line).map_or_else(|_| Vec::new(), read_responses);
        if responses.is_empty() {
            return end_unreadable_call(self.session, line, |id| self.pending.take(id));
        }
        self.update_cassette(&responses);
        end_calls(self.session, &responses, |id| self.pending.take(id));
    }

    /// Records answers, or compares them with the recorded ones.
    fn update_cassette(&self, responses: &[Response<'_>]) {
        let has_other_tools = match self.cassette {
            None => return,
            Some(Cassette::Record(recording)) => match recording.answers(responses) {
                Ok(has_changed) => has_changed,
                Err(error) => return self.session.report(Problem::Cassette, &with_causes(&error)),
            },
            Some(Cassette::Replay(replay)) => {
                responses.iter().any(|response| replay.has_other_tools(&response.id, response.payload))
            }
        };
        if has_other_tools {
            let message = "answers of the cassette may not fit to the tools that the server has now";
            self.session.report(Problem::ToolsChanged, message);
        }
    }

    fn redacted<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(secrets) = self.secrets else { return Cow::Borrowed(line) };
        redact_json(secrets, line, JsonUse::Message, &mut Applied::default())
    }

    /// Forwards a part of a long line. The last part waits until the end of the call is recorded.
    fn part(&self, line: &mut LongLine, part: Part<'_>) -> io::Result<()> {
        let bytes = part.bytes;
        line.scanner.push(bytes);
        line.length += bytes.len() as u64;
        line.collect(bytes);
        let mut redacted = line.redacting.as_mut().map(|stream| stream.push(bytes));
        if part.is_last {
            let found = std::mem::take(&mut line.scanner).finish();
            self.end_of_long_line(&found, line);
            if let Some(stream) = line.redacting.take() {
                redacted.get_or_insert_default().extend(stream.finish().0);
            }
        }
        let forwarded = redacted.as_deref().unwrap_or(bytes);
        if part.is_last { self.client.forward_line(forwarded) } else { self.client.forward_part(forwarded) }
    }

    fn end_of_long_line(&self, found: &ScannedMessage, line: &LongLine) {
        match line.text.as_deref().map(std::str::from_utf8) {
            Some(Ok(text)) => self.update_cassette(&read_responses(text)),
            Some(Err(_)) => {}
            None => self.report_unrecorded(found, line.length),
        }
        end_scanned_call(self.session, found, line.length, |id| self.pending.take(id));
    }

    /// Reports an answer that is too large for the cassette that records it.
    fn report_unrecorded(&self, found: &ScannedMessage, length: u64) {
        let (Some(Cassette::Record(recording)), Some(id), Some(_)) = (self.cassette, &found.id, &found.response) else {
            return;
        };
        if recording.forget(id) {
            let message = format!("an answer of {length} bytes is larger than a cassette can hold");
            self.session.report(Problem::Cassette, &message);
        }
    }
}

/// A line that comes in parts.
struct LongLine {
    scanner: Scanner,
    length: u64,
    /// The whole line, for a cassette. None without one, or beyond its limit.
    text: Option<Vec<u8>>,
    redacting: Option<JsonRedactingStream>,
}

impl LongLine {
    fn start(secrets: Option<&Redactor>, cassette: Option<&Cassette>) -> Self {
        let redacting = secrets.map(|secrets| JsonRedactingStream::new(secrets.clone(), JsonUse::Message));
        Self { scanner: Scanner::default(), length: 0, text: cassette.map(|_| Vec::new()), redacting }
    }

    fn collect(&mut self, bytes: &[u8]) {
        match &mut self.text {
            Some(text) if text.len() + bytes.len() <= MAX_MESSAGE_BYTES => text.extend_from_slice(bytes),
            _ => self.text = None,
        }
    }
}
