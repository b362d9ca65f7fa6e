//! Checks that safe-run compiles for other systems. Nothing is linked or run, so only the target's standard library is needed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::{Failure, Step, progress};

/// One target for each system of the matrix in `docs/ci.md`, except Linux.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// Checks each target that is installed or can be added, and prints which ones it skips.
pub(crate) fn run() -> Result<(), Failure> {
    for target in TARGETS {
        if is_installed(target) || add(target) {
            Step::cargo(["check", "--locked", "--package", "counterproof-safe-run", "--target", target]).run()?;
        } else {
            progress(&format!(
                "==> skipped: cargo check --target {target} (it is not installed, and rustup cannot add it)"
            ));
        }
    }
    Ok(())
}

/// Returns true if the target's standard library is installed.
fn is_installed(target: &str) -> bool {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", target]).stdin(Stdio::null()).stderr(Stdio::null());
    command.output().is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Adds the target with rustup, which needs a network.
fn add(target: &str) -> bool {
    progress(&format!("==> rustup target add {target}"));
    let mut command = Command::new("rustup");
    command.args(["target", "add", target]).stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success()) && is_installed(target)
}
