//! The output of a program that runs next to a run: masked and saved in a file, with its last lines in memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use counterproof_redaction::{RedactingStream, Redactor};
use counterproof_safe_run::{Ending, StartError, Stream};
use counterproof_store::write::{WriteError, create_folder, create_new};

use crate::environment::{Interrupt, Urgency};

/// How many lines a message shows.
const LAST_LINES: usize = 20;

/// How much of a line a message shows, and how much of it is searched for a text, in bytes.
const LINE_BYTES: usize = 4096;

/// The output of one program. A thread adds to it while others read it.
#[derive(Debug)]
pub(super) struct Output(Mutex<State>);

#[derive(Debug)]
struct State {
    /// `None` once the program has ended.
    masking: Option<RedactingStream>,
    /// `None` after a failed write. The messages of the agent are not worth ending a run.
    file: Option<File>,
    last_lines: VecDeque<Vec<u8>>,
    /// The text that is searched in each line, until it is found.
    awaited: Option<String>,
    /// The unfinished lines of both streams, as they arrived.
    unfinished: [Vec<u8>; 2],
    ended: Option<Result<Ending, StartError>>,
    /// Abandoned when the program ends.
    on_end: Option<Interrupt>,
}

impl Output {
    /// Creates the file of the output, and its folder. `awaited` is a text to search.
    pub(super) fn create(path: &Utf8Path, redactor: Redactor, awaited: Option<String>) -> Result<Self, WriteError> {
        if let Some(folder) = path.parent() {
            create_folder(folder)?;
        }
        Ok(Self(Mutex::new(State {
            masking: Some(RedactingStream::new(redactor)),
            file: Some(create_new(path)?),
            last_lines: VecDeque::new(),
            awaited,
            unfinished: [Vec::new(), Vec::new()],
            ended: None,
            on_end: None,
        })))
    }

    /// Adds a piece of output.
    pub(super) fn push(&self, stream: Stream, piece: &[u8]) {
        let mut state = self.state();
        state.search(stream, piece);
        let masked = state.masking.as_mut().map(|masking| {
            let mut masked = masking.push(piece);
            // A reader of the file wants the newest line, also if the agent hangs.
            masked.extend(masking.flush());
            masked
        });
        state.save(&masked.unwrap_or_default());
    }

    /// Sets how the program ended. No output follows.
    pub(super) fn end(&self, ended: Result<Ending, StartError>) {
        let mut state = self.state();
        if let Some(masking) = state.masking.take() {
            let (rest, _) = masking.finish();
            state.save(&rest);
        }
        state.ended = Some(ended);
        let interrupt = state.on_end.take();
        // Without the lock: what waits for the interrupt may ask for the end.
        drop(state);
        if let Some(interrupt) = interrupt {
            interrupt.raise(Urgency::Abandon);
        }
    }

    /// Reports whether a line contains the awaited text.
    pub(super) fn has_awaited(&self) -> bool {
        self.state().awaited.is_none()
    }

    /// Returns how the program ended. An error is returned once.
    pub(super) fn ending(&self) -> Option<Result<Ending, StartError>> {
        let mut state = self.state();
        match &state.ended {
            Some(Ok(ending)) => Some(Ok(*ending)),
            _ => state.ended.take(),
        }
    }

    /// Interrupts a run when the program ends. Returns false if it has ended already.
    pub(super) fn interrupt_on_end(&self, interrupt: Interrupt) -> bool {
        let mut state = self.state();
        state.on_end = Some(interrupt);
        state.ended.is_none()
    }

    /// Leaves the run alone when the program ends.
    pub(super) fn forget_interrupt(&self) {
        self.state().on_end = None;
    }

    /// Returns the last lines, masked.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let state = self.state();
        let lines = state.last_lines.iter().filter(|line| !line.trim_ascii().is_empty());
        let lines: Vec<String> = lines.map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].to_vec()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Searches the awaited text in the lines of a stream, the last unfinished one included.
    fn search(&mut self, stream: Stream, piece: &[u8]) {
        let Some(awaited) = &self.awaited else { return };
        let line = &mut self.unfinished[usize::from(stream == Stream::Stderr)];
        line.extend_from_slice(piece);
        if String::from_utf8_lossy(line).lines().any(|line| line.contains(awaited)) {
            self.awaited = None;
            self.unfinished = [Vec::new(), Vec::new()];
            return;
        }
        let finished = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        // A line without an end must not fill the memory.
        let surplus = line.len().saturating_sub(LINE_BYTES.max(awaited.len()));
        line.drain(..finished.max(surplus));
    }

    fn save(&mut self, bytes: &[u8]) {
        if self.file.as_mut().is_some_and(|file| file.write_all(bytes).is_err()) {
            self.file = None;
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            match self.last_lines.back_mut().filter(|line| !line.ends_with(b"\n")) {
                Some(line) => line.extend_from_slice(part),
                None => self.last_lines.push_back(part.to_vec()),
            }
            if let Some(line) = self.last_lines.back_mut().filter(|line| line.len() > LINE_BYTES) {
                let ends = line.ends_with(b"\n");
                line.truncate(LINE_BYTES);
                line.extend_from_slice(if ends { b"\n" } else { b"" });
            }
        }
        // Twice as many, because empty lines are not shown.
        while self.last_lines.len() > 2 * LAST_LINES {
            self.last_lines.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn output(awaited: Option<&str>) -> (Output, Utf8PathBuf, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("logs/agent.log");
        let redactor = Redactor::new(["s3cret-value"]).unwrap();
        (Output::create(&path, redactor, awaited.map(str::to_owned)).unwrap(), path, folder)
    }

    #[test]
    fn secrets_are_masked_in_the_file_and_in_the_last_lines() {
        let (output, path, _folder) = output(None);
        for piece in ["start s3cr", "et-value\n", "\nend"] {
            output.push(Stream::Stdout, piece.as_bytes());
        }
        output.end(Ok(Ending::Exited(3)));
        assert_eq!(output.last_lines(), ["start [redacted]", "end"]);
        assert_eq!(std::fs::read(path).unwrap(), b"start [redacted]\n\nend");
        assert!(matches!(output.ending(), Some(Ok(Ending::Exited(3)))));
    }

    #[test]
    fn a_text_is_found_across_pieces_but_not_across_lines_and_streams() {
        let (output, _, _folder) = output(Some("is up"));
        output.push(Stream::Stdout, b"is\nis ");
        output.push(Stream::Stderr, b"up\n");
        output.push(Stream::Stderr, &vec![b'x'; 3 * LINE_BYTES]);
        assert!(!output.has_awaited());
        output.push(Stream::Stdout, b"up");
        assert!(output.has_awaited());
    }

    #[test]
    fn the_last_lines_are_limited_in_number_and_length() {
        let (output, _, _folder) = output(None);
        for number in 0..100 {
            output.push(Stream::Stdout, format!("line {number}\n").as_bytes());
        }
        output.push(Stream::Stdout, &vec![b'x'; 3 * LINE_BYTES]);
        let lines = output.last_lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[19].len()), (20, "line 81", LINE_BYTES));
    }
}
