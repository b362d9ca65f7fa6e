//! The table of faults: a real server, a real socket and a real run for each line of `docs/faults.md`, and the files on disk
//! afterwards. A test binary of its own, so that the memory of the process can be measured.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use counterproof_runner::Settings;
use serde_json::Value;

use crate::kit::{Finished, cases, run_with};

#[path = "../it/kit.rs"]
mod kit;
mod lines;
mod request_target;

use request_target::RequestTarget;

/// The saved part of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Body {
    None,
    /// The complete body.
    Whole(&'static str),
    /// The start of the body.
    Cut(&'static str),
}

/// One line of the table.
struct Line {
    what: &'static str,
    target: RequestTarget,
    class: &'static str,
    name: &'static str,
    /// With one retry.
    attempts: usize,
    body: Body,
    change: fn(&mut Settings),
    /// The wait before the second attempt if the agent sent `Retry-After`; at most one second.
    wait_ms: Option<u64>,
}

/// The memory that a line may use in addition to that of the process before it: the runner, the server, and everything that it
/// sends. The margin covers pages of the program, of which the first line reads most; a body of a gigabyte would exceed it by far.
const LINE_LIMIT_KIB: u64 = 32 * 1024;

#[test]
fn every_fault_is_classified_as_documented_in_bounded_memory() {
    // One test, because another one in the same process would disturb the measurement.
    check_docs();
    let mut wrong = Vec::new();
    for line in lines::all() {
        let what = line.what;
        let before = memory_kib("VmRSS:").unwrap_or_default();
        reset_peak();
        if std::thread::spawn(move || check(&line)).join().is_err() {
            wrong.push(what.to_owned());
        }
        let used = memory_kib("VmHWM:").unwrap_or_default().saturating_sub(before);
        if used > LINE_LIMIT_KIB {
            wrong.push(format!("{what}: {used} KiB"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn check(line: &Line) {
    let started = line.target.start();
    let run = run_with(&started.url, &cases(["c1"]), |settings| {
        settings.retry.retries = 1;
        settings.retry.retry_after_cap = Duration::from_secs(1);
        (line.change)(settings);
    });
    let failure = run.failure(line.class, line.name);
    let case = run.case();
    let attempts = case["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), line.attempts, "{}: {case:#}", line.what);
    for attempt in attempts {
        assert!(attempt["latency_ms"].is_number() && attempt["started_at"].is_string(), "{attempt:#}");
        assert_eq!((&attempt["error_class"], &attempt["error_name"]), (&line.class.into(), &line.name.into()));
    }
    if let Some(millis) = line.wait_ms {
        assert_eq!(attempts[0]["retry_delay_ms"], millis, "{}", line.what);
    }
    check_body(line, &run, &failure);
    let found = counterproof_validation::validate_path(&run.summary.folder).unwrap();
    assert!(found.findings.is_empty(), "{}: {found:#?}", line.what);
}

fn check_body(line: &Line, run: &Finished, failure: &Value) {
    let (extension, cut) = match line.body {
        Body::None => {
            assert!(failure["body_snippet"].is_null(), "{}: {failure:#}", line.what);
            return;
        }
        Body::Whole(extension) => (extension, false),
        Body::Cut(extension) => (extension, true),
    };
    let href = failure["full_body_saved_to"].as_str().unwrap_or_else(|| panic!("{}: {failure:#}", line.what));
    assert_eq!(href, format!("assets/c1.attempt{}.body.{extension}", line.attempts), "{}", line.what);
    assert_eq!(run.meta()["truncated"], cut, "{}: {:#}", line.what, run.meta());
    assert_eq!(run.meta()["class"], line.class);
    assert!(!failure["body_snippet"].as_str().unwrap().is_empty());
}

/// Returns the current or peak memory of this process, on systems with `/proc`.
fn memory_kib(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

/// Resets the peak memory (proc(5), `clear_refs`). Where that fails, the peak since the start is a stricter measure.
#[expect(clippy::disallowed_methods, reason = "a file of the system, which cannot be torn")]
fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn check_docs() {
    let rows = lines::all().into_iter().map(|line| {
        let body = match line.body {
            Body::None => "none".to_owned(),
            Body::Whole(extension) => format!("whole, `.{extension}`"),
            Body::Cut(extension) => format!("its start, `.{extension}`"),
        };
        format!("| {} | `{}` | `{}` | {} | {body} |\n", line.what, line.class, line.name, line.attempts)
    });
    let table: String = rows.collect();
    let docs = include_str!("../../../docs/faults.md");
    assert!(docs.contains(&table), "docs/faults.md should contain\n{table}");
}
