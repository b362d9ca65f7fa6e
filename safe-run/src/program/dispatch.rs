//! Runs the subcommand that the arguments select: its exit codes, and what all subcommands print.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use counterproof_artifact::harmless;

use super::help::help;
use super::parse_arguments::{self, Invocation};
use super::{archive, check};
use crate::{CONTRACT, report_file_size_limit};

pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    // If this fails, a write beyond the limit ends the program, which is all that the limit requires.
    let _ = report_file_size_limit();
    to_exit_code(match parse_arguments::parse(arguments.into_iter().skip(1)) {
        Ok(Invocation::Help) => print(&help()),
        Ok(Invocation::Version) => print(&format!("{}\n", version())),
        Ok(Invocation::Banner) => print(&format!("{}\n\nUse --help for more information.\n", version())),
        Ok(Invocation::Check(command)) => check::run(&command),
        Ok(Invocation::Archive(archive)) => archive::run(&archive),
        #[cfg(any(unix, windows))]
        Ok(Invocation::Run(run)) => super::run::run(&run),
        #[cfg(not(any(unix, windows)))]
        Ok(Invocation::Run(_)) => {
            report("safe-run: cannot run commands on this system: it has neither process groups nor job objects");
            SETUP
        }
        Err(error) => {
            report(error);
            USAGE
        }
    })
}

fn version() -> String {
    format!("safe-run {} (contract: {CONTRACT})", env!("CARGO_PKG_VERSION"))
}

/// Converts an exit code. On Windows, a code can have 32 bits, which the type for exit codes cannot hold.
fn to_exit_code(code: i32) -> ExitCode {
    #[cfg(windows)]
    #[expect(clippy::exit, reason = "the only way to exit with the code of the command, after everything was written")]
    if u8::try_from(code).is_err() {
        std::process::exit(code);
    }
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

pub(super) const USAGE: i32 = 2;

/// The command could not be prepared, or its output could not be written.
pub(super) const SETUP: i32 = 125;

#[cfg(any(unix, windows))]
pub(super) const NOT_EXECUTABLE: i32 = 126;

#[cfg(any(unix, windows))]
pub(super) const NOT_FOUND: i32 = 127;

/// Prints a result to standard output and returns the exit code. A closed pipe is not an error; a full disk is.
pub(super) fn print(text: &str) -> i32 {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            report(output_error("standard output", &error));
            SETUP
        }
        _ => 0,
    }
}

pub(super) fn output_error(stream: &str, error: &io::Error) -> String {
    format!("safe-run: failed to write to {stream}: {error}")
}

/// Prints a message to standard error. Names and texts of others in it cannot steer a terminal.
pub(super) fn report(line: impl Display) {
    // There is no other place to report a failure of standard error.
    let _ = writeln!(io::stderr(), "{}", harmless(&line.to_string()));
}
