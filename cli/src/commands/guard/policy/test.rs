//! `counterproof guard policy test`: runs the tests of a policy.

use std::fmt::Write as _;
use std::sync::Arc;

use annotate_snippets::Level;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, one_line, without_inline_commands};
use counterproof_guard::mcp::read_sample;
use counterproof_guard::policy::{RequestFacts, SampleCall, TestReport, test};
use counterproof_store::read_file;
use serde_json::{Value, json};

use super::super::policy_file;
use super::recorded;
use crate::command_error::CommandError;
use crate::findings::render_finding;
use crate::json_text::to_json;
use crate::streams::Streams;

/// Check the decisions of a policy against expected ones, or against those that were recorded.
///
/// The file of tests has calls with the expected decisions. With `--events`, the calls of a file of events are decided again, and those
/// that would be decided differently are listed. No tool is called.
///
/// Exit code 0: all decisions are as expected, or as recorded. 1: a decision differs, or the file has errors. 2: the policy is invalid,
/// or the file of events has no tool calls. 3: a file cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Policy file
    #[arg(value_name = "FILE")]
    policy: Utf8PathBuf,

    /// File of tests, in JSON or YAML [default: FILE with the extension `test.yaml`]
    #[arg(value_name = "TESTS")]
    tests: Option<Utf8PathBuf>,

    /// Decide again about the calls of this file of events: JSON Lines, as `guard shim --events` writes them
    #[arg(long, value_name = "EVENTS", conflicts_with = "tests")]
    events: Option<Utf8PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args, is_json: bool, streams: &mut Streams) -> Result<Exit, CommandError> {
    let policy = Arc::new(policy_file::load(&args.policy)?);
    if let Some(path) = &args.events {
        return recorded::run(&policy, path, is_json, streams);
    }
    let path = args.tests.clone().unwrap_or_else(|| args.policy.with_extension("test.yaml"));
    let report = test(&policy, &path, &read(&path, "pass the file of tests after the policy")?, &read_request);
    if is_json {
        streams.print_document(&to_json(&document(&report)))?;
    } else {
        streams.print_document(&text(&report))?;
    }
    Ok(if report.findings.is_empty() { Exit::Done } else { Exit::Findings })
}

/// Reads the request of a call as the shim does.
fn read_request(call: &SampleCall<'_>) -> Result<RequestFacts, String> {
    read_sample(call).map_err(|problem| problem.to_string())
}

/// Reads a file of tests or events.
pub(super) fn read(path: &Utf8Path, hint: &str) -> Result<Vec<u8>, CommandError> {
    read_file::read_argument(path, read_file::MAX_LARGE_BYTES)
        .map_err(|error| CommandError::io(format!("cannot read `{path}`: {error}")).hint(hint))
}

fn document(report: &TestReport) -> Value {
    let tests = report.tests.iter();
    let tests: Vec<Value> =
        tests.map(|test| json!({"name": test.name, "passed": test.passed, "calls": test.calls})).collect();
    let findings = report.findings.iter().map(|finding| {
        json!({
            "file": finding.file, "pointer": finding.pointer,
            "line": finding.position.map(|position| position.line),
            "column": finding.position.map(|position| position.column),
            "message": finding.message, "expected": finding.expected, "remedy": finding.remedy,
        })
    });
    json!({"tests": tests, "findings": findings.collect::<Vec<_>>()})
}

fn text(report: &TestReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&render_finding(&Level::ERROR, finding.code.as_str(), finding));
    }
    for test in &report.tests {
        let result = if test.passed { "passed" } else { "FAILED" };
        let calls = if test.calls == 1 { "1 call".to_owned() } else { format!("{} calls", test.calls) };
        let _ = writeln!(text, "{result}  {} ({calls})", one_line(&test.name, 80));
    }
    let failed = report.tests.iter().filter(|test| !test.passed).count();
    let _ = writeln!(text, "{} passed, {failed} failed", report.tests.len() - failed);
    without_inline_commands(&text)
}
