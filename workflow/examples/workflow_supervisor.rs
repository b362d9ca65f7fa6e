//! The supervisor and the launcher of the commands that the tests run: a test cannot be started again as one.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterproof_workflow::tools::enter().unwrap_or(ExitCode::FAILURE)
}
