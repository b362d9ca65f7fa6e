//! The `counterproof` program: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    // As the supervisor of an agent that is a program, it is nothing else.
    counterproof_safe_run::enter().unwrap_or_else(|| counterproof::run(std::env::args_os()).into())
}
