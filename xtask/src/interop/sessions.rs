//! The official clients of model servers, with `counterproof session record` between them and a scripted server.
//!
//! The clients and the comparison are Python: `tests/interop/sessions/run.py`.

use std::process::Command;
use std::time::Duration;

use camino::Utf8PathBuf;

use super::install::{self, cached, succeeds};
use crate::programs;
use crate::step::{Failure, progress, root};

/// The tested versions. An update is a separate commit.
const PYTHON: [&str; 2] = ["openai==3.57.0", "anthropic==2.14.0"];

const WITHIN: Duration = Duration::from_mins(10);

/// Installs the clients, and returns the folder of their programs.
pub(super) fn install() -> Result<Option<Utf8PathBuf>, Failure> {
    install::python(&cached("model-clients"), &PYTHON)
}

pub(super) fn run() -> Result<(), Failure> {
    let Some(python) = install()? else { return Ok(()) };
    programs::build()?;
    let line = "python tests/interop/sessions/run.py";
    progress(&format!("==> {line}"));
    let mut command = Command::new(python.join("python"));
    // `-B` leaves no bytecode in the checkout.
    command.arg("-B").arg(root().join("tests/interop/sessions/run.py"));
    command.arg("--server").arg(programs::test_program("model-test-server"));
    command.arg("--counterproof").arg(programs::counterproof());
    command.arg("--folder").arg(root().join("target/interop/sessions"));
    if succeeds(command, WITHIN) { Ok(()) } else { Err(Failure::Step(line.to_owned())) }
}
