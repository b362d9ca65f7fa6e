//! `go test`, plain, with `-v` and with `-json`. Ids are `package.Test/subtest`.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::lines::regex;
use super::{Found, MAX_TESTS, Tests};
use crate::suite::report::{Format, Problem, Verdict};

#[derive(Debug, Default)]
pub(super) struct Go {
    tests: Tests,
    /// Results of the package whose line follows.
    package: Vec<(String, Verdict)>,
    has_evidence: bool,
    /// Each test is listed, as with `-v`, and not failures alone.
    is_verbose: bool,
    /// A package had tests to run.
    has_tests: bool,
    problem: Option<Problem>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    package: String,
    test: Option<String>,
    output: Option<String>,
}

impl Go {
    pub(super) fn line(&mut self, line: &str) {
        static RESULT: LazyLock<Regex> = LazyLock::new(|| regex(r"^ *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+(?:s|ms)\)$"));
        static PACKAGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^(?:ok|FAIL|\?) *\t(\S+)(?:[\t ].*)?$"));
        if line.starts_with('{')
            && let Ok(event) = serde_json::from_str::<Event>(line)
        {
            self.event(&event);
        } else if line.starts_with("=== RUN ") {
            self.has_evidence = true;
            self.is_verbose = true;
        } else if let Some(result) = RESULT.captures(line) {
            if self.package.len() < MAX_TESTS {
                self.package.push((result[2].to_owned(), verdict(&result[1])));
            }
        } else if let Some(package) = PACKAGE.captures(line) {
            self.end_package(&package[1]);
            let has_tests = !line.ends_with("[no tests to run]") && !line.ends_with("[no test files]");
            self.has_tests |= has_tests;
            if line.ends_with("[build failed]") || line.ends_with("[setup failed]") {
                self.broken(line);
            }
        }
    }

    fn event(&mut self, event: &Event) {
        self.has_evidence = true;
        self.is_verbose = true;
        match (event.action.as_str(), &event.test) {
            ("pass", Some(test)) => self.tests.add(&format!("{}.{test}", event.package), Verdict::Passed),
            ("fail", Some(test)) => self.tests.add(&format!("{}.{test}", event.package), Verdict::Failed),
            ("skip", Some(test)) => self.tests.add(&format!("{}.{test}", event.package), Verdict::Skipped),
            ("output", None) => {
                let output = event.output.as_deref().unwrap_or("").trim_end();
                if output.ends_with("[build failed]") || output.ends_with("[setup failed]") {
                    self.broken(output);
                }
            }
            _ => {}
        }
    }

    fn end_package(&mut self, package: &str) {
        self.has_evidence = true;
        for (test, verdict) in std::mem::take(&mut self.package) {
            self.tests.add(&format!("{package}.{test}"), verdict);
        }
    }

    fn broken(&mut self, line: &str) {
        self.has_evidence = true;
        if self.problem.is_none() {
            self.problem = Some(Problem::Broken(line.to_owned()));
        }
    }

    pub(super) fn finish(mut self, found: &mut Found) {
        if !self.has_evidence {
            return;
        }
        // A process that was killed prints no line of its package.
        for (test, verdict) in std::mem::take(&mut self.package) {
            self.tests.add(&test, verdict);
        }
        found.format(Format::Go);
        // Without `-v` only failures have names, and nothing states how many tests ran.
        if self.is_verbose || !self.has_tests {
            let skipped = self.tests.verdicts.values().filter(|verdict| **verdict == Verdict::Skipped).count();
            found.count(Some(self.tests.len() as u64), skipped as u64);
        }
        found.tests.append(self.tests);
        found.problem(self.problem);
    }
}

fn verdict(word: &str) -> Verdict {
    match word {
        "PASS" => Verdict::Passed,
        "FAIL" => Verdict::Failed,
        _ => Verdict::Skipped,
    }
}
