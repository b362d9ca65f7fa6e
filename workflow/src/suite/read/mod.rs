//! Reads test results from the output of a command, line by line.
//!
//! All formats are read at once, because a command may be a wrapper of several runners. A format counts once a line of it was seen that
//! other programs do not print.

mod go;
mod javascript;
mod libtest;
mod lines;
mod pytest;
mod tap;
mod unittest;

use std::collections::{BTreeMap, VecDeque};

pub(super) use lines::regex;

use super::report::{Format, Problem, TestReport, Verdict};

/// Maximum bytes of one line that are read. Lines of test results are short.
pub(super) const MAX_LINE_BYTES: usize = 4096;
/// Maximum bytes of an id.
const MAX_ID_BYTES: usize = 1000;
/// Maximum number of tests in a report.
const MAX_TESTS: usize = 200_000;
/// Maximum bytes of the output that a report has.
const MAX_OUTPUT_BYTES: usize = 32 << 10;
/// Maximum number of lines that look like failures.
const MAX_FAILED_LINES: usize = 200;

/// Reads the lines of a test command. Memory is bounded, however long the output is.
#[derive(Debug, Default)]
pub struct Reader {
    output: Tail,
    failed_lines: Vec<String>,
    libtest: libtest::Libtest,
    unittest: unittest::Unittest,
    pytest: pytest::Pytest,
    javascript: javascript::JavaScript,
    tap: tap::Tap,
    go: go::Go,
}

impl Reader {
    /// Takes one line of either stream, in the order in which they were read.
    pub fn line(&mut self, line: &[u8]) {
        let line = &line[..line.len().min(MAX_LINE_BYTES)];
        let text = String::from_utf8_lossy(line);
        let text = lines::plain(&text);
        self.output.push(&text);
        let text = lines::without_time(&text);
        if self.failed_lines.len() < MAX_FAILED_LINES && lines::looks_failed(text) {
            self.failed_lines.push(text.trim().chars().take(300).collect());
        }
        self.libtest.line(text);
        self.unittest.line(text);
        self.pytest.line(text);
        self.javascript.line(text);
        self.tap.line(text);
        self.go.line(text);
    }

    pub fn finish(self, exit_code: Option<i32>, timed_out: bool) -> TestReport {
        let mut found = Found::default();
        self.libtest.finish(&mut found);
        self.unittest.finish(&mut found);
        self.pytest.finish(&mut found);
        self.go.finish(&mut found);
        // A runner of JavaScript may print TAP, and tests of other languages may print lines of both.
        if found.formats.is_empty() {
            self.javascript.finish(&mut found);
        }
        if found.formats.is_empty() {
            self.tap.finish(&mut found);
        }
        TestReport {
            exit_code,
            timed_out,
            formats: found.formats,
            tests: found.tests.verdicts,
            first_failed: found.tests.first_failed,
            ran: found.ran,
            skipped: found.skipped,
            problem: found.problem,
            failed_lines: self.failed_lines,
            output: self.output.text(),
        }
    }
}

/// Reads the whole output of a command that ended.
pub fn read(exit_code: Option<i32>, stdout: &str, stderr: &str) -> TestReport {
    let mut reader = Reader::default();
    for line in stdout.lines().chain(stderr.lines()) {
        reader.line(line.as_bytes());
    }
    reader.finish(exit_code, false)
}

/// What the readers found together.
#[derive(Debug, Default)]
struct Found {
    formats: Vec<Format>,
    tests: Tests,
    ran: Option<u64>,
    skipped: u64,
    problem: Option<Problem>,
}

impl Found {
    fn format(&mut self, format: Format) {
        if !self.formats.contains(&format) {
            self.formats.push(format);
        }
    }

    fn count(&mut self, ran: Option<u64>, skipped: u64) {
        if let Some(ran) = ran {
            self.ran = Some(self.ran.unwrap_or(0).saturating_add(ran));
        }
        self.skipped = self.skipped.saturating_add(skipped);
    }

    /// Sets the reason why tests did not run. Broken code explains a test that was not found, and not the other way round.
    fn problem(&mut self, problem: Option<Problem>) {
        if !matches!(self.problem, Some(Problem::Broken(_))) {
            self.problem = problem.or(self.problem.take());
        }
    }
}

/// Verdicts by id. The worst of a test counts: a runner may list one several times, as for an error after it passed.
#[derive(Debug, Default)]
struct Tests {
    verdicts: BTreeMap<String, Verdict>,
    first_failed: Option<String>,
}

impl Tests {
    fn add(&mut self, id: &str, verdict: Verdict) {
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return;
        }
        if verdict == Verdict::Failed && self.first_failed.is_none() {
            self.first_failed = Some(id.to_owned());
        }
        if let Some(known) = self.verdicts.get_mut(id) {
            if *known != Verdict::Failed && verdict != Verdict::Skipped {
                *known = verdict;
            }
        } else if self.verdicts.len() < MAX_TESTS {
            self.verdicts.insert(id.to_owned(), verdict);
        }
    }

    fn append(&mut self, tests: Tests) {
        self.first_failed = self.first_failed.take().or(tests.first_failed);
        for (id, verdict) in tests.verdicts {
            self.add(&id, verdict);
        }
    }

    fn len(&self) -> usize {
        self.verdicts.len()
    }
}

/// The last lines of the output.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, line: &str) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line.to_owned());
        while self.bytes > MAX_OUTPUT_BYTES {
            let Some(first) = self.lines.pop_front() else { break };
            self.bytes -= first.len() + 1;
            self.is_cut = true;
        }
    }

    fn text(self) -> String {
        let mut text = String::with_capacity(self.bytes + 32);
        if self.is_cut {
            text.push_str("[earlier output omitted]\n");
        }
        for line in self.lines {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}
