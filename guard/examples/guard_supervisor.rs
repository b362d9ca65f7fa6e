//! The supervisor of the commands that the integration tests start, since libtest provides the `main` of a test.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterproof_safe_run::enter().unwrap_or(ExitCode::FAILURE)
}
