//! Tests of policies: files of calls with the decisions that are expected.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::Nullable;
use counterproof_ledger::event::{Action, AgentClient, Transport, WorkingEnvironment, Workload};
use counterproof_validation::{Code, DocumentSchema, DocumentText, Finding, RuleFinding};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::call::{CallFacts, CallOutcome, ReadSample, RequestFacts, SampleCall};
use super::decide::Engine;
use super::decision_record::{Decision, POLICY_ERROR};
use super::document::{embedded_schema, format};
use super::model::Policy;
use crate::identity::RunIdentity;

pub const TEST_SCHEMA_SOURCE: &str = include_str!("../../../schemas/guard-policy-test.v1.schema.json");

static SCHEMA: LazyLock<DocumentSchema> = LazyLock::new(|| embedded_schema("guard-policy-test.v1", TEST_SCHEMA_SOURCE));

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestReport {
    /// The tests that were run, in order. Tests that violate the schema are not run.
    pub tests: Vec<TestResult>,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    pub name: String,
    pub passed: bool,
    pub calls: u64,
}

/// Runs the tests of a file in JSON or YAML. The calls are read by `read`, as an adapter reads requests.
pub fn test(policy: &Arc<Policy>, file: &Utf8Path, bytes: &[u8], read: &ReadSample<'_>) -> TestReport {
    let mut report = TestReport::default();
    let checked = SCHEMA.check_as(format(bytes), DocumentText { file, bytes, first_line: 1 }, |document| {
        let tests = document.get("tests").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut findings = Vec::new();
        for (index, test) in tests.iter().enumerate() {
            // The schema reports tests of another shape.
            if let Ok(test) = serde_json::from_value::<TestDocument>(test.clone()) {
                let (result, mut found) = run(policy, test, &format!("/tests/{index}"), read);
                report.tests.push(result);
                findings.append(&mut found);
            }
        }
        findings
    });
    TestReport { findings: checked.findings, ..report }
}

fn run(
    policy: &Arc<Policy>,
    test: TestDocument,
    pointer: &str,
    read: &ReadSample<'_>,
) -> (TestResult, Vec<RuleFinding>) {
    let mut engine = Engine::new(policy.clone(), &test.run.identity());
    let (mut findings, mut now, mut calls) = (Vec::new(), Duration::ZERO, 0);
    if !test.calls.iter().any(|call| call.expect.is_some()) {
        let message = "no call of the test has an `expect`, so the test checks nothing";
        let finding = RuleFinding::new(Code::MissingField, format!("{pointer}/calls"), message, "a call with `expect`");
        findings.push(finding.with_remedy("add the decision that you expect, such as `expect: {action: BLOCK}`"));
    }
    for (index, call) in test.calls.iter().enumerate() {
        let pointer = format!("{pointer}/calls/{index}");
        if let Some(at_ms) = call.at_ms {
            let at = Duration::from_millis(at_ms);
            if at < now {
                let message = "the call is before the call above it";
                let expected = format!("at least {} ms", now.as_millis());
                findings.push(RuleFinding::new(Code::WrongValue, format!("{pointer}/at_ms"), message, expected));
            }
            now = now.max(at);
        }
        let repeat = call.repeat.unwrap_or(1);
        calls += repeat;
        let request = match request(call, read) {
            Ok(request) => request,
            Err(problem) => {
                let message = format!("the guard refuses the call: {problem}");
                findings.push(RuleFinding::new(Code::WrongValue, pointer, message, "a call on which parsers agree"));
                continue;
            }
        };
        // One finding for each call, however often it is repeated.
        let failed = (1..=repeat).filter_map(|number| {
            let decision = decide(&mut engine, call, &request, now);
            mismatch(call.expect.as_ref()?, &decision, &pointer, (repeat > 1).then_some(number))
        });
        findings.extend(failed.collect::<Vec<_>>().into_iter().next());
    }
    (TestResult { name: test.name, passed: findings.is_empty(), calls }, findings)
}

fn request(call: &CallDocument, read: &ReadSample<'_>) -> Result<RequestFacts, String> {
    let args = Value::Object(call.args.clone()).to_string();
    let request = read(&SampleCall { tool_name: &call.tool, args: &args, is_too_large: call.large_args })?;
    Ok(RequestFacts { bytes_in: call.bytes_in.unwrap_or(request.bytes_in), ..request })
}

