//! Runs the conformance tests of CEL, and compares the cases that fail with a list of expected differences.
//!
//! Usage: `conformance CASES.jsonl DIFFERENCES.txt`. The cases are what `convert.mjs` prints. `cargo xtask interop` installs
//! the test data and runs this program.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a program for developers")]

mod case;
mod differences;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::ExitCode;

use case::{Case, Verdict};
use differences::Differences;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cases, differences] = arguments.as_slice() else {
        println!("usage: conformance CASES.jsonl DIFFERENCES.txt");
        return ExitCode::FAILURE;
    };
    let cases = fs::read_to_string(cases).expect("the file of cases is readable");
    let differences = Differences::parse(&fs::read_to_string(differences).expect("the list is readable"));
    let mut right = 0;
    let mut not_applicable = BTreeMap::<&str, usize>::new();
    let mut expected = BTreeMap::<String, usize>::new();
    let mut used = BTreeSet::<String>::new();
    let mut problems = Vec::new();
    for line in cases.lines() {
        let case: Case = serde_json::from_str(line).expect("a line is a case");
        let difference = differences.find(&case.path);
        if let Some((entry, _)) = difference {
            used.insert(entry.to_owned());
        }
        match (case.judge(), difference) {
            (Verdict::NotApplicable(reason), _) => *not_applicable.entry(reason).or_default() += 1,
            (Verdict::Right, None) => right += 1,
            (Verdict::Wrong(_), Some((_, reason))) => *expected.entry(reason.to_owned()).or_default() += 1,
            (Verdict::Wrong(why), None) => problems.push(format!("{}: `{}`: {why}", case.path, case.expr)),
            (Verdict::Right, Some((entry, _))) => {
                problems.push(format!("{}: the case passes; remove {entry} from the list of differences", case.path));
            }
        }
    }
    problems.extend(differences.unused(&used).map(|entry| format!("{entry}: no case has this name; remove it")));
    let outside: usize = not_applicable.values().sum();
    let total = cases.lines().count();
    println!("{total} conformance cases, {} apply to JSON, {right} are right", total - outside);
    print_reasons("not applicable", not_applicable.iter().map(|(reason, count)| (*reason, *count)));
    print_reasons("expected differences", expected.iter().map(|(reason, count)| (reason.as_str(), *count)));
    for problem in &problems {
        println!("error: {problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_reasons<'a>(title: &str, reasons: impl Iterator<Item = (&'a str, usize)>) {
    let reasons: Vec<_> = reasons.collect();
    println!("{title}: {}", reasons.iter().map(|(_, count)| count).sum::<usize>());
    for (reason, count) in reasons {
        println!("  {count:4} {reason}");
    }
}
