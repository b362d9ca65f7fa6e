//! `counterproof guard policy test`: runs the tests of a policy, or decides about recorded calls again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use annotate_snippets::Level;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, harmless, one_line, without_inline_commands};
use counterproof_guard::mcp::read_sample;
use counterproof_guard::policy::{
    DryRun, DryRunDifference, ObservedCalls, Policy, RequestFacts, SampleCall, TestReport, dry_run, test,
};
use counterproof_ledger::event::{Action, ObservedDecision};
use counterproof_store::read_file;
use serde_json::{Value, json};

use crate::command_error::CommandError;
use crate::commands::guard::policy_args;
use crate::findings::render_finding;
use crate::streams::{Streams, to_json};

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

pub(super) fn run(args: &Args, is_json: bool, streams: &mut Streams) -> Result<Exit, CommandError> {
    let policy = Arc::new(policy_args::load(&args.policy)?);
    if let Some(path) = &args.events {
        return run_recorded(&policy, path, is_json, streams);
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

/// Calls that are listed for each kind of difference.
const MAX_LISTED: usize = 5;

pub(super) fn run_recorded(
    policy: &Arc<Policy>,
    path: &Utf8Path,
    is_json: bool,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let found = dry_run(policy, &read(path, "check that the path exists and is readable")?);
    // A comparison of nothing must not pass.
    if found.calls_compared == 0 {
        return Err(nothing_compared(&found, path));
    }
    if is_json {
        streams.print_document(&to_json(&found))?;
    } else {
        streams.print_document(&harmless(&recorded_text(&found, path)))?;
    }
    Ok(if found.differences.is_empty() && found.problems.is_empty() { Exit::Done } else { Exit::Findings })
}

/// Returns the error about a file of events without a decision.
fn nothing_compared(found: &DryRun, path: &Utf8Path) -> CommandError {
    let what = if found.calls == 0 { "tool call" } else { "decision about a tool call" };
    let line = found.problems.first();
    let line = line.map(|problem| format!("; line {} is not an event: {}", problem.line, problem.message));
    CommandError::usage(format!("`{path}` has no {what}{}", line.unwrap_or_default()))
        .hint("pass events that the guard recorded: the file of `counterproof guard shim --events`, or the output of `counterproof ledger export`")
}

fn recorded_text(found: &DryRun, path: &Utf8Path) -> String {
    let mut recorded_text = String::new();
    // One edit of a rule usually changes many calls in the same way.
    let mut groups: BTreeMap<(String, String), Vec<&DryRunDifference>> = BTreeMap::new();
    for difference in &found.differences {
        let observed = if difference.is_observed && difference.before.action != Action::Allow {
            ", allowed by the mode `observe`"
        } else {
            ""
        };
        let before = format!("{}{observed}", decided(&difference.before));
        groups.entry((before, decided(&difference.after))).or_default().push(difference);
    }
    for ((before, after), calls) in &groups {
        let _ = writeln!(recorded_text, "{}: recorded {before}; this policy {after}", count(calls.len() as u64));
        for call in calls.iter().take(MAX_LISTED) {
            // The names come from agents and servers, so they can be long and steer a terminal.
            let tool = one_line(&format!("{}/{}", call.server_name, call.tool_name), 60);
            let (run, id) = (one_line(&call.run_id, 40), one_line(call.call_id.as_str(), 40));
            let _ = writeln!(recorded_text, "  {}  {tool}  run {run}  call {id}", call.ts);
        }
        if calls.len() > MAX_LISTED {
            let _ = writeln!(recorded_text, "  and {} more", calls.len() - MAX_LISTED);
        }
    }
    for problem in found.problems.iter().take(MAX_LISTED) {
        let _ = writeln!(recorded_text, "{path}:{}: not an event: {}", problem.line, problem.message);
    }
    if found.problems.len() > MAX_LISTED {
        let _ = writeln!(recorded_text, "{} more lines are not events", found.problems.len() - MAX_LISTED);
    }
    if found.calls_without_arguments > 0 {
        let calls = count(found.calls_without_arguments);
        let _ = writeln!(
            recorded_text,
            "note: the arguments of {calls} are not recorded; conditions on them are undecided"
        );
    }
    if found.calls_compared < found.calls {
        let calls = count(found.calls - found.calls_compared);
        let _ = writeln!(recorded_text, "note: the decisions about {calls} are not recorded and not compared");
    }
    let ObservedCalls { calls, refused_before, refused_after } = found.observed;
    if calls > 0 {
        let _ = writeln!(
            recorded_text,
            "note: {} recorded in the mode `observe`, which refuses nothing; the recorded rules would have refused \
             {refused_before}, and this policy would refuse {refused_after}",
            if calls == 1 { "1 call was".to_owned() } else { format!("{calls} calls were") }
        );
    }
    let _ = writeln!(
        recorded_text,
        "{} of {} would be decided differently",
        found.differences.len(),
        count(found.calls_compared)
    );
    recorded_text
}

fn decided(decision: &ObservedDecision) -> String {
    let by = decision.rule_id.as_deref().map(|id| format!(" by rule `{}`", one_line(id, 60))).unwrap_or_default();
    format!("{}{by} ({})", decision.action.name(), one_line(&decision.reason_code, 60))
}

fn count(calls: u64) -> String {
    format!("{calls} call{}", if calls == 1 { "" } else { "s" })
}
