//! The keychain of the system, read by the system's own program: `secret-tool` (Linux) or `security` (macOS).
//!
//! The program is started directly and never by a shell. It runs under supervision and with a time limit, because a locked keychain
//! may wait for a person forever.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use counterproof_artifact::one_line;
use counterproof_safe_run::{Command, Ending, Input, Options, OutputMode, StartError, StopReason, Stream};

use super::{InvalidSecret, SecretRef, SecretValue};

const SERVICE: &str = "counterproof";

/// Time limit of a look-up. It includes the time in which a person unlocks the keychain.
const LIMIT: Duration = Duration::from_secs(30);

/// A program that looks up a secret: it prints the value of the secret that its last argument names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keychain {
    /// The program, with the arguments before the name of the secret. `None` without a keychain.
    pub command: Option<Vec<OsString>>,
    pub limit: Duration,
    /// The program that supervises the look-up; see the options of safe-run.
    pub supervisor: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum KeychainError {
    #[error("this system has no keychain that can be read")]
    Unsupported,
    #[error("cannot read the keychain with `{program}`")]
    Start { program: String, source: StartError },
    #[error("`{program}` did not answer within {} seconds; is the keychain locked?", .limit.as_secs())]
    TimedOut { program: String, limit: Duration },
    #[error("`{program}` failed with {ending}: {message}")]
    Failed { program: String, ending: Ending, message: String },
    #[error(transparent)]
    Invalid(#[from] InvalidSecret),
}

impl Keychain {
    pub fn of_system() -> Self {
        let command: Option<&[&str]> = if cfg!(target_os = "linux") {
            Some(&["secret-tool", "lookup", "service", SERVICE, "secret"])
        } else if cfg!(target_os = "macos") {
            Some(&["security", "find-generic-password", "-w", "-s", SERVICE, "-a"])
        } else {
            None
        };
        let command = command.map(|words| words.iter().map(OsString::from).collect());
        Self { command, limit: LIMIT, supervisor: None }
    }

    pub fn lookup(&self, name: &SecretRef) -> Result<Option<SecretValue>, KeychainError> {
        let mut command = self.command.clone().ok_or(KeychainError::Unsupported)?;
        command.push(name.as_str().into());
        let options = Options { supervisor: self.supervisor.clone(), ..Default::default() };
        run(command, options, self.limit)
    }
}

const NOT_FOUND_ON_MACOS: i32 = 44;

const MAX_OUTPUT_BYTES: usize = 1 << 20;

const MESSAGE_CHARS: usize = 200;

fn run(words: Vec<OsString>, options: Options, limit: Duration) -> Result<Option<SecretValue>, KeychainError> {
    let program = words.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let start_error = |source| KeychainError::Start { program: program.clone(), source };
    // A pipe that is at its end: the program must not read the input of this process.
    let (input, _) = std::io::pipe().map_err(|error| start_error(StartError::Setup(error)))?;
    let command = Command {
        // Observed and not captured: a capture could write the value to a temporary file.
        // No grace time: a program that waits for a person has nothing to put in order.
        options: Options { output: OutputMode::ObserveOnly, grace: Duration::ZERO, ..options },
        input: Input::Descriptor(input.into()),
        timeout: Some(limit),
        ..Command::new(words)
    };
    let record = command.run(&mut |stream, _, mut bytes| {
        let buffer = if stream == Stream::Stdout { &mut stdout } else { &mut stderr };
        let room = MAX_OUTPUT_BYTES.saturating_sub(buffer.len());
        let _ = bytes.by_ref().take(room as u64).read_to_end(buffer);
    });
    let record = record.map_err(start_error)?;
    if record.stopped == Some(StopReason::TimedOut) {
        return Err(KeychainError::TimedOut { program, limit });
    }
    let ending = record.ending;
    let message = String::from_utf8_lossy(&stderr);
    let message = one_line(message.trim().lines().next().unwrap_or_default(), MESSAGE_CHARS);
    match ending {
        Ending::Exited(0) if !stdout.is_empty() => Ok(Some(SecretValue::from_bytes(without_line_end(stdout))?)),
        // Without the secret, `secret-tool` prints nothing. It fails or succeeds then, depending on its version.
        Ending::Exited(0) => Ok(None),
        Ending::Exited(code) if code == NOT_FOUND_ON_MACOS || code == 1 && message.is_empty() => Ok(None),
        _ => Err(KeychainError::Failed { program, ending, message }),
    }
}

/// Removes the line end that `security` prints after the value.
fn without_line_end(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    bytes
}
