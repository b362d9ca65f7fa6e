//! The supervisor of the commands that the tests run: a test cannot be started again as one.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterproof_safe_run::enter().unwrap_or(ExitCode::FAILURE)
}
