//! From the server to the client: forwards every byte, and records the ends of calls.

use std::borrow::Cow;
use std::io::{self, Read};

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{CallId, CallStatus};
use counterproof_redaction::{Applied, RedactingStream, Redactor};

use super::{ClientOutput, LineReader, PendingCalls, Piece};
use crate::mcp::{ResponseKind, ScannedMessage, Scanner, read_responses};
use crate::session::{CallResult, ResultBytes, Session};

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
        if self.pending.is_empty() {
            return;
        }
        let Ok(text) = std::str::from_utf8(line) else { return };
        for response in read_responses(text) {
            let Some(call) = self.pending.take(&response.id) else { continue };
            self.end(
                &call,
                response.kind,
                response.text.len() as u64,
                ResultBytes::Inspected(response.payload.as_bytes()),
            );
        }
    }

    fn end(&self, call: &CallId, kind: ResponseKind, bytes_out: u64, result: ResultBytes<'_>) {
        let (status, error) = match kind {
            ResponseKind::InputRequired { request_state } => return self.session.wait_for_input(call, request_state),
            ResponseKind::Result => (CallStatus::Ok, None),
            ResponseKind::Failed { status, error } => (status, Some(error)),
        };
        self.session.end(call, CallResult { status, error, bytes_out, result });
    }

    fn redacted<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        self.secrets.map_or(Cow::Borrowed(line), |secrets| secrets.bytes(line, &mut Applied::default()))
    }

    /// Forwards a part of a long line. The last part waits until the end of the call is recorded.
    fn part(&self, line: &mut LongLine, bytes: &[u8], is_last: bool) -> io::Result<()> {
        line.scanner.push(bytes);
        line.length += bytes.len() as u64;
        let mut redacted = line.redacting.as_mut().map(|stream| stream.push(bytes));
        if is_last {
            let found = std::mem::take(&mut line.scanner).finish();
            self.end_of_long_line(&found, line.length);
            if let Some(stream) = line.redacting.take() {
                redacted.get_or_insert_default().extend(stream.finish().0);
            }
        }
        self.client.forward(redacted.as_deref().unwrap_or(bytes), is_last)
    }

    fn end_of_long_line(&self, found: &ScannedMessage, length: u64) {
        let (Some(id), Some(kind)) = (&found.id, &found.response) else { return };
        let Some(call) = self.pending.take(id) else { return };
        let hash = found.payload_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b""));
        self.end(&call, kind.clone(), length, ResultBytes::TooLarge { hash });
    }
}

/// A line that comes in parts.
struct LongLine {
    scanner: Scanner,
    length: u64,
    redacting: Option<RedactingStream>,
}

impl LongLine {
    fn start(secrets: Option<&Redactor>) -> Self {
        let redacting = secrets.map(|secrets| RedactingStream::new(secrets.clone()));
        Self { scanner: Scanner::default(), length: 0, redacting }
    }
}
