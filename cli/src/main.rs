//! The `counterproof` program: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The program also starts itself as the supervisor of agent programs. In that role it must not parse arguments.
    counterproof_safe_run::enter().unwrap_or_else(|| counterproof::run(std::env::args_os()).into())
}
