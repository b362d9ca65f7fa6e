//! From the server to the client: forwards every byte, and records the ends of calls.

use std::borrow::Cow;
use std::io::{self, Read};

use counterproof_artifact::{Sha256Digest, with_causes};
use counterproof_redaction::{Applied, RedactingStream, Redactor};

use super::answered_call::end_call;
use super::{ClientOutput, LineReader, PendingCalls, Piece};
use crate::cassette::Cassette;
use crate::mcp::{ScannedMessage, Scanner, read_responses};
use crate::session::{Problem, ResultBytes, Session};

/// The direction from the server to the client.
pub struct ServerPump<'a> {
    /// The run.
    pub session: &'a Session,
    /// The forwarded calls.
    pub pending: &'a PendingCalls,
    /// The output.
    pub client: &'a ClientOutput,
    /// The injected secrets, which the client must not receive.
    pub secrets: Option<&'a Redactor>,
    /// The cassette that records the answers, or knows other ones.
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
                    self.client.forward(&self.redacted(line), true)
                }
                Ok(Some(Piece::Part { bytes, is_first, is_last })) => {
                    if is_first {
                        long = Some(LongLine::start(self.secrets));
                    }
                    match &mut long {
                        Some(line) => self.part(line, bytes, is_last),
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
        let Ok(text) = std::str::from_utf8(line) else { return };
        self.update_cassette(text);
        for response in read_responses(text) {
            let Some(call) = self.pending.take(&response.id) else { continue };
            let result = ResultBytes::Inspected(response.payload.as_bytes());
            end_call(self.session, &call, response.kind, response.text.len() as u64, result);
        }
    }

    /// Records the answers in a line, or compares them with the recorded ones.
    fn update_cassette(&self, text: &str) {
        let has_other_tools = match self.cassette {
            None => return,
            Some(Cassette::Record(recording)) => match recording.answers(text) {
                Ok(has_changed) => has_changed,
                Err(error) => return self.session.report(Problem::Cassette, &with_causes(&error)),
            },
            Some(Cassette::Replay(replay)) => {
                let responses = read_responses(text);
                responses.iter().any(|response| replay.has_other_tools(&response.id, response.payload))
            }
        };
        if has_other_tools {
            let message = "answers of the cassette may not fit to the tools that the server has now";
            self.session.report(Problem::ToolsChanged, message);
        }
    }

    fn redacted<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        self.secrets.map_or(Cow::Borrowed(line), |secrets| secrets.bytes(line, &mut Applied::default()))
    }

    /// Forwards a part of a long line. The last part waits until the end of the call is recorded.
    fn part(&self, line: &mut LongLine, bytes: &[u8], is_last: bool) -> io::Result<()> {
        line.scanner.push(bytes);
        line.length += bytes.len() as u64;
        line.text.extend_from_slice(if self.cassette.is_some() { bytes } else { &[] });
        let mut redacted = line.redacting.as_mut().map(|stream| stream.push(bytes));
        if is_last {
            let found = std::mem::take(&mut line.scanner).finish();
            self.end_of_long_line(&found, line);
            if let Some(stream) = line.redacting.take() {
                redacted.get_or_insert_default().extend(stream.finish().0);
            }
        }
        self.client.forward(redacted.as_deref().unwrap_or(bytes), is_last)
    }

    fn end_of_long_line(&self, found: &ScannedMessage, line: &LongLine) {
        if let Ok(text) = std::str::from_utf8(&line.text) {
            self.update_cassette(text);
        }
        let (Some(id), Some(kind)) = (&found.id, &found.response) else { return };
        let Some(call) = self.pending.take(id) else { return };
        let hash = found.payload_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b""));
        end_call(self.session, &call, kind.clone(), line.length, ResultBytes::TooLarge { hash });
    }
}

/// A line that comes in parts.
struct LongLine {
    scanner: Scanner,
    length: u64,
    /// The whole line, for a cassette.
    text: Vec<u8>,
    redacting: Option<RedactingStream>,
}

impl LongLine {
    fn start(secrets: Option<&Redactor>) -> Self {
        let redacting = secrets.map(|secrets| RedactingStream::new(secrets.clone()));
        Self { scanner: Scanner::default(), length: 0, text: Vec::new(), redacting }
    }
}
