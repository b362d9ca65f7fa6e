//! The output to the client: lines of the server, and answers to refused calls between them.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes that wait for the end of a line.
const MAX_WAITING: usize = 1 << 20;

/// Writes whole lines from two threads to one stream.
pub struct ClientOutput {
    state: Mutex<State>,
}

struct State {
    output: Box<dyn Write + Send>,
    line: Line,
    /// Lines that wait for the end of the current one.
    waiting: Vec<u8>,
}

/// What was written of the current line of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Nothing.
    Start,
    /// A part of a message.
    Message,
    /// A part of other text, such as a prompt. It may never end.
    Text,
}

impl ClientOutput {
    /// Writes to `output`.
    pub fn new(output: Box<dyn Write + Send>) -> Self {
        Self { state: Mutex::new(State { output, line: Line::Start, waiting: Vec::new() }) }
    }

    /// Writes a line of the server, or the last part of one.
    pub fn forward_line(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.output.write_all(bytes)?;
        state.line = Line::Start;
        state.write_waiting()?;
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
        if state.line == Line::Start {
            state.line = if starts_message(bytes) { Line::Message } else { Line::Text };
        }
        state.output.flush()
    }

    /// Writes a line of the guard, given without its newline. Within a message of the server, it waits for the end of the message.
    /// Other text of the server is ended by a newline.
    pub fn answer(&self, line: &str) -> io::Result<()> {
        let mut state = self.state();
        state.waiting.extend_from_slice(line.as_bytes());
        state.waiting.push(b'\n');
        if state.line == Line::Message && state.waiting.len() <= MAX_WAITING {
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
        state.output = Box::new(io::sink());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.line, Line::Start) != Line::Start {
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
