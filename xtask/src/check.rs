//! Everything that is checked beside the tests.

use crate::samples;
use crate::step::{Failure, Step, say};

/// Runs all checks and stops at the first that fails, the quickest first.
pub(crate) fn all() -> Result<(), Failure> {
    Step::cargo(["fmt", "--all", "--check"]).run()?;
    Step::cargo(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]).run()?;
    Step::cargo(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings").run()?;
    dependencies()?;
    samples::check()
}

/// The one check that needs a program of its own.
fn dependencies() -> Result<(), Failure> {
    if Step::cargo(["deny", "--version"]).works() {
        return Step::cargo(["deny", "check", "bans", "licenses", "sources"]).run();
    }
    say("==> skipped: cargo deny check (cargo-deny is not installed)");
    Ok(())
}
