//! pytest, in its short, `-q`, `-v` and `-rA` output, and with pytest-xdist.

use std::sync::LazyLock;

use regex::Regex;

use super::lines::regex;
use super::{Found, MAX_TESTS, Tests};
use crate::suite::report::{Format, Problem, Verdict};

#[derive(Debug, Default)]
pub(super) struct Pytest {
    tests: Tests,
    /// Node ids whose line has other output instead of a verdict.
    open: Vec<String>,
    is_summary: bool,
    has_evidence: bool,
    is_complete: bool,
    ran: Option<u64>,
    skipped: u64,
    problem: Option<Problem>,
}

impl Pytest {
    pub(super) fn line(&mut self, line: &str) {
        static TEST: LazyLock<Regex> = LazyLock::new(|| {
            regex(r"^(\S.*?\.py::.+?) (PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR)(?: \(.*\)?)?(?: +\[ *\d+%\])?$")
        });
        static WORKER: LazyLock<Regex> =
            LazyLock::new(|| regex(r"^\[gw\d+\] \[ *\d+%\] (PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR) (\S.*::.+?) *$"));
        static OPEN: LazyLock<Regex> = LazyLock::new(|| regex(r"^(\S+\.py::\S+(?:\[[^\]]*\])?)(?: .*)?$"));
        static TITLE: LazyLock<Regex> = LazyLock::new(|| regex(r"^=+ (.+?) =+$"));
        static BARE: LazyLock<Regex> =
            LazyLock::new(|| regex(r"^(PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR)(?: \(.*\))?(?: +\[ *\d+%\])?$"));
        if let Some(title) = TITLE.captures(line) {
            self.title(&title[1]);
        } else if self.is_summary && self.summary(line) {
        } else if let Some(test) = WORKER.captures(line) {
            self.add(&test[2], &test[1]);
        } else if let Some(test) = TEST.captures(line) {
            self.add(&test[1], &test[2]);
        } else if let Some(verdict) = BARE.captures(line).filter(|_| !self.open.is_empty()) {
            if let Some(id) = self.open.pop() {
                self.add(&id, &verdict[1]);
            }
        } else if let Some(test) = OPEN.captures(line) {
            if self.open.len() < MAX_TESTS && !self.is_summary {
                self.open.push(test[1].to_owned());
            }
        } else {
            self.other(line);
        }
    }

    fn title(&mut self, title: &str) {
        self.is_summary = title == "short test summary info";
        if title == "test session starts" || self.is_summary {
            self.has_evidence = true;
        } else {
            self.counts(title);
        }
    }

    /// Reads a line of the summary. Returns false if it is another line.
    fn summary(&mut self, line: &str) -> bool {
        let Some((word, rest)) = line.split_once(' ') else { return false };
        match word {
            "PASSED" | "FAILED" | "XFAIL" | "XPASS" => self.add(node_id(rest), word),
            "ERROR" if rest.contains("::") => self.add(node_id(rest), word),
            "ERROR" => {
                let file = node_id(rest);
                self.tests.add(file, Verdict::Failed);
                self.broken(line);
            }
            // The place of the mark, without the test.
            "SKIPPED" => {}
            _ => return false,
        }
        true
    }

    fn other(&mut self, line: &str) {
        static COLLECTING: LazyLock<Regex> = LazyLock::new(|| regex(r"^_+ ERROR collecting (.+?) _+$"));
        if let Some(missing) = line.strip_prefix("ERROR: ") {
            let starts = ["not found: ", "file or directory not found: ", "found no collectors for "];
            if starts.iter().any(|start| missing.starts_with(start)) {
                self.has_evidence = true;
                self.problem.get_or_insert_with(|| Problem::NotFound(line.to_owned()));
            }
        } else if let Some(file) = COLLECTING.captures(line) {
            self.has_evidence = true;
            self.tests.add(&file[1], Verdict::Failed);
            self.broken(&format!("ERROR collecting {}", &file[1]));
        } else if line.starts_with("ImportError while loading conftest")
            || line.starts_with("INTERNALERROR> ")
            || line.ends_with(": No module named pytest")
        {
            self.has_evidence = true;
            self.broken(line);
        } else {
            self.counts(line);
        }
    }

    /// Reads `3 failed, 4 passed in 0.09s` and `no tests ran in 0.01s`.
    fn counts(&mut self, text: &str) {
        static COUNTS: LazyLock<Regex> = LazyLock::new(|| {
            regex(r"^((?:\d+ [a-z]+(?:, )?)+|no tests (?:ran|collected).*?) in [\d.]+s(?: \([\d:.]+\))?$")
        });
        let Some(counts) = COUNTS.captures(text) else { return };
        let mut ran = 0_u64;
        for part in counts[1].split(", ") {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let number = number.parse().unwrap_or(0);
            if ["skipped", "xfailed"].contains(&what) {
                self.skipped = self.skipped.saturating_add(number);
            }
            // An error is one more event of a test that was counted, or of a file.
            if ["failed", "passed", "skipped", "xfailed", "xpassed"].contains(&what) {
                ran = ran.saturating_add(number);
            }
        }
        self.has_evidence = true;
        self.is_complete = true;
        self.is_summary = false;
        self.ran = Some(self.ran.unwrap_or(0).saturating_add(ran));
    }

    fn add(&mut self, id: &str, word: &str) {
        self.has_evidence = true;
        let verdict = match word {
            "PASSED" | "XPASS" => Verdict::Passed,
            "FAILED" | "ERROR" => Verdict::Failed,
            _ => Verdict::Skipped,
        };
        self.tests.add(id, verdict);
    }

    fn broken(&mut self, line: &str) {
        if !matches!(self.problem, Some(Problem::Broken(_))) {
            self.problem = Some(Problem::Broken(line.to_owned()));
        }
    }

    pub(super) fn finish(mut self, found: &mut Found) {
        if !self.has_evidence {
            return;
        }
        found.format(Format::Pytest);
        // Output came between the id and the verdict. Failures are listed at the end, so the rest has passed, unless a test was skipped.
        let skipped = self.tests.verdicts.values().filter(|it| **it == Verdict::Skipped).count() as u64;
        if self.is_complete && skipped == self.skipped {
            for id in std::mem::take(&mut self.open) {
                if !self.tests.verdicts.contains_key(&id) {
                    self.tests.add(&id, Verdict::Passed);
                }
            }
        }
        found.tests.append(self.tests);
        found.count(self.ran, self.skipped);
        found.problem(self.problem);
    }
}

/// Returns the node id at the start of a line of the summary: `a.py::test[x - y] - assert 1 == 2`.
fn node_id(text: &str) -> &str {
    let parameters = text.find('[').filter(|at| text.find(" - ").is_none_or(|dash| *at < dash));
    let end = match parameters {
        Some(_) => text.find("] - ").map(|end| end + 1),
        None => text.find(" - "),
    };
    text[..end.unwrap_or(text.len())].trim_end()
}
