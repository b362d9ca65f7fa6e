//! The program: what was typed and what the environment says, and what is told in the end.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use super::arguments::{self, Invocation};
use super::{archive, check};

use crate::CONTRACT;

/// Codes of our own, for what is no command's. `docs/safe-run.md` lists them.
pub(super) mod code {
    /// What was typed cannot be meant.
    pub(in crate::program) const USAGE: i32 = 2;
    /// Something is in the way of running any command, or of passing on what one has printed.
    pub(in crate::program) const SETUP: i32 = 125;
    /// The command is there and cannot be run.
    pub(in crate::program) const NOT_RUN: i32 = 126;
    /// The command is not there.
    pub(in crate::program) const NOT_FOUND: i32 = 127;
}

const HELP: &str = "\
Runs a command, passes on what it prints, and keeps a record of it if it fails.

Usage: safe-run [run] [OPTIONS] [--] COMMAND [ARGUMENTS]...
       safe-run check COMMAND
       safe-run archive [--no-clobber] SOURCE DESTINATION

Commands:
  run      Run the command; the word may be left out
  check    Tell whether a command can be run: exit code 0, 2 not found, 3 not executable
  archive  Pack a folder into DESTINATION.tar.gz, .tar.bz2 or .zip

Options of run:
  --events FILE     Write the ledger as JSON lines too, whether it fails or not
  --pty             Give the command a terminal, on which its two streams are one
  --grace SECONDS   How long it may go on after a signal to end, before it is killed [default: 10]
  --drain SECONDS   How long its streams are waited for after it has ended [default: 2]
  --help, --version

Environment:
  SAFE_LOG_DIR        Where records go [default: .agent/FAIL-LOGS]
  SAFE_RUN_VIEW       `ledger` or `merged`: what a record shows [default: ledger]
  SAFE_SNIPPET_LINES  How many of the last lines are shown after a failure [default: 0]
  SAFE_LOG_STYLE      `m0` for names such as 20240115T103000Z-pid42-FAIL.log
  SAFE_REDACT         `1` masks keys of known shapes in what is kept; NAME,NAME… the values of these variables too

The exit code is the command's, or 128 and the number of the signal that ended it.
125: nothing could be run, or what it printed could not be written. 126: the command cannot be run. 127: there is no such command.
";

/// Runs the program with its arguments, its own name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    exit(match arguments::parse(arguments.into_iter().skip(1)) {
        Ok(Invocation::Help) => print(HELP),
        Ok(Invocation::Version) => print(&format!("{}\n", version())),
        Ok(Invocation::Nothing) => print(&format!("{}\n\nUse --help for more information.\n", version())),
        Ok(Invocation::Check(command)) => check::run(&command),
        Ok(Invocation::Archive(archive)) => archive::run(&archive),
        #[cfg(unix)]
        Ok(Invocation::Run(run)) => super::run::run(&run),
        #[cfg(not(unix))]
        Ok(Invocation::Run(_)) => {
            say("safe-run: this system has no process groups, which a record needs");
            code::SETUP
        }
        Err(error) => {
            say(error);
            code::USAGE
        }
    })
}

fn version() -> String {
    format!("safe-run {} (contract: {CONTRACT})", env!("CARGO_PKG_VERSION"))
}

/// Prints what was asked for; whoever does not listen changes nothing, and a disk without room does.
pub(super) fn print(text: &str) -> i32 {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(unwritten("standard output", &error));
            code::SETUP
        }
        _ => 0,
    }
}

/// A stream of ours to which something could not be written.
pub(super) fn unwritten(stream: &str, error: &io::Error) -> String {
    format!("safe-run: {stream} could not be written: {error}")
}

/// Says something about the work.
pub(super) fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The exit code of the process; beyond eight bits a system may know no more than that it failed.
fn exit(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}
