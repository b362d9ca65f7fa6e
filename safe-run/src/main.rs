//! The `safe-run` program: arguments in, the command's exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterproof_safe_run::enter().unwrap_or_else(|| counterproof_safe_run::program::run(std::env::args_os()))
}
