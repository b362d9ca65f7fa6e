//! What results mean for a task: whether the target passes, which tests fail newly, and how many were added.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use camino::Utf8Path;
use regex::Regex;

use super::report::{Format, Problem, TestReport, Verdict};
use super::target::Target;

/// Maximum number of lines that are reported for a runner that is not known.
const MAX_LINES: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetVerdict {
    Passed,
    Failed,
    NotFound,
    /// The test exists and did not run, with the reason.
    NotRun(String),
}

/// Judges the run of the target alone.
pub fn target_verdict(report: &TestReport, target: &Target) -> TargetVerdict {
    // A process that was killed may have printed any lines before.
    if report.timed_out || report.exit_code.is_none_or(|code| code >= 128) {
        return TargetVerdict::Failed;
    }
    let found = tests_of(report, target);
    if found.is_empty() {
        return verdict_without_names(report, target);
    }
    let has = |verdict| found.values().any(|it| **it == verdict);
    if has(Verdict::Failed) {
        TargetVerdict::Failed
    } else if !has(Verdict::Passed) {
        TargetVerdict::NotRun("it was skipped, or is expected to fail".to_owned())
    } else if report.is_success() || report.failed().next().is_some() || is_coverage(report) {
        TargetVerdict::Passed
    } else {
        // The results are in doubt: the runner failed after it had printed them.
        TargetVerdict::Failed
    }
}

/// Judges the run of the target after the change. In addition to [`target_verdict`], each test of the target that ran before must have
/// run and passed.
pub fn target_verdict_after(before: &TestReport, after: &TestReport, target: &Target) -> TargetVerdict {
    let verdict = target_verdict(after, target);
    if verdict != TargetVerdict::Passed {
        return verdict;
    }
    let now = keyed(after);
    let is_lost = |(id, was): &(&str, &Verdict)| {
        let is_test = **was != Verdict::Skipped && !is_collection(id);
        is_test && now.get(&key(id)).map_or_else(|| has_names(after), |now| **now != Verdict::Passed)
    };
    let lost = tests_of(before, target).into_iter().find(is_lost);
    match lost {
        Some((id, _)) => TargetVerdict::NotRun(format!("`{id}` ran before the change and does not now")),
        None => TargetVerdict::Passed,
    }
}

/// Returns the tests that fail after a change and did not fail before, and those that passed before and are missing or skipped now. Of a
/// runner that is not known, the lines that failed.
pub fn new_failures(before: &TestReport, after: &TestReport) -> Vec<String> {
    let (was, now) = (keyed(before), keyed(after));
    let is_new = |id: &&str| was.get(&key(id)).is_none_or(|it| **it != Verdict::Failed);
    let mut new: BTreeSet<String> = after.failed().filter(is_new).map(str::to_owned).collect();
    // A test that was deleted or skipped proves nothing. The names of passed tests are known if the runner lists them.
    if !before.formats.is_empty() && (has_names(after) || !after.is_success()) {
        let is_lost = |id: &str| now.get(&key(id)).is_none_or(|it| **it == Verdict::Skipped);
        let passed = before.tests.iter().filter(|(_, verdict)| **verdict == Verdict::Passed);
        new.extend(passed.map(|(id, _)| id).filter(|id| is_lost(id)).cloned());
    }
    if !new.is_empty() {
        return new.into_iter().collect();
    }
    let passed = |report: &TestReport| {
        let failed = report.failed().count() as u64;
        report.ran.map(|ran| ran.saturating_sub(report.skipped + failed))
    };
    if let (Some(was), Some(now)) = (passed(before), passed(after))
        && !(has_names(before) && has_names(after))
        && now < was
    {
        return vec![format!("{} tests fewer passed than before", was - now)];
    }
    // Tests that failed before explain the exit code. Of a runner that names its tests, other lines are no ids.
    let has_known_failures = !after.formats.is_empty() && after.failed().next().is_some();
    let is_explained = has_known_failures && after.problem == before.problem && !is_cut(before, after);
    if after.is_success() || is_explained { Vec::new() } else { new_lines(before, after) }
}

/// Returns the number of tests that were not there before.
pub fn tests_added(before: &TestReport, after: &TestReport) -> u64 {
    if has_names(before) && has_names(after) {
        let was = keyed(before);
        let is_new = |id: &&String| !was.contains_key(&key(id)) && !is_collection(id);
        return after.tests.keys().filter(is_new).count() as u64;
    }
    after.ran.unwrap_or(0).saturating_sub(before.ran.unwrap_or(0))
}

/// Returns the tests that belong to the target.
fn tests_of<'a>(report: &'a TestReport, target: &Target) -> BTreeMap<&'a str, &'a Verdict> {
    let found = report.tests.iter().filter(|(id, _)| target.contains(id));
    found.map(|(id, verdict)| (id.as_str(), verdict)).collect()
}

