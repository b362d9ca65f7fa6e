//! What a report of very many cases weighs, and how soon a reader can use it.

use std::process::{Command, Stdio};

use camino::Utf8Path;

use crate::browser;
use crate::step::{Failure, Step, root, say};

/// How many cases, where the caller does not say.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

const BENCH: [&str; 8] =
    ["run", "--quiet", "--release", "--package", "counterproof-evaluator", "--example", "bench_compare", "--"];

/// For each size: the report of generated runs is written and weighed, and its first page is opened from disk.
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

/// Opens the first page in the browser, and says how soon it can be used.
fn open(browser: &str, report: &Utf8Path) -> Result<(), Failure> {
    let mut command = Command::new("node");
    command.arg("interactive.mjs").arg(report).current_dir(browser::suite_folder()).env("CHROMIUM", browser);
    browser::finish(command, "node tests/browser/interactive.mjs")
}

/// Removes the folder, which may hold millions of files, by the system's own program where there is one.
fn clear(folder: &Utf8Path) -> Result<(), Failure> {
    if !folder.exists() {
        return Ok(());
    }
    let removed = Command::new("rm").arg("-rf").arg(folder).stdin(Stdio::null()).status();
    if removed.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    say(&format!("    removing {folder}"));
    std::fs::remove_dir_all(folder).map_err(|source| Failure::File { path: folder.to_owned(), source })
}
