//! Output of the program itself.

use std::fmt::Display;
use std::io::{self, Write as _};

use counterproof_artifact::harmless;

use super::exit_code;

/// Prints a result to standard output and returns the exit code. A closed pipe is not an error; a full disk is.
pub(super) fn print(text: &str) -> i32 {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            report(output_error("standard output", &error));
            exit_code::SETUP
        }
        _ => 0,
    }
}

/// Returns the message about a stream that could not be written.
pub(super) fn output_error(stream: &str, error: &io::Error) -> String {
    format!("safe-run: failed to write to {stream}: {error}")
}

/// Prints a message to standard error. Names and texts of others in it cannot steer a terminal.
pub(super) fn report(line: impl Display) {
    // There is no other place to report a failure of standard error.
    let _ = writeln!(io::stderr(), "{}", harmless(&line.to_string()));
}
