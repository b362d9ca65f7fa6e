//! The tests, random attacks on the programs, and the check that safe-run compiles for other systems.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::programs;
use crate::step::{Failure, Step, progress};

/// How long CI attacks the programs, in minutes.
pub(crate) const SHORT_TORTURE: f64 = 1.0;

/// Builds the programs first: the end-to-end tests start them, and `cargo test` alone does not build them.
pub(crate) fn test(arguments: &[String]) -> Result<(), Failure> {
    programs::build()?;
    Step::cargo(["test", "--workspace", "--exclude", "xtask", "--locked"]).with(arguments).run()?;
    // Apart, because this package has other features of the shared dependencies.
    if arguments.is_empty() { Step::cargo(["test", "--package", "xtask", "--locked"]).run() } else { Ok(()) }
}

/// Runs the contract of workflows with a scripted model. Skipped without Python 3.10.
pub(crate) fn acceptance(names: &[String]) -> Result<(), Failure> {
    programs::build()?;
    let mut python = Command::new("python3");
    python.args(["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]);
    if !Step::new("python3".to_owned(), python).works() {
        progress("==> skipped: acceptance tests of workflows (they need Python 3.10)");
        return Ok(());
    }
    let script = "tests/acceptance/run.py";
    let mut python = Command::new("python3");
    python.args([script, "--counterproof", programs::counterproof().as_str()]);
    Step::new(format!("python3 {script}"), python).with(names).run()
}

pub(crate) fn docs() -> Result<(), Failure> {
    programs::build()?;
    let test = ["test", "--workspace", "--exclude", "xtask", "--locked", "--test", "e2e", "help::"];
    Step::cargo(test).env("UPDATE_DOCS", "1").run()
}

pub(crate) fn bench_trust(arguments: &[String]) -> Result<(), Failure> {
    Step::cargo(["bench", "--locked", "--package", "counterproof-bench", "--bench", "trust", "--"])
        .with(arguments)
        .run()
}

/// Measures a comparison in shards.
pub(crate) fn bench_scale(pairs: Option<u32>) -> Result<(), Failure> {
    Step::cargo(["bench", "--locked", "--package", "counterproof-bench", "--bench", "compare", "--", "scale"])
        .with(&pairs.map(|pairs| pairs.to_string()).into_iter().collect::<Vec<_>>())
        .run()
}

/// Runs the attacks. Without a seed, the time of day is one, so that every run tries something else.
pub(crate) fn torture(minutes: f64, seed: Option<u64>, kinds: Vec<String>) -> Result<(), Failure> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = seed.unwrap_or_else(now).to_string();
    let seconds = (minutes * 60.0).round().to_string();
    programs::build()?;
    programs::example("torture", &[seconds, seed].into_iter().chain(kinds).collect::<Vec<_>>())
}

/// One target for each system of the matrix in `docs/ci.md`, except Linux.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// Checks each target that is installed or can be added, and prints which ones it skips.
pub(crate) fn cross() -> Result<(), Failure> {
    for target in TARGETS {
        if is_installed(target) || add_target(target) {
            Step::cargo(["check", "--locked", "--package", "counterproof-safe-run", "--target", target]).run()?;
        } else {
            progress(&format!(
                "==> skipped: cargo check --target {target} (it is not installed, and rustup cannot add it)"
            ));
        }
    }
    Ok(())
}

pub(crate) fn is_installed(target: &str) -> bool {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", target]).stdin(Stdio::null()).stderr(Stdio::null());
    command.output().is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Adds the target with rustup, which needs a network.
pub(crate) fn add_target(target: &str) -> bool {
    progress(&format!("==> rustup target add {target}"));
    let mut command = Command::new("rustup");
    command.args(["target", "add", target]).stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success()) && is_installed(target)
}
