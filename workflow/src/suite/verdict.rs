//! What results mean for a task: whether the target passes, which tests fail newly, and how many were added.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

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
    if has(Verdict::Failed) || matches!(report.problem, Some(Problem::Broken(_))) {
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
    if after.is_success() { Vec::new() } else { new_lines(before, after) }
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
    // The ids of these runners have no files, and tests of a file cannot be told apart from others.
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
        || (id.ends_with(".py") && !id.contains("::"))
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
    if new.is_empty() && before.is_success() {
        new.push(match (after.timed_out, after.exit_code) {
            (true, _) => "the suite did not end within its time limit".to_owned(),
            (false, Some(code)) => format!("the suite ended with exit code {code}"),
            (false, None) => "the suite was killed".to_owned(),
        });
    }
    new
}
