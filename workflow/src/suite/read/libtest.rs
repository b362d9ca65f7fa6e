//! `cargo test` (unit, integration and documentation tests, also with `-q` and `--nocapture`) and `cargo nextest run`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::lines::regex;
use super::{Found, MAX_TESTS, Tests};
use crate::suite::report::{Format, Problem, Verdict};

/// The results of one test binary at a time.
#[derive(Debug, Default)]
pub(super) struct Libtest {
    tests: Tests,
    /// Of the binary that runs.
    binary: Vec<(String, Verdict)>,
    /// Tests whose line had other output instead of a verdict.
    open: Vec<String>,
    /// Indented lines since the last `failures:`.
    listed: Vec<String>,
    is_listing: bool,
    has_header: bool,
    ran: Option<u64>,
    skipped: u64,
    problem: Option<Problem>,
    has_nextest: bool,
}

impl Libtest {
    pub(super) fn line(&mut self, line: &str) {
        static HEADER: LazyLock<Regex> = LazyLock::new(|| regex(r"^running \d+ tests?$"));
        static STDOUT: LazyLock<Regex> = LazyLock::new(|| regex(r"^---- (.+) std(?:out|err) ----$"));
        if line.starts_with("running ") && HEADER.is_match(line) {
            self.end_binary(None);
            self.has_header = true;
        } else if let Some(test) = line.strip_prefix("test ").and_then(split_test) {
            self.test(test.0, test.1);
        } else if let Some(test) = line.strip_suffix(" --- FAILED") {
            self.add(test, Verdict::Failed);
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.result(result);
        } else if line == "failures:" {
            self.is_listing = true;
            self.listed.clear();
        } else if let Some(name) = line.strip_prefix("    ").filter(|name| self.is_listing && !name.starts_with(' ')) {
            if self.listed.len() < MAX_TESTS {
                self.listed.push(name.to_owned());
            }
        } else if let Some(name) =
            Some(line).filter(|it| self.is_listing && it.starts_with("---- ")).and_then(|it| STDOUT.captures(it))
        {
            self.add(&name[1], Verdict::Failed);
        } else if let Some(verdict) = self.last_verdict(line) {
            if let Some(name) = self.open.pop() {
                self.add(&name, verdict);
            }
        } else {
            self.other(line);
        }
    }