fn verdict_without_names(report: &TestReport, target: &Target) -> TargetVerdict {
    match &report.problem {
        Some(Problem::Broken(_)) => return TargetVerdict::Failed,
        Some(Problem::NotFound(_)) => return TargetVerdict::NotFound,
        None => {}
    }
    let is_known = !report.formats.is_empty();
    // The ids of these runners have no files, and a report does not show which tests are of one file.
    let has_files = report.formats.iter().any(|it| matches!(it, Format::Pytest | Format::Unittest | Format::Vitest));
    let is_comparable = match target {
        Target::File { .. } => has_files,
        Target::Test { .. } => true,
    };
    if report.ran == Some(0) {
        return TargetVerdict::NotFound;
    }
    if has_names(report) && is_comparable {
        return TargetVerdict::NotFound;
    }
    if is_known && report.ran.is_some_and(|ran| ran == report.skipped) {
        return TargetVerdict::NotRun("all tests were skipped".to_owned());
    }
    let has_failed = report.failed().next().is_some();
    if report.is_success() && !has_failed { TargetVerdict::Passed } else { TargetVerdict::Failed }
}

/// Reports whether the report has the names of the tests that passed, and not of failures alone.
fn has_names(report: &TestReport) -> bool {
    let passed = report.tests.values().any(|verdict| *verdict != Verdict::Failed);
    passed || report.ran.is_some_and(|ran| ran > 0 && report.tests.len() as u64 >= ran)
}

/// Reports whether only a limit of the coverage was missed, as it is when one test runs alone.
fn is_coverage(report: &TestReport) -> bool {
    report.output.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        line.contains("coverage") && (line.contains("not met") || line.contains("not reached"))
    })
}

/// An id of an event that is not a test: a file or module that could not be loaded.
fn is_collection(id: &str) -> bool {
    let names = [".setUpClass", ".tearDownClass", ".setUpModule", ".tearDownModule"];
    id.starts_with("unittest.loader._FailedTest.")
        || names.iter().any(|name| id.ends_with(name))
        || (Utf8Path::new(id).extension() == Some("py") && !id.contains("::"))
}

/// Returns an id without what changes when lines move: the line of a documentation test.
fn key(id: &str) -> String {
    static LINE: LazyLock<Regex> = LazyLock::new(|| super::read::regex(r" \(line \d+\)"));
    LINE.replace(id, "").into_owned()
}

fn keyed(report: &TestReport) -> BTreeMap<String, &Verdict> {
    let mut keyed: BTreeMap<String, &Verdict> = BTreeMap::new();
    for (id, verdict) in &report.tests {
        let known = keyed.entry(key(id)).or_insert(verdict);
        if *verdict == Verdict::Failed {
            *known = verdict;
        }
    }
    keyed
}

/// Returns the lines that look like failures and were not there before; at least one, because the command failed.
fn new_lines(before: &TestReport, after: &TestReport) -> Vec<String> {
    static VARYING: LazyLock<Regex> = LazyLock::new(|| {
        super::read::regex(r"\b0x[0-9a-f]+\b|\b\d+(?:\.\d+)?(?: ?m?s| seconds?)\b|\b\d\d:\d\d:\d\d\b")
    });
    let normal = |line: &String| VARYING.replace_all(line, "_").into_owned();
    let was: BTreeSet<String> = before.failed_lines.iter().map(normal).collect();
    let mut new: Vec<String> =
        after.failed_lines.iter().filter(|line| !was.contains(&normal(line))).take(MAX_LINES).cloned().collect();
    if new.is_empty() && (before.is_success() || is_cut(before, after)) {
        new.push(match (after.timed_out, after.exit_code) {
            (true, _) => "the suite did not end within its time limit".to_owned(),
            (false, Some(code)) => format!("the suite ended with exit code {code}"),
            (false, None) => "the suite was killed".to_owned(),
        });
    }
    new
}

