//! `python -m unittest`, with `-v` and without.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::lines::regex;
use super::{Found, MAX_TESTS, Tests};
use crate::suite::report::{Format, Problem, Verdict};

/// The class of tests that replace a module which cannot be imported, or a name that does not exist.
const FAILED_TEST: &str = "unittest.loader._FailedTest.";

#[derive(Debug, Default)]
pub(super) struct Unittest {
    tests: Tests,
    /// Ids whose verdict is on a later line.
    open: Vec<String>,
    is_after_rule: bool,
    /// The name of a `_FailedTest` whose error is being read, and whether its reason is known.
    failed_test: Option<String>,
    ran: Option<u64>,
    skipped: u64,
    problem: Option<Problem>,
    has_evidence: bool,
}

impl Unittest {
    pub(super) fn line(&mut self, line: &str) {
        static TEST: LazyLock<Regex> =
            LazyLock::new(|| regex(r"^ *(\w+) \(([\w.<>]+)\)(?: \[.*\])?(?: \(.*?\))?(?: \.\.\. (.*)| \.\.\.|)$"));
        static HEAD: LazyLock<Regex> =
            LazyLock::new(|| regex(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (\w+) \(([\w.<>]+)\)"));
        static RAN: LazyLock<Regex> = LazyLock::new(|| regex(r"^Ran (\d+) tests? in "));
        static SKIPPED: LazyLock<Regex> =
            LazyLock::new(|| regex(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((?:[a-z ]+=\d+(?:, )?)+\))?$"));
        let was_after_rule = std::mem::replace(&mut self.is_after_rule, is_rule(line));
        if let Some(head) = Some(line).filter(|_| was_after_rule).and_then(|line| HEAD.captures(line)) {
            self.failure(&head[2], &head[3]);
        } else if let Some(ran) = Some(line).filter(|it| it.starts_with("Ran ")).and_then(|it| RAN.captures(it)) {
            self.has_evidence = true;
            self.ran = Some(self.ran.unwrap_or(0).saturating_add(ran[1].parse().unwrap_or(0)));
            self.failed_test = None;
        } else if self.ran.is_some() && SKIPPED.is_match(line) {
            self.skipped = self.skipped.saturating_add(number(line, "skipped=") + number(line, "expected failures="));
        } else if let Some(test) = Some(line).filter(|it| it.contains(" (")).and_then(|it| TEST.captures(it)) {
            let id = id(&test[1], &test[2]);
            let rest = test.get(3).map_or("", |rest| rest.as_str());
            match verdict(rest) {
                Some(verdict) => self.add(&id, verdict),
                None if self.open.len() < MAX_TESTS => self.open.push(id),
                None => {}
            }
        } else if self.open.is_empty() && self.failed_test.is_none() {
        } else if let Some(verdict) = verdict(line.rsplit_once(" ... ").map_or(line, |(_, rest)| rest))
            && let Some(id) = self.open.pop()
        {
            self.add(&id, verdict);
        } else if self.failed_test.is_some() {
            self.reason(line);
        }
    }

    fn add(&mut self, id: &str, verdict: Verdict) {
        self.has_evidence = true;
        // Whether such a test is a missing name or broken code is known from its error.
        if !id.starts_with(FAILED_TEST) {
            self.tests.add(id, verdict);
        }
    }

    fn failure(&mut self, name: &str, class: &str) {
        let id = id(name, class);
        self.failed_test = id.strip_prefix(FAILED_TEST).map(str::to_owned);
        if self.failed_test.is_none() {
            self.tests.add(&id, Verdict::Failed);
        }
    }

    /// Reads the last line of an error: `ModuleNotFoundError: No module named 'x'`.
    fn reason(&mut self, line: &str) {
        static ERROR: LazyLock<Regex> = LazyLock::new(|| regex(r"^(\w+(?:\.\w+)*): (.*)$"));
        let Some(error) = ERROR.captures(line) else { return };
        let Some(name) = self.failed_test.clone() else { return };
        if error[2].starts_with("Failed to import test module: ") {
            return;
        }
        let last = error[2].rsplit('\'').nth(1).unwrap_or("");
        let is_name = last == name || last.ends_with(&format!(".{name}"));
        let is_missing = match &error[1] {
            "ModuleNotFoundError" => error[2].starts_with("No module named") && is_name,
            "AttributeError" => error[2].contains(" has no attribute ") && is_name,
            _ => false,
        };
        if is_missing {
            self.problem.get_or_insert_with(|| Problem::NotFound(line.to_owned()));
            // It is not a test.
            self.ran = self.ran.or(Some(0));
        } else {
            self.tests.add(&format!("{FAILED_TEST}{name}"), Verdict::Failed);
            if !matches!(self.problem, Some(Problem::Broken(_))) {
                self.problem = Some(Problem::Broken(line.to_owned()));
            }
        }
        self.failed_test = None;
    }

    pub(super) fn finish(mut self, found: &mut Found) {
        if !self.has_evidence {
            return;
        }
        found.format(Format::Unittest);
        // Their verdict follows output on the same line. Failures are listed at the end of a complete run.
        if self.ran.is_some() {
            let open: BTreeSet<String> = std::mem::take(&mut self.open).into_iter().collect();
            for id in &open {
                self.add(id, Verdict::Passed);
            }
        }
        found.tests.append(self.tests);
        found.count(self.ran, self.skipped);
        found.problem(self.problem);
    }
}

fn is_rule(line: &str) -> bool {
    line.len() >= 60 && line.bytes().all(|byte| byte == b'=')
}

/// `test_a (m.C.test_a)` since Python 3.11, and `test_a (m.C)` before.
fn id(name: &str, class: &str) -> String {
    let ends_with_name = class.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    if ends_with_name { class.to_owned() } else { format!("{class}.{name}") }
}

fn number(line: &str, key: &str) -> u64 {
    // `unexpected successes=` has another key; `expected failures=` is the end of no other one.
    let digits = line.split_once(key).map_or("", |(_, rest)| rest);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

fn verdict(text: &str) -> Option<Verdict> {
    match text.trim() {
        "ok" => Some(Verdict::Passed),
        "FAIL" | "ERROR" | "unexpected success" => Some(Verdict::Failed),
        "expected failure" => Some(Verdict::Skipped),
        text if text.starts_with("skipped ") => Some(Verdict::Skipped),
        _ => None,
    }
}