fn decide(engine: &mut Engine, call: &CallDocument, request: &RequestFacts, now: Duration) -> Decision {
    let (server_name, tool_name) = (call.server.as_str(), call.tool.as_str());
    let facts = CallFacts {
        server_name,
        tool_name,
        args: request.args(),
        args_hash: &request.args_hash,
        bytes_in: request.bytes_in,
        transport: Transport::McpStdio,
    };
    let decision = engine.decide(&facts, now);
    if decision.record.action == Action::Allow {
        let is_error = call.outcome == OutcomeDocument::Error;
        engine.record_outcome(&CallOutcome { server_name, tool_name, is_error }, now);
    }
    decision
}

fn mismatch(expect: &ExpectDocument, decision: &Decision, pointer: &str, number: Option<u64>) -> Option<RuleFinding> {
    let record = &decision.record;
    let decided = record.by_rules();
    let rule = |id: Option<&str>| id.map_or_else(|| "no rule".to_owned(), |id| format!("rule `{id}`"));
    let (field, expected) = if let Some(action) = expect.action.filter(|action| *action != decided.action) {
        ("action", action.name().to_owned())
    } else if !expect.rule_id.is_absent() && expect.rule_id.value() != decided.rule_id.as_ref() {
        ("rule_id", rule(expect.rule_id.value().map(String::as_str)))
    } else if let Some(code) = expect.reason_code.as_ref().filter(|code| **code != decided.reason_code) {
        ("reason_code", code.clone())
    } else if let Some(tags) = expect.tags.as_ref().filter(|tags| !is_same_set(tags, &decision.tags)) {
        ("tags", format!("the tags {}", list(tags)))
    } else {
        return None;
    };
    let about = number.map(|number| format!(" about call {number}")).unwrap_or_default();
    let by = decided.rule_id.as_deref().map_or_else(|| "by default".to_owned(), |id| format!("by rule `{id}`"));
    let tags = if field == "tags" { format!(", with the tags {}", list(&decision.tags)) } else { String::new() };
    let why = if decided.reason_code == POLICY_ERROR { format!(": {}", record.explain.summary) } else { String::new() };
    let message = format!("the decision{about} is {} {by} ({}){tags}{why}", decided.action.name(), decided.reason_code);
    let finding = RuleFinding::new(Code::WrongValue, format!("{pointer}/expect/{field}"), message, expected);
    Some(finding.with_remedy("correct the policy or the test; `guard policy explain` shows what each rule does"))
}

fn is_same_set(expected: &[String], actual: &[String]) -> bool {
    let has = |list: &[String], tag: &str| list.iter().any(|other| other.to_lowercase() == tag.to_lowercase());
    expected.iter().all(|tag| has(actual, tag)) && actual.iter().all(|tag| has(expected, tag))
}

fn list(tags: &[String]) -> String {
    if tags.is_empty() { "(none)".to_owned() } else { tags.join(", ") }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestDocument {
    name: String,
    #[serde(default)]
    run: RunDocument,
    calls: Vec<CallDocument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RunDocument {
    agent_id: Option<String>,
    client: AgentClient,
    env: WorkingEnvironment,
    principal: Option<String>,
    workload: Option<Workload>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallDocument {
    server: String,
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default)]
    large_args: bool,
    bytes_in: Option<u64>,
    at_ms: Option<u64>,
    repeat: Option<u64>,
    #[serde(default)]
    outcome: OutcomeDocument,
    expect: Option<ExpectDocument>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeDocument {
    #[default]
    Ok,
    Error,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ExpectDocument {
    action: Option<Action>,
    rule_id: Nullable<String>,
    reason_code: Option<String>,
    tags: Option<Vec<String>>,
}

impl RunDocument {
    fn identity(self) -> RunIdentity {
        RunIdentity {
            run_id: "test".to_owned(),
            agent_id: self.agent_id.unwrap_or_else(|| "unknown".to_owned()),
            client: self.client,
            env: self.env,
            principal: self.principal,
            workload: self.workload,
        }
    }
}
