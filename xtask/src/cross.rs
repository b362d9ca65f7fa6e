//! Whether safe-run compiles for systems that this machine is not. Nothing is linked and nothing is run: it takes no more than the
//! target's standard library.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::{Failure, Step, say};

/// One target for each system of the matrix in `docs/ci.md` but Linux.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// Checks every target that is there or can be had, and says which was skipped.
pub(crate) fn run() -> Result<(), Failure> {
    for target in TARGETS {
        if is_installed(target) || add(target) {
            Step::cargo(["check", "--locked", "--package", "counterproof-safe-run", "--target", target]).run()?;
        } else {
            say(&format!("==> skipped: cargo check --target {target} (it is not installed, and rustup cannot add it)"));
        }
    }
    Ok(())
}

/// True where the compiler has the target's standard library.
fn is_installed(target: &str) -> bool {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", target]).stdin(Stdio::null()).stderr(Stdio::null());
    command.output().is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Has rustup fetch the target, which needs a network.
fn add(target: &str) -> bool {
    say(&format!("==> rustup target add {target}"));
    let mut command = Command::new("rustup");
    command.args(["target", "add", target]).stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success()) && is_installed(target)
}
