//! The table of faults: a real server, a real socket and a real run for each line of `docs/faults.md`, and what lies on disk
//! afterwards. All of it runs in a process of its own, so that its memory can be measured.

use std::process::Command;
use std::time::Duration;

use counterproof_runner::Settings;
use serde_json::Value;

use crate::kit::{Finished, cases, run_with};

mod lines;
mod places;

use places::Place;

/// What is kept of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Body {
    None,
    /// The whole of it.
    Whole(&'static str),
    /// The start of it.
    Cut(&'static str),
}

/// One line of the table.
struct Line {
    what: &'static str,
    place: Place,
    class: &'static str,
    name: &'static str,
    /// With one retry.
    attempts: usize,
    body: Body,
    change: fn(&mut Settings),
    /// The wait before the second attempt, where the agent asked for one and gets at most a second.
    wait_ms: Option<u64>,
}

/// What a line may take beyond what the process held before it: the runner, the server, and everything that it sends.
/// A process holds more for reasons of its own, such as pages of its program; no body of a gigabyte hides below this.
const LINE_LIMIT_KIB: u64 = 16 * 1024;

#[test]
fn every_fault_is_classified_and_kept_in_bounded_memory() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::the_table", "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

#[test]
#[ignore = "runs in a process of its own, which the test above starts"]
fn the_table() {
    let mut wrong = Vec::new();
    for line in lines::all() {
        let what = line.what;
        let before = memory_kib("VmRSS:").unwrap_or_default();
        forget_the_peak();
        if std::thread::spawn(move || check(&line)).join().is_err() {
            wrong.push(what.to_owned());
        }
        let taken = memory_kib("VmHWM:").unwrap_or_default().saturating_sub(before);
        println!("{taken:>7} KiB for: {what}");
        if taken > LINE_LIMIT_KIB {
            wrong.push(format!("{what}: {taken} KiB"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn check(line: &Line) {
    let standing = line.place.stand();
    let run = run_with(&standing.url, &cases(["c1"]), |settings| {
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

/// What this process holds, or held at its peak, where the system tells.
fn memory_kib(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

/// Has the peak counted anew (proc(5), `clear_refs`). A system that cannot counts from the start, which asks more of each line.
#[expect(clippy::disallowed_methods, reason = "the system's own file: nothing of it can be torn")]
fn forget_the_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[test]
fn the_docs_hold_the_table() {
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
    assert!(docs.contains(&table), "docs/faults.md should hold\n{table}");
}
