//! From the server to the client: forwards every byte, records the ends of calls, and writes the answers to refused calls.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use counterproof_artifact::with_causes;
use counterproof_redaction::{Applied, JsonRedactingStream, JsonUse, Redactor, redact_json};

use super::{LinePart, LineReader, Piece};
use crate::cassette::{Cassette, MAX_MESSAGE_BYTES};
use crate::mcp::{
    PendingCalls, Response, ScannedMessage, Scanner, end_calls, end_scanned_call, end_unreadable_call, read_responses,
};
use crate::session::{Problem, Session};

pub struct ServerPump<'a> {
    pub session: &'a Session,
    pub pending: &'a PendingCalls,
    pub client: &'a ClientOutput,
    pub secrets: Option<&'a Redactor>,
    pub cassette: Option<&'a Cassette>,
}

#[derive(Debug)]
pub enum ServerEnd {
    Closed,
    Unreadable(io::Error),
    ClientGone,
}

impl ServerPump<'_> {
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
        // Without a request that waits, no line answers one.
        if self.pending.is_empty() && self.cassette.is_none() {
            return;
        }
        let responses = std::str::from_utf8(line).map_or_else(|_| Vec::new(), read_responses);
        // A message that no parser can read as a whole may still answer a call.
        if responses.is_empty() {
            return end_unreadable_call(self.session, line, |id| self.pending.take(id));
        }
        // Before the ends of the calls, so that an answer in the ledger is also in the cassette.
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
    fn part(&self, line: &mut LongLine, part: LinePart<'_>) -> io::Result<()> {
        let bytes = part.bytes;
        line.scanner.push(bytes);
        line.length += bytes.len() as u64;
        line.collect(bytes);
        // A secret can be divided between parts: the stream holds its beginning back.
        let mut redacted = line.redacting.as_mut().map(|stream| stream.push(bytes));
        if part.is_last {
            // Before the last part is forwarded: the client must not see the end of a call that is not recorded.
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
            // Dropped at once beyond the limit, so that a long answer does not fill the memory.
            Some(text) if text.len() + bytes.len() <= MAX_MESSAGE_BYTES => text.extend_from_slice(bytes),
            _ => self.text = None,
        }
    }
}

/// Most bytes that wait for the end of a line.
const MAX_WAITING: usize = 1 << 20;

/// Writes whole lines from two threads to one stream.
pub struct ClientOutput {
    state: Mutex<State>,
}

struct State {
    output: Box<dyn Write + Send>,
    line: ForwardedLine,
    waiting: Vec<u8>,
}

/// What was written of the current line of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForwardedLine {
    Start,
    Message,
    /// A part of other text, such as a prompt. It may never end.
    Text,
}

impl ClientOutput {
    pub fn new(output: Box<dyn Write + Send>) -> Self {
        Self { state: Mutex::new(State { output, line: ForwardedLine::Start, waiting: Vec::new() }) }
    }

    /// Writes a line of the server, or the last part of one.
    pub fn forward_line(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.output.write_all(bytes)?;
        if bytes.ends_with(b"\n") {
            state.line = ForwardedLine::Start;
            state.write_waiting()?;
        } else {
            // The server ended within the line: what follows is a line of its own.
            state.line = ForwardedLine::Text;
            if !state.waiting.is_empty() {
                state.end_line()?;
            }
        }
        state.output.flush()
    }

    /// Writes a part of a line of the server, which goes on.
    pub fn forward_part(&self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            // A redactor holds the first bytes of the line back: nothing of it is written.
            return Ok(());
        }
        let mut state = self.state();
        state.output.write_all(bytes)?;
        if state.line == ForwardedLine::Start {
            state.line = if starts_message(bytes) { ForwardedLine::Message } else { ForwardedLine::Text };
        }
        state.output.flush()
    }

    /// Writes a line of the guard, given without its newline. Within a message of the server, it waits for the end of the message.
    /// Other text of the server is ended by a newline.
    pub fn answer(&self, line: &str) -> io::Result<()> {
        let mut state = self.state();
        state.waiting.extend_from_slice(line.as_bytes());
        state.waiting.push(b'\n');
        // An answer within a message would make both unreadable. The wait is bounded, as a server may never end its line.
        if state.line == ForwardedLine::Message && state.waiting.len() <= MAX_WAITING {
            return Ok(());
        }
        state.end_line()?;
        state.output.flush()
    }

    /// Writes what waits, and closes the output. Later writes have no effect.
    pub fn close(&self) {
        let mut state = self.state();
        if !state.waiting.is_empty() {
            // Write errors are ignored: the client has closed its end.
            let _ = state.end_line().and_then(|()| state.output.flush());
        }
        // The other thread may still write answers: nobody reads them.
        state.output = Box::new(io::sink());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.line, ForwardedLine::Start) != ForwardedLine::Start {
            self.output.write_all(b"\n")?;
        }
        self.write_waiting()
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        self.output.write_all(&std::mem::take(&mut self.waiting))
    }
}

/// True if a line can be a message: an object, or an array of objects. Logs also start with a bracket.
fn starts_message(line: &[u8]) -> bool {
    match line.trim_ascii_start() {
        [] | [b'{', ..] => true,
        // `[INFO]` is a log, and not a batch.
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start(), [] | [b'{', ..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(parts: &[&str], answers: usize) -> String {
        let written = Shared::default();
        let output = ClientOutput::new(Box::new(written.clone()));
        for part in parts {
            output.forward_part(part.as_bytes()).unwrap();
        }
        for _ in 0..answers {
            output.answer(&"x".repeat(1000)).unwrap();
        }
        let written = written.0.lock().unwrap().clone();
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn an_answer_does_not_wait_for_the_end_of_a_line_that_is_no_message() {
        for text in ["Loading", "[INFO] Loading", " 7"] {
            assert_eq!(written(&[text], 1), format!("{text}\n{}\n", "x".repeat(1000)));
        }
        for message in [" {", "[ {\"id\":1}", "["] {
            assert_eq!(written(&[message, "1"], 1), format!("{message}1"));
        }
    }

    #[test]
    fn a_line_that_is_held_back_as_a_whole_does_not_delay_an_answer() {
        assert_eq!(written(&[""], 1), format!("{}\n", "x".repeat(1000)));
    }

    #[test]
    fn answers_that_wait_for_a_message_are_bounded() {
        assert!(written(&["{"], 1100).len() > MAX_WAITING);
    }

    #[test]
    fn an_answer_that_waits_is_written_when_the_output_is_closed() {
        let written = Shared::default();
        let output = ClientOutput::new(Box::new(written.clone()));
        output.forward_part(b"{\"big\":").unwrap();
        output.answer("refused").unwrap();
        output.close();
        output.answer("too late").unwrap();
        assert_eq!(written.0.lock().unwrap().as_slice(), b"{\"big\":\nrefused\n");
    }

    #[test]
    fn an_answer_waits_for_the_end_of_a_line_of_the_server() {
        let written = Shared::default();
        let output = ClientOutput::new(Box::new(written.clone()));
        output.forward_part(b"{\"big\":").unwrap();
        output.answer("refused").unwrap();
        output.forward_line(b"1}\n").unwrap();
        output.answer("refused again").unwrap();
        assert_eq!(written.0.lock().unwrap().as_slice(), b"{\"big\":1}\nrefused\nrefused again\n");
    }
}
