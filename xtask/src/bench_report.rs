//! The size of large reports, and the time until a reader can use them.

use std::process::{Command, Stdio};

use camino::Utf8Path;

use crate::browser;
use crate::step::{Failure, Step, progress, root};

/// Default numbers of cases.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

const BENCH: [&str; 8] =
    ["run", "--quiet", "--release", "--package", "counterproof-report", "--example", "bench_compare", "--"];

/// For each size, writes the report of generated runs, measures its size, and opens its first page from disk.
pub(crate) fn run(sizes: &[usize]) -> Result<(), Failure> {
    let sizes = if sizes.is_empty() { &SIZES } else { sizes };
    let browser = browser::install()?;
    let scratch = root().join("target/bench-report");
    for cases in sizes {
        clear(&scratch)?;
        let arguments = ["report".to_owned(), scratch.to_string(), cases.to_string()];
        Step::cargo(BENCH).with(&arguments).run()?;
        if let Some(browser) = &browser {
            open(browser, &scratch.join("report"))?;
        }
    }
    clear(&scratch)
}

/// Opens the first page in the browser and prints the time until it is interactive.
fn open(browser: &str, report: &Utf8Path) -> Result<(), Failure> {
    let mut command = Command::new("node");
    command.arg("interactive.mjs").arg(report).current_dir(browser::suite_folder()).env("CHROMIUM", browser);
    browser::finish(command, "node tests/browser/interactive.mjs")
}

/// Removes the folder, which may contain millions of files, with the system's `rm` if there is one.
fn clear(folder: &Utf8Path) -> Result<(), Failure> {
    if !folder.exists() {
        return Ok(());
    }
    let removed = Command::new("rm").arg("-rf").arg(folder).stdin(Stdio::null()).status();
    if removed.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    progress(&format!("    removing {folder}"));
    std::fs::remove_dir_all(folder).map_err(|source| Failure::File { path: folder.to_owned(), source })
}
