//! Checks that are not tests.

use crate::samples;
use crate::step::{Failure, Step, progress};
use crate::{import_cycles, language, readers};

/// A check of source files, which returns the number of files.
type SourceCheck = fn() -> Result<usize, Failure>;

pub(crate) fn all() -> Result<(), Failure> {
    // First, because these checks need no compiler.
    source()?;
    Step::cargo(["fmt", "--all", "--check"]).run()?;
    Step::cargo(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]).run()?;
    Step::cargo(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings").run()?;
    dependencies()?;
    samples::check()
}

/// Runs the project's own checks of its source files.
pub(crate) fn source() -> Result<(), Failure> {
    let checks: [(&str, SourceCheck); 4] = [
        ("import cycles between folders", import_cycles::check),
        ("words in user-visible text", language::check),
        ("width of documents", language::check_width),
        ("readers of files other than `store::read_file`", readers::check),
    ];
    let mut failures = Vec::new();
    for (name, check) in checks {
        // All of them run, so that one failure does not hide another.
        match check() {
            Ok(files) => progress(&format!("==> {name}: none found in {files} files")),
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Source(failures.join("\n"))) }
}

/// Checks the dependencies. Skipped without `cargo-deny`.
fn dependencies() -> Result<(), Failure> {
    if Step::cargo(["deny", "--version"]).works() {
        // Without `advisories`, which fetches a database and has other results every day.
        return Step::cargo(["deny", "check", "bans", "licenses", "sources"]).run();
    }
    progress("==> skipped: cargo deny check (cargo-deny is not installed)");
    Ok(())
}
