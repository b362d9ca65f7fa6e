//! The Test Anything Protocol, as `node --test` and others print it, with subtests.

use std::sync::LazyLock;

use regex::Regex;

use super::lines::regex;
use super::{Found, MAX_ID_BYTES, Tests};
use crate::suite::report::{Format, Problem, Verdict};

/// Maximum depth of subtests.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Tap {
    tests: Tests,
    parents: Vec<(usize, String)>,
    /// The indent of the last result. A result that is less indented is the sum of those before.
    last_indent: usize,
    is_in_details: bool,
    has_plan: bool,
    is_node: bool,
    ran: u64,
    skipped: u64,
    problem: Option<Problem>,
}

impl Tap {
    pub(super) fn line(&mut self, line: &str) {
        static RESULT: LazyLock<Regex> =
            LazyLock::new(|| regex(r"^( *)(not )?ok(?: (\d+))?(?: -)?(?: (.*?))?(?: # (?i:(skip|todo)\S*)(?: .*)?)?$"));
        static SUBTEST: LazyLock<Regex> = LazyLock::new(|| regex(r"^( *)# Subtest: (.+)$"));
        static PLAN: LazyLock<Regex> = LazyLock::new(|| regex(r"^1\.\.\d+(?: #.*)?$"));
        let trimmed = line.trim();
        if self.is_in_details {
            self.is_in_details = trimmed != "...";
        } else if trimmed == "---" {
            self.is_in_details = true;
        } else if let Some(result) = RESULT.captures(line) {
            self.result(&result);
        } else if let Some(subtest) = SUBTEST.captures(line) {
            let indent = subtest[1].len();
            self.parents.retain(|(at, _)| *at < indent);
            if self.parents.len() < MAX_DEPTH && subtest[2].len() <= MAX_ID_BYTES {
                self.parents.push((indent, subtest[2].to_owned()));
            }
        } else if PLAN.is_match(line) || line.starts_with("TAP version ") {
            self.has_plan = true;
        } else if line.starts_with("Bail out!") {
            self.problem = Some(Problem::Broken(line.to_owned()));
        } else if line.starts_with("# suites ") {
            self.is_node = true;
        }
    }

    fn result(&mut self, result: &regex::Captures<'_>) {
        let indent = result[1].len();
        let is_sum = std::mem::replace(&mut self.last_indent, indent) > indent;
        if is_sum {
            return;
        }
        let number = result.get(3).map_or("", |it| it.as_str());
        let name = result.get(4).map(|it| it.as_str().trim()).filter(|it| !it.is_empty()).unwrap_or(number);
        let verdict = match (result.get(2), result.get(5).map(|it| it.as_str().to_ascii_lowercase())) {
            (_, Some(directive)) if directive == "skip" => Verdict::Skipped,
            (Some(_), Some(_)) => Verdict::Skipped,
            (Some(_), None) => Verdict::Failed,
            (None, _) => Verdict::Passed,
        };
        let parents = self.parents.iter().filter(|(at, _)| *at < indent).map(|(_, parent)| parent.as_str());
        let id = parents.chain([name]).collect::<Vec<_>>().join(" › ");
        self.tests.add(&id, verdict);
        self.ran += 1;
        self.skipped += u64::from(verdict == Verdict::Skipped);
    }

    pub(super) fn finish(self, found: &mut Found) {
        if !self.has_plan {
            return;
        }
        found.format(if self.is_node { Format::NodeTest } else { Format::Tap });
        found.tests.append(self.tests);
        found.count(Some(self.ran), self.skipped);
        found.problem(self.problem);
    }
}
