//! The other implementation: a process that evaluates one expression per line.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

/// What the other implementation answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Error(String),
    /// The type and the value.
    Value(Json),
    /// The process ended, and was started again.
    Ended,
}

/// The other implementation.
pub(crate) struct Oracle {
    python: String,
    process: Process,
}

impl Oracle {
    pub(crate) fn start(python: &str) -> io::Result<Self> {
        Ok(Self { python: python.to_owned(), process: Process::start(python)? })
    }

    pub(crate) fn evaluate(&mut self, text: &str, output: &Json) -> io::Result<Answer> {
        let line = self.process.ask(&json!([text, output]).to_string())?;
        if line.is_empty() {
            self.process = Process::start(&self.python)?;
            return Ok(Answer::Ended);
        }
        let answer: Json = serde_json::from_str(&line)?;
        Ok(match answer[0].as_str() {
            Some("error") => Answer::Error(answer[1].as_str().unwrap_or_default().to_owned()),
            _ => Answer::Value(answer),
        })
    }
}

/// The process, which ends on drop.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(python: &str) -> io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/differential/oracle.py");
        let mut command = Command::new(python);
        let mut child =
            command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| io::Error::other("the process has no output"))?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Sends a line and returns the answer, which is empty if the process has ended.
    fn ask(&mut self, line: &str) -> io::Result<String> {
        if let Some(input) = &mut self.input {
            writeln!(input, "{line}")?;
        }
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends at the end of its input.
        self.input = None;
        let _ = self.child.wait();
    }
}
