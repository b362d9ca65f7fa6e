//! A supervisor of agent programs, for embedders whose own `main` cannot call [`counterproof_safe_run::enter`] first. The
//! integration tests use it as [`Settings::supervisor`](counterproof_runner::Settings::supervisor).

use std::process::ExitCode;

fn main() -> ExitCode {
    counterproof_safe_run::enter().unwrap_or(ExitCode::FAILURE)
}
