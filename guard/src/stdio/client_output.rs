//! The output to the client: lines of the server, and answers to refused calls between them.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Writes whole lines from two threads to one stream.
pub struct ClientOutput {
    state: Mutex<State>,
}

struct State {
    output: Box<dyn Write + Send>,
    /// True after a part of a line that is not the last.
    in_line: bool,
    /// Lines that wait for the end of the current one.
    waiting: Vec<u8>,
}

impl ClientOutput {
    /// Writes to `output`.
    pub fn new(output: Box<dyn Write + Send>) -> Self {
        Self { state: Mutex::new(State { output, in_line: false, waiting: Vec::new() }) }
    }

    /// Writes bytes of the server: whole lines, or a part of one. `ends` is true for the last part.
    pub fn forward(&self, bytes: &[u8], ends: bool) -> io::Result<()> {
        let mut state = self.state();
        state.output.write_all(bytes)?;
        state.in_line = !ends;
        if ends && !state.waiting.is_empty() {
            let waiting = std::mem::take(&mut state.waiting);
            state.output.write_all(&waiting)?;
        }
        state.output.flush()
    }

    /// Writes a line of the guard, given without its newline. Within a line of the server, it waits for the end of that line.
    pub fn answer(&self, line: &str) -> io::Result<()> {
        let mut state = self.state();
        let line = format!("{line}\n");
        if state.in_line {
            state.waiting.extend_from_slice(line.as_bytes());
            return Ok(());
        }
        state.output.write_all(line.as_bytes())?;
        state.output.flush()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn an_answer_waits_for_the_end_of_a_line_of_the_server() {
        let written = Shared::default();
        let output = ClientOutput::new(Box::new(written.clone()));
        output.forward(b"{\"big\":", false).unwrap();
        output.answer("refused").unwrap();
        output.forward(b"1}\n", true).unwrap();
        output.answer("refused again").unwrap();
        assert_eq!(written.0.lock().unwrap().as_slice(), b"{\"big\":1}\nrefused\nrefused again\n");
    }
}
