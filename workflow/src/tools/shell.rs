//! The tool `shell`: a command under safe-run and in a sandbox, and what the model gets of its output.

use std::collections::BTreeMap;
use std::time::Duration;

use counterproof_safe_run::{Cancellation, Input, StartError, StopReason, Stream};
use counterproof_sessions::event::{Command, CommandLine};
use counterproof_store::write::create_folder;

use super::arguments::Arguments;
use super::file_tools::truncated;
use super::sandbox::{SandboxError, SandboxedCommand};
use super::toolbox::{Done, Failed, ToolOptions};

/// The most characters of output that the model gets.
pub(super) const MAX_OUTPUT_CHARS: usize = 20_000;

/// The time limit of a command for which the model sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);

/// The longest time limit that a model can set.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_mins(10);

/// The most bytes of both streams together. The command is killed beyond it.
const MAX_OUTPUT_BYTES: usize = 8 << 20;

/// How long a command may run after its time limit or a cancellation.
const GRACE: Duration = Duration::from_secs(2);

/// The output of a command: all of it as it came, and each stream.
#[derive(Default)]
struct Output {
    all: Vec<u8>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Output {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(MAX_OUTPUT_BYTES - self.all.len())];
        self.all.extend_from_slice(bytes);
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(bytes),
            Stream::Stderr => self.stderr.extend_from_slice(bytes),
        }
    }
}

pub(super) fn shell(options: &ToolOptions, arguments: &Arguments, cancel: &Cancellation) -> Result<Done, Failed> {
    let line = arguments.text("command")?;
    if line.trim().is_empty() || line.contains('\0') {
        return Err(Failed::new("`command` is not a command"));
    }
    let timeout = arguments.optional_number("timeout_s")?.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let timeout = timeout.min(MAX_TIMEOUT);
    create_folder(&options.private).map_err(|error| Failed::new(format!("cannot run a command: {error}")))?;
    let input = Input::bytes(b"").map_err(|error| Failed::new(format!("cannot run a command: {error}")))?;
    let command = SandboxedCommand {
        line: line.to_owned(),
        workspace: options.workspace.clone(),
        private: options.private.clone(),
        readable: options.readable.clone(),
        environment: BTreeMap::new(),
        input,
        tcp_ports: Vec::new(),
        timeout: Some(timeout),
        output_limit: Some(MAX_OUTPUT_BYTES as u64),
        grace: GRACE,
        supervisor: options.supervisor.clone(),
    };
    let mut output = Output::default();
    let record = match command.run(options.sandbox, cancel, &mut |stream, _, bytes| output.push(stream, bytes)) {
        Ok(record) => record,
        Err(SandboxError::Start(StartError::Cancelled)) => {
            return Err(Failed::interrupted("the command was interrupted"));
        }
        Err(error) => return Err(Failed::new(format!("cannot run a command: {error}{}", cause(&error)))),
    };
    let stopped = record.stopped.map(|reason| match reason {
        StopReason::TimedOut => format!("the command did not end within {} s, and was killed", timeout.as_secs()),
        StopReason::Cancelled => "the command was interrupted".to_owned(),
        StopReason::OutputTooLarge => {
            format!("the command printed more than {} MiB, and was killed", MAX_OUTPUT_BYTES >> 20)
        }
    });
    let exit_code = record.ending.exit_code();
    let text = String::from_utf8_lossy(&output.all);
    let (shown, is_truncated) = truncated(&text, MAX_OUTPUT_CHARS);
    let with_end = |text: &str| {
        let start = stopped.as_ref().map(|stopped| format!("error: {stopped}\n")).unwrap_or_default();
        let line_feed = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        format!("{start}{text}{line_feed}exit code {exit_code}")
    };
    let lossy = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
    let recorded = Command {
        command: Some(CommandLine::Shell(line.to_owned())),
        cwd: Some(options.workspace.to_string()),
        exit_code: Some(exit_code.into()),
        stdout: lossy(&output.stdout),
        stderr: lossy(&output.stderr),
        latency_ms: u64::try_from(record.elapsed.as_millis()).ok(),
        call_id: None,
        expected_failure: false,
    };
    let is_success = stopped.is_none() && record.ending.is_success();
    Ok(Done {
        content: with_end(&text),
        message: with_end(&shown),
        is_truncated: is_truncated || record.stopped == Some(StopReason::OutputTooLarge),
        error: (!is_success).then(|| stopped.clone().unwrap_or_else(|| format!("exit code {exit_code}"))),
        command: Some(recorded),
        is_interrupted: record.stopped == Some(StopReason::Cancelled),
        ..Done::default()
    })
}

fn cause(error: &dyn std::error::Error) -> String {
    error.source().map(|source| format!(": {source}")).unwrap_or_default()
}
