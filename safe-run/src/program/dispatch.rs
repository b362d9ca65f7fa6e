//! Runs the subcommand that the arguments select.

use std::ffi::OsString;
use std::process::ExitCode;

use super::arguments::Invocation;
use super::console::{print, report};
use super::help::help;
use super::{archive, check, exit_code, parse_arguments};
use crate::{CONTRACT, report_file_size_limit};

/// Runs the program. The first argument is the program name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    // If this fails, a write beyond the limit ends the program, which is all that the limit requires.
    let _ = report_file_size_limit();
    to_exit_code(match parse_arguments::parse(arguments.into_iter().skip(1)) {
        Ok(Invocation::Help) => print(&help()),
        Ok(Invocation::Version) => print(&format!("{}\n", version())),
        Ok(Invocation::Banner) => print(&format!("{}\n\nUse --help for more information.\n", version())),
        Ok(Invocation::Check(command)) => check::run(&command),
        Ok(Invocation::Archive(archive)) => archive::run(&archive),
        #[cfg(unix)]
        Ok(Invocation::Run(run)) => super::run::run(&run),
        #[cfg(not(unix))]
        Ok(Invocation::Run(_)) => {
            report("safe-run: cannot run commands on this system: it has no process groups");
            exit_code::SETUP
        }
        Err(error) => {
            report(error);
            exit_code::USAGE
        }
    })
}

fn version() -> String {
    format!("safe-run {} (contract: {CONTRACT})", env!("CARGO_PKG_VERSION"))
}

/// Converts an exit code. Codes beyond eight bits, which Windows has, become a general failure.
fn to_exit_code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}