/// Reports whether the suite was killed after the change, and ended by itself before it.
fn is_cut(before: &TestReport, after: &TestReport) -> bool {
    let is_killed = |report: &TestReport| report.timed_out || report.exit_code.is_none();
    is_killed(after) && !is_killed(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::read;

    /// A report of the format TAP, whose ids are plain names.
    fn tap(results: &[(&str, &str)]) -> TestReport {
        let lines = results.iter().map(|(name, verdict)| match *verdict {
            "passed" => format!("ok - {name}\n"),
            "skipped" => format!("ok - {name} # SKIP\n"),
            _ => format!("not ok - {name}\n"),
        });
        let is_red = results.iter().any(|(_, verdict)| *verdict == "failed");
        read(Some(i32::from(is_red)), &format!("{}1..9\n", lines.collect::<String>()), "")
    }

    #[test]
    fn only_tests_that_did_not_fail_before_are_new_failures() {
        let before = tap(&[("a", "failed"), ("b", "passed"), ("c", "passed"), ("d", "skipped"), ("e", "passed")]);
        let after = tap(&[
            ("a", "failed"),
            ("b", "failed"),
            ("c", "skipped"),
            ("d", "failed"),
            ("f", "failed"),
            ("g", "passed"),
        ]);
        // `c` is skipped now, and `e` is gone.
        assert_eq!(new_failures(&before, &after), ["b", "c", "d", "e", "f"]);
        assert_eq!(tests_added(&before, &after), 2);
        assert_eq!(new_failures(&before, &before), Vec::<String>::new());
        assert_eq!(tests_added(&after, &after), 0);
    }

    #[test]
    fn documentation_tests_may_move_to_other_lines() {
        let report = |line, verdict: &str| {
            let counts = if verdict == "ok" { "1 passed; 0 failed" } else { "0 passed; 1 failed" };
            let text = format!(
                "running 1 test\ntest src/lib.rs - add (line {line}) ... {verdict}\n\ntest result: ok. {counts}; 0 ignored; 0 measured; 0 \
                 filtered out; finished in 0.00s\n"
            );
            read(Some(0), &text, "")
        };
        assert_eq!(new_failures(&report(2, "ok"), &report(9, "ok")), Vec::<String>::new());
        assert_eq!(tests_added(&report(2, "ok"), &report(9, "ok")), 0);
        assert_eq!(new_failures(&report(2, "ok"), &report(9, "FAILED")), ["src/lib.rs - add (line 9)"]);
    }

    #[test]
    fn counts_are_compared_where_a_runner_names_only_failures() {
        let report = |ran: u32, failed: &str| {
            let failures =
                failed.split_whitespace().map(|name| format!("{}\nFAIL: {name} (m.C.{name})\n", "=".repeat(70)));
            let failures = failures.collect::<Vec<_>>().concat();
            let exit = i32::from(!failed.is_empty());
            read(Some(exit), "", &format!("{failures}Ran {ran} tests in 0.001s\n\nOK\n"))
        };
        let (before, after) = (report(5, "test_a"), report(6, "test_a test_b"));
        assert_eq!((new_failures(&before, &after), tests_added(&before, &after)), (vec!["m.C.test_b".to_owned()], 1));
        assert_eq!(new_failures(&before, &report(3, "")), ["1 tests fewer passed than before"]);
        assert_eq!(new_failures(&before, &report(5, "")), Vec::<String>::new());
    }

    #[test]
    fn a_suite_that_is_broken_has_lost_the_tests_that_passed() {
        let before = tap(&[("a", "passed"), ("b", "failed")]);
        let broken = read(Some(101), "", "error: could not compile `x`\n");
        assert_eq!(new_failures(&before, &broken), ["a"]);
        let late = TestReport { timed_out: true, exit_code: None, ..tap(&[]) };
        assert_eq!(new_failures(&tap(&[]), &late), ["the suite did not end within its time limit"]);
        let red = tap(&[("a", "failed")]);
        let hanging = TestReport { timed_out: true, exit_code: None, ..red.clone() };
        assert_eq!(new_failures(&red, &hanging), ["the suite did not end within its time limit"]);
        // All tests passed, and another step of the suite did not.
        let green = tap(&[("a", "passed")]);
        let other = TestReport { exit_code: Some(2), ..green.clone() };
        assert_eq!(new_failures(&green, &other), ["the suite ended with exit code 2"]);
    }

    #[test]
    fn a_target_passes_only_if_it_ran_and_passed() {
        let target = Target::test("a");
        let judge = |results: &[(&str, &str)]| target_verdict(&tap(results), &target);
        assert_eq!(judge(&[("a", "passed"), ("b", "failed")]), TargetVerdict::Passed);
        assert_eq!(judge(&[("a", "failed")]), TargetVerdict::Failed);
        assert!(matches!(judge(&[("a", "skipped")]), TargetVerdict::NotRun(_)));
        assert_eq!(judge(&[("b", "passed")]), TargetVerdict::NotFound);
        assert_eq!(judge(&[]), TargetVerdict::NotFound);
        let doubtful = TestReport { exit_code: Some(134), ..tap(&[("a", "passed")]) };
        assert_eq!(target_verdict(&doubtful, &target), TargetVerdict::Failed);
        let coverage = "FAIL Required test coverage of 80% not reached. Total coverage: 12%";
        let output = format!("a.py::a PASSED [100%]\n{coverage}\n=== 1 passed in 0.01s ===\n");
        assert_eq!(target_verdict(&read(Some(1), &output, ""), &target), TargetVerdict::Passed);
    }

    #[test]
    fn each_test_of_a_target_that_ran_before_must_pass() {
        let target = Target::test("group");
        let before = tap(&[("group.a", "failed"), ("group.b", "passed"), ("group.c", "skipped")]);
        let judge = |results: &[(&str, &str)]| target_verdict_after(&before, &tap(results), &target);
        let passed = [("group.a", "passed"), ("group.b", "passed"), ("group.c", "skipped")];
        assert_eq!(judge(&passed), TargetVerdict::Passed);
        assert!(matches!(judge(&[("group.a", "skipped"), ("group.b", "passed")]), TargetVerdict::NotRun(_)));
        assert!(matches!(judge(&[("group.a", "passed")]), TargetVerdict::NotRun(_)));
    }
}
