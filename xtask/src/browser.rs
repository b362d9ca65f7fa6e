//! Browser tests: writes reports, pages of contracts and of sessions, and runs the suite in `tests/browser/` on them, from disk.
//!
//! A script installs the dependencies of the suite. Without node, a browser or a network, the task prints one line and is
//! skipped. A failure of installed software fails the task.

use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use crate::programs;
use crate::step::{Failure, Step, progress, root};

/// The file with the browser's path; written at the end of the installation.
const INSTALLED: &str = "node_modules/.browser";

/// Tests the reports of [`reports`], the histories of three of them and of others, the pages of contracts and sessions, and the
/// reports in `folders`.
pub(crate) fn run(folders: &[Utf8PathBuf]) -> Result<(), Failure> {
    let Some(browser) = install()? else { return Ok(()) };
    programs::build()?;
    let scratch = scratch()?;
    let mut reports = reports(&scratch)?;
    let histories = histories(&scratch)?;
    for folder in folders {
        // The suite runs in another folder.
        let whole = folder.canonicalize_utf8();
        reports.push(whole.map_err(|source| Failure::File { path: folder.clone(), source })?);
    }
    let listed: Vec<_> = reports.iter().map(|report| report.as_str()).collect();
    let mut suite = Command::new("node");
    // Without names, node runs each `*.test.mjs` of the folder.
    // Node would leave a processor free; the tests mostly wait for the browser.
    suite.args(["--test", "--test-reporter=spec", "--test-concurrency=2"]).current_dir(suite_folder());
    suite.env("CHROMIUM", browser).env("REPORTS", listed.join("\n"));
    suite.env("SCREENSHOTS", scratch.join("screenshots"));
    suite.env("HISTORIES", histories.join("\n"));
    suite.env("CONTRACTS", contract_pages(&scratch.join("contracts"))?.join("\n"));
    suite.env("SESSIONS", session_pages(&scratch.join("sessions"))?.join("\n"));
    Step::new("node --test tests/browser".to_owned(), suite).run()
}

/// Installs the dependencies and returns the path of the browser. Returns `None` if the installation fails.
pub(crate) fn install() -> Result<Option<String>, Failure> {
    let script = suite_folder().join("install.sh");
    progress(&format!("==> {script}"));
    let mut command = Command::new("bash");
    command.arg(&script).stdin(Stdio::null()).stdout(Stdio::null());
    // A machine without bash skips the task as well.
    if !command.status().is_ok_and(|status| status.success()) {
        progress(
            "==> SKIPPED: cargo xtask browser (node, its packages or Chromium are missing and cannot be installed)",
        );
        return Ok(None);
    }
    let path = suite_folder().join(INSTALLED);
    let browser = std::fs::read_to_string(&path).map_err(|source| Failure::File { path, source })?;
    Ok(Some(browser.trim().to_owned()))
}

fn suite_folder() -> Utf8PathBuf {
    root().join("tests/browser")
}

fn scratch() -> Result<Utf8PathBuf, Failure> {
    let scratch = root().join("target/browser");
    // Files of an earlier run could hide that one is missing now.
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch).map_err(|source| Failure::File { path: scratch.clone(), source })?;
    }
    std::fs::create_dir_all(&scratch).map_err(|source| Failure::File { path: scratch.clone(), source })?;
    Ok(scratch)
}

/// Writes the demo, a guarded demo, hostile answers, repeats, a pair in the shape of a recorded one, an agent that is down,
/// and 5,000 cases.
fn reports(scratch: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Failure> {
    let mut fixtures = Command::new("node");
    fixtures.arg(suite_folder().join("fixtures.mjs")).arg(scratch);
    Step::new("node tests/browser/fixtures.mjs".to_owned(), fixtures).run()?;
    let compare = ["compare", "--no-write-back", "--out", "report"];
    let cases = ["--cases", "cases.json"];
    let repeated = |run: &str| {
        let runs = |side: &str| (0..3).map(|number| format!("runs/{side}/{run}-{number}")).collect::<Vec<_>>();
        [vec!["--baseline".to_owned()], runs("baseline"), vec!["--new".to_owned()], runs("new")].concat()
    };
    let report = |name: &str, cases: &[&str], repeated: &[String]| {
        let repeated: Vec<_> = repeated.iter().map(String::as_str).collect();
        counterproof(&scratch.join(name), "report", &[&compare, cases, &repeated].concat())
    };
    // The largest report takes as long as all others.
    std::thread::scope(|scope| {
        let large = scope.spawn(|| report("large", &cases, &[]));
        counterproof(scratch, "demo", &["demo", "--out", "demo"])?;
        counterproof(scratch, "guard", &["guard", "demo", "--out", "guard"])?;
        report("hostile", &cases, &[])?;
        report("repeats", &[], &repeated("run"))?;
        report("real", &cases, &repeated("trial"))?;
        report("broken", &cases, &[])?;
        large.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let names = ["demo", "guard", "hostile", "repeats", "real", "broken", "large"];
    Ok(names.map(|name| scratch.join(name).join("report")).to_vec())
}

/// The histories of the reports, of many nights, and of hostile ones.
fn histories(scratch: &Utf8Path) -> Result<Vec<String>, Failure> {
    let nights = scratch.join("nights");
    let mut fixtures = Command::new("node");
    fixtures.arg(suite_folder().join("histories.mjs")).arg(&nights);
    Step::new("node tests/browser/histories.mjs".to_owned(), fixtures).run()?;
    counterproof(scratch, "history", &["history", "demo/report", "hostile/report", "repeats/report"])?;
    let mut pages = vec![scratch.join("history")];
    for folder in ["large", "hostile"].map(|name| nights.join(name)) {
        counterproof(&folder, "history", &["history", "nights"])?;
        pages.push(folder.join("history"));
    }
    Ok(pages.into_iter().map(Utf8PathBuf::into_string).collect())
}

fn contract_pages(folder: &Utf8Path) -> Result<Vec<String>, Failure> {
    programs::example("contract_pages", &[folder.to_string()])?;
    let pages = ["demo/room", "demo/graph", "demo/part", "hostile/room", "hostile/graph", "large/graph", "guarded"];
    Ok(pages.into_iter().map(|page| folder.join(page).into_string()).collect())
}

fn session_pages(folder: &Utf8Path) -> Result<Vec<String>, Failure> {
    programs::example("session_pages", &[folder.to_string()])?;
    let pages = ["good", "bad", "long", "hostile", "large"];
    Ok(pages.into_iter().map(|page| folder.join(page).into_string()).collect())
}

/// Runs the program.
fn counterproof(folder: &Utf8Path, report: &str, arguments: &[&str]) -> Result<(), Failure> {
    let line = format!("counterproof {}", arguments.join(" "));
    let mut command = Command::new(programs::counterproof());
    command.args(arguments).current_dir(folder).stdout(Stdio::null());
    let code = Step::new(line.clone(), command).code()?;
    // Exit code 1 is accepted, because a failed gate writes a report too.
    if matches!(code, Some(0 | 1)) && folder.join(report).exists() { Ok(()) } else { Err(Failure::Step(line)) }
}