    fn other(&mut self, line: &str) {
        static COMPILE: LazyLock<Regex> =
            LazyLock::new(|| regex(r"^error: could not compile|^error\[E\d+\]|^error: failed to parse manifest"));
        static MISSING: LazyLock<Regex> = LazyLock::new(|| regex(r"^error: no (?:test|bench|bin) target named"));
        static NEXTEST: LazyLock<Regex> = LazyLock::new(|| {
            regex(
                r"^ +(?:(PASS|LEAK)|(FAIL|SIGABRT|SIGSEGV|ABORT|TIMEOUT)|(SKIP)) \[[^\]]*\] (?:\( *\d+/\d+\) +)?(\S+ .+)$",
            )
        });
        static SUMMARY: LazyLock<Regex> =
            LazyLock::new(|| regex(r"^ +Summary \[[^\]]*\] +(\d+)(?:/\d+)? tests? run: .*?(?:(\d+) skipped)?$"));
        let is_nextest = line.starts_with("    ") && line.contains(" [");
        if !line.starts_with("error") && !is_nextest {
            return;
        }
        if COMPILE.is_match(line) {
            self.problem = Some(Problem::Broken(line.to_owned()));
        } else if MISSING.is_match(line) && self.problem.is_none() {
            self.problem = Some(Problem::NotFound(line.to_owned()));
        } else if let Some(test) = NEXTEST.captures(line) {
            let verdict = match (test.get(1), test.get(2)) {
                (Some(_), _) => Verdict::Passed,
                (_, Some(_)) => Verdict::Failed,
                _ => Verdict::Skipped,
            };
            self.tests.add(&test[4], verdict);
        } else if let Some(summary) = SUMMARY.captures(line) {
            self.has_nextest = true;
            let number = |at| summary.get(at).and_then(|it: regex::Match<'_>| it.as_str().parse().ok()).unwrap_or(0);
            self.ran = Some(self.ran.unwrap_or(0) + number(1));
        }
    }

    fn last_verdict(&self, line: &str) -> Option<Verdict> {
        if self.open.is_empty() { None } else { verdict(line) }
    }

    fn test(&mut self, name: &str, rest: &str) {
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        match verdict(rest) {
            Some(verdict) => self.add(name, verdict),
            None if self.open.len() < MAX_TESTS => self.open.push(name.to_owned()),
            None => {}
        }
    }

    fn add(&mut self, name: &str, verdict: Verdict) {
        if self.binary.len() < MAX_TESTS {
            self.binary.push((name.to_owned(), verdict));
        }
    }

    fn result(&mut self, result: &str) {
        static COUNTS: LazyLock<Regex> = LazyLock::new(|| {
            regex(r"^(?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; (\d+) filtered out")
        });
        let Some(counts) = COUNTS.captures(result) else { return };
        let count = |at: usize| counts[at].parse::<u64>().unwrap_or(0);
        self.has_header = true;
        self.ran = Some(self.ran.unwrap_or(0) + count(1) + count(2) + count(3) + count(4));
        self.skipped += count(3);
        for name in std::mem::take(&mut self.listed) {
            self.add(&name, Verdict::Failed);
        }
        self.end_binary(Some(count(1) + count(4)));
    }

    /// Takes over the tests of the binary. `passed` is the number of those that its summary states.
    fn end_binary(&mut self, passed: Option<u64>) {
        let binary = std::mem::take(&mut self.binary);
        let open = std::mem::take(&mut self.open);
        self.is_listing = false;
        let mut tests = Tests::default();
        for (name, verdict) in &binary {
            tests.add(name, *verdict);
        }
        let known = tests.verdicts.values().filter(|it| **it == Verdict::Passed).count() as u64;
        let open: BTreeSet<String> = open.into_iter().filter(|name| !tests.verdicts.contains_key(name)).collect();
        // Output stood in place of their verdicts. The summary decides, if it leaves no doubt.
        let verdict = match passed {
            Some(passed) if known + open.len() as u64 == passed => Some(Verdict::Passed),
            // The process ended in the middle of them.
            None => Some(Verdict::Failed),
            Some(_) => None,
        };
        for name in open {
            if let Some(verdict) = verdict {
                tests.add(&name, verdict);
            }
        }
        if self.tests.first_failed.is_none() {
            self.tests.first_failed.clone_from(&tests.first_failed);
        }
        // Several binaries may have tests of one name; their order is stable.
        for (name, verdict) in tests.verdicts {
            let mut id = name.clone();
            let mut number = 1;
            while self.tests.verdicts.contains_key(&id) && number < 1000 {
                number += 1;
                id = format!("{name} ({number})");
            }
            self.tests.add(&id, verdict);
        }
    }

    pub(super) fn finish(mut self, found: &mut Found) {
        self.end_binary(None);
        if self.has_nextest {
            found.format(Format::Nextest);
        }
        if self.has_header {
            found.format(Format::Libtest);
        }
        if self.has_nextest || self.has_header {
            found.tests.append(self.tests);
            found.count(self.ran, self.skipped);
        }
        if matches!(self.problem, Some(Problem::Broken(_))) {
            found.format(Format::Libtest);
        }
        found.problem(self.problem);
    }
}

fn verdict(text: &str) -> Option<Verdict> {
    static TIMED: LazyLock<Regex> = LazyLock::new(|| regex(r" <[\d.]+s>$"));
    let text = if text.ends_with("s>") { TIMED.replace(text, "") } else { text.into() };
    match &*text {
        "ok" => Some(Verdict::Passed),
        "FAILED" | "FAILED (time limit exceeded)" => Some(Verdict::Failed),
        "ignored" => Some(Verdict::Skipped),
        text if text.starts_with("ignored, ") => Some(Verdict::Skipped),
        text if text.trim_start().starts_with("bench: ") => Some(Verdict::Passed),
        _ => None,
    }
}

/// Splits `NAME ... REST`, where the rest can be empty.
fn split_test(text: &str) -> Option<(&str, &str)> {
    text.split_once(" ... ").or_else(|| Some((text.strip_suffix(" ...")?, "")))
}
