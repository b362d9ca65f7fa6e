//! Tests of the session with a policy, and the sink that other tests use too.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{
    Action, AgentClient, CallEnd, CallError, CallStatus, ErrorClass, EventBody, RunEnd, RunStatus, Transport,
    WorkingEnvironment,
};
use counterproof_redaction::Redactor;
use serde_json::{Value, json};

use super::*;
use crate::identity::RunIdentity;
use crate::policy::Policy;

/// Stores events in memory, until it is told to fail.
#[derive(Default)]
pub(crate) struct MemorySink {
    events: Mutex<Vec<EventBody>>,
    fails: AtomicBool,
}

impl EventSink for MemorySink {
    fn record(&self, body: EventBody) -> Result<(), SinkError> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(SinkError { message: "disk full".to_owned() });
        }
        self.events.lock().unwrap().push(body);
        Ok(())
    }
}

impl MemorySink {
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |body| serde_json::to_value(body).unwrap()["type"].as_str().unwrap().to_owned();
        self.events.lock().unwrap().iter().map(name).collect()
    }

    pub(crate) fn ends(&self) -> Vec<CallEnd> {
        let events = self.events.lock().unwrap();
        let ends = events.iter().filter_map(|event| match event {
            EventBody::ToolCallEnd(end) => Some(end.clone()),
            _ => None,
        });
        ends.collect()
    }

    fn run_end(&self) -> RunEnd {
        match self.events.lock().unwrap().last() {
            Some(EventBody::RunEnd { run }) => run.clone(),
            other => panic!("the last event is {other:?}"),
        }
    }

    fn text(&self) -> String {
        serde_json::to_string(&*self.events.lock().unwrap()).unwrap()
    }
}

/// A session with a policy in YAML; none for the policy that only observes.
pub(crate) fn session(policy: Option<&str>, secrets: &[&str]) -> (Session, Arc<MemorySink>) {
    session_in(policy, secrets, RunMembership::None)
}

fn session_in(policy: Option<&str>, secrets: &[&str], run: RunMembership) -> (Session, Arc<MemorySink>) {
    let policy = policy.map_or_else(Policy::observe_only, |text| {
        Policy::parse("policy.yaml".into(), text.as_bytes()).unwrap_or_else(|findings| panic!("{findings:?}"))
    });
    let sink = Arc::new(MemorySink::default());
    let options = SessionOptions {
        server_name: "git".to_owned(),
        transport: Transport::McpStdio,
        identity: RunIdentity {
            run_id: "r1".to_owned(),
            agent_id: "a1".to_owned(),
            client: AgentClient::Custom,
            env: WorkingEnvironment::Dev,
            principal: None,
            workload: None,
        },
        policy: Arc::new(policy),
        redactor: Redactor::new(secrets.iter().copied()).unwrap(),
        sink: sink.clone(),
        warn: Box::new(|_| {}),
        meta: serde_json::Map::new(),
        secrets: Vec::new(),
        run,
    };
    (Session::start(options).unwrap(), sink)
}

pub(crate) const DENY_PUSH: &str = "
policy_id: p
version: '1'
mode: guardrails
rules:
  - {rule_id: no-push, kind: deny, match: {tool_name: {glob: [push]}}, effect: {message: pushing is not allowed}}
  - {rule_id: stop, kind: deny, match: {tool_name: {glob: [wipe]}}, effect: {action: TERMINATE_RUN, message: stop}}
";

fn begin(session: &Session, tool: &str, args: &Value) -> Admission {
    begin_retry(session, tool, args, None)
}

fn begin_retry(session: &Session, tool: &str, args: &Value, retry: Option<Retry<'_>>) -> Admission {
    let text = Cow::Owned(args.to_string());
    let args = IncomingArgs::Inspected { value: args, text };
    session.begin(&IncomingCall { tool_name: tool, args, bytes_in: 10, retry })
}

fn ok(result: &[u8]) -> CallResult<'_> {
    CallResult { status: CallStatus::Ok, error: None, bytes_out: 7, result: ResultBytes::Inspected(result) }
}

const NO_ANSWER: OpenCallsEnd =
    OpenCallsEnd { status: CallStatus::Error, class: ErrorClass::Transport, message: "no answer" };

fn forwarded(verdict: Admission) -> counterproof_ledger::event::CallId {
    match verdict {
        Admission::Forward(call) => call,
        Admission::Refuse(refusal) => panic!("{refusal:?}"),
    }
}

fn refused(verdict: Admission) -> Refusal {
    match verdict {
        Admission::Refuse(refusal) => *refusal,
        Admission::Forward(call) => panic!("{call} was forwarded"),
    }
}

#[test]
fn a_call_has_a_start_a_decision_and_an_end_and_the_run_end_is_last() {
    let (session, sink) = session(None, &[]);
    let call = forwarded(begin(&session, "status", &json!({})));
    session.end(&call, ok(b"{}"));
    session.end(&call, ok(b"{}"));
    session.finish(RunStatus::Succeeded, NO_ANSWER);
    session.finish(RunStatus::Failed, NO_ANSWER);
    assert_eq!(sink.names(), ["run_start", "tool_call_start", "tool_call_decision", "tool_call_end", "run_end"]);
    assert_eq!(sink.run_end().status, RunStatus::Succeeded);
}

#[test]
fn the_summary_counts_ends_refusals_and_errors() {
    let (session, sink) = session(Some(DENY_PUSH), &[]);
    for _ in 0..3 {
        let call = forwarded(begin(&session, "status", &json!({})));
        session.end(&call, ok(b"{}"));
    }
    for _ in 0..2 {
        session.refused(&refused(begin(&session, "push", &json!({}))), 50);
    }
    session.finish(RunStatus::Succeeded, NO_ANSWER);
    let summary = sink.run_end().summary;
    assert_eq!((summary.calls_total, summary.calls_allowed, summary.calls_blocked), (5, 3, 2));
    assert_eq!((summary.calls_throttled, summary.errors_total), (0, 2));
}

#[test]
fn calls_without_an_answer_end_with_the_run() {
    let (session, sink) = session(None, &[]);
    forwarded(begin(&session, "status", &json!({})));
    assert_eq!(session.open_calls(), 1);
    session.finish(RunStatus::Failed, NO_ANSWER);
    let ends = sink.ends();
    assert_eq!((ends[0].status, ends[0].error.as_ref().unwrap().class), (CallStatus::Error, ErrorClass::Transport));
    assert_eq!((sink.run_end().summary.calls_total, sink.run_end().summary.errors_total), (1, 1));
}

#[test]
fn after_the_end_of_the_run_nothing_is_forwarded_or_recorded() {
    let (session, sink) = session(None, &[]);
    session.finish(RunStatus::Succeeded, NO_ANSWER);
    refused(begin(&session, "status", &json!({})));
    assert_eq!(sink.names(), ["run_start", "run_end"]);
}

#[test]
fn a_rule_that_terminates_the_run_refuses_every_later_call() {
    let (session, _) = session(Some(DENY_PUSH), &[]);
    assert_eq!(session.termination(), None);
    assert_eq!(refused(begin(&session, "wipe", &json!({}))).decision.action, Action::TerminateRun);
    assert_eq!(refused(begin(&session, "status", &json!({}))).decision.action, Action::TerminateRun);
    assert!(session.termination().is_some());
}

#[test]
fn a_retry_with_the_state_of_the_server_is_the_same_call() {
    let (session, sink) = session(None, &[]);
    let call = forwarded(begin(&session, "ask", &json!({"a": 1})));
    session.wait_for_input(&call, Some("s1".to_owned()));
    let retry = |state| Some(Retry { request_state: state });
    let others = [
        begin_retry(&session, "ask", &json!({"a": 2}), retry(Some("s1"))),
        begin_retry(&session, "ask", &json!({"a": 1}), retry(Some("s2"))),
        begin_retry(&session, "ask", &json!({"a": 1}), None),
        begin_retry(&session, "other", &json!({"a": 1}), retry(Some("s1"))),
    ];
    assert!(others.into_iter().all(|other| forwarded(other) != call), "each of them is a new call");
    assert_eq!(forwarded(begin_retry(&session, "ask", &json!({"a": 1}), retry(Some("s1")))), call);
    assert_ne!(forwarded(begin_retry(&session, "ask", &json!({"a": 1}), retry(Some("s1")))), call, "only once");
    session.end(&call, ok(b"{}"));
    assert_eq!(sink.ends().len(), 1);
}

#[test]
fn an_ambiguous_request_continues_no_call() {
    let (session, _) = session(None, &[]);
    let call = forwarded(begin(&session, "ask", &json!({})));
    session.wait_for_input(&call, None);
    let hash = Sha256Digest::from_bytes(b"{}");
    let args = IncomingArgs::Ambiguous { hash, problem: "twice".to_owned() };
    let retry = Some(Retry { request_state: None });
    refused(session.begin(&IncomingCall { tool_name: "ask", args, bytes_in: 1, retry }));
    assert_eq!(forwarded(begin_retry(&session, "ask", &json!({}), Some(Retry { request_state: None }))), call);
}

#[test]
fn a_call_is_continued_a_limited_number_of_times() {
    let policy = "
policy_id: p
version: '1'
mode: guardrails
rules:
  - {rule_id: once, kind: budget, effect: {budget: {limit_calls: 1}}}
";
    let (session, sink) = session(Some(policy), &[]);
    let call = forwarded(begin(&session, "ask", &json!({})));
    let continued = (0..1000).find(|_| {
        session.wait_for_input(&call, None);
        !matches!(begin_retry(&session, "ask", &json!({}), Some(Retry { request_state: None })), Admission::Forward(_))
    });
    assert_eq!(continued, Some(100));
    assert!(sink.text().contains("BUDGET_EXCEEDED"));
}

#[test]
fn a_refused_call_ends_before_the_run_does() {
    let (session, sink) = session(Some(DENY_PUSH), &[]);
    let refusal = refused(begin(&session, "push", &json!({})));
    session.finish(RunStatus::Cancelled, NO_ANSWER);
    session.refused(&refusal, 50);
    let ends = sink.ends();
    assert_eq!((ends.len(), ends[0].error.as_ref().unwrap().class), (1, ErrorClass::PolicyBlock));
    let summary = sink.run_end().summary;
    assert_eq!((summary.calls_total, summary.calls_blocked), (1, 1));
}

#[test]
fn keys_and_names_of_tools_are_redacted_and_cut() {
    let secret = "hunter2-hunter2";
    let (session, sink) = session(None, &[secret]);
    forwarded(begin(&session, &format!("tool-{secret}"), &json!({})));
    forwarded(begin(&session, &"x".repeat(100_000), &json!({})));
    let problem = format!("the key `{secret}{}` occurs twice", "y".repeat(100_000));
    let args = IncomingArgs::Ambiguous { hash: Sha256Digest::from_bytes(b"x"), problem };
    let refusal = refused(session.begin(&IncomingCall { tool_name: "a", args, bytes_in: 1, retry: None }));
    assert!(refusal.decision.explain.summary.len() < 1000 && !refusal.decision.explain.summary.contains(secret));
    assert!(!sink.text().contains(secret) && sink.text().len() < 20_000);
}

#[test]
fn secrets_are_masked_in_previews_and_errors() {
    let secret = "hunter2-hunter2";
    let (session, sink) = session(Some(DENY_PUSH), &[secret]);
    let call = forwarded(begin(&session, "status", &json!({"token": secret})));
    let message = format!("failed with {secret}\n  at stack");
    let error = CallError { class: ErrorClass::UpstreamError, message, code: None, retryable: None };
    let result = ResultBytes::Inspected(br#"{"token":"aHVudGVyMi1odW50ZXIy"}"#);
    session.end(&call, CallResult { status: CallStatus::Error, error: Some(error), bytes_out: 1, result });
    session.refused(&refused(begin(&session, "push", &json!({"token": secret}))), 50);
    let text = sink.text();
    assert!(!text.contains(secret) && !text.contains("aHVudGVyMi1odW50ZXIy") && !text.contains("stack"), "{text}");
}

#[test]
fn large_arguments_and_results_have_a_hash_and_no_preview() {
    let (session, sink) = session(None, &[]);
    let hash = Sha256Digest::from_bytes(b"large");
    let args = IncomingArgs::Uninspected { hash, text: None };
    let call = session.begin(&IncomingCall { tool_name: "write", args, bytes_in: 9, retry: None });
    let result = ResultBytes::TooLarge { hash };
    let result = CallResult { status: CallStatus::Ok, error: None, bytes_out: 9, result };
    session.end(&forwarded(call), result);
    let events = sink.events.lock().unwrap();
    let EventBody::ToolCallStart { call } = &events[1] else { panic!() };
    assert_eq!((call.args_stream_hash, call.call.args_hash), (Some(hash), hash));
    assert_eq!((call.preview.truncated, call.preview.args_preview.as_deref()), (true, Some(TRUNCATED)));
    let EventBody::ToolCallEnd(end) = &events[3] else { panic!() };
    assert_eq!((end.result_stream_hash, end.preview.truncated), (Some(hash), true));
}

#[test]
fn previews_are_cut_at_a_character() {
    let (session, sink) = session(None, &[]);
    let args = json!({"text": "é".repeat(MAX_PREVIEW_BYTES)});
    forwarded(begin(&session, "write", &args));
    let events = sink.events.lock().unwrap();
    let EventBody::ToolCallStart { call } = &events[1] else { panic!() };
    let preview = call.preview.args_preview.as_ref().unwrap();
    assert!(call.preview.truncated && preview.len() <= MAX_PREVIEW_BYTES && preview.len() > MAX_PREVIEW_BYTES - 4);
    assert!(preview.ends_with('é'), "no half character");
}

#[test]
fn a_result_whose_preview_is_cut_is_identified_by_its_hash() {
    let (session, sink) = session(None, &[]);
    let [whole, cut] = [0, 1].map(|more| vec![b'x'; MAX_PREVIEW_BYTES + more]);
    for result in [&whole, &cut] {
        let call = forwarded(begin(&session, "read", &json!({})));
        session.end(&call, ok(result));
    }
    let hashes: Vec<_> = sink.ends().into_iter().map(|end| end.result_stream_hash).collect();
    assert_eq!(hashes, [None, Some(Sha256Digest::from_bytes(&cut))]);
}

#[test]
fn calls_that_cannot_be_recorded_are_refused_unless_the_policy_fails_open() {
    let open = format!("{DENY_PUSH}defaults: {{decision_on_error: ALLOW}}\n");
    let closed = format!("{DENY_PUSH}defaults: {{decision_on_error: BLOCK}}\n");
    for (policy, is_forwarded) in [(None, true), (Some(&*open), true), (Some(&*closed), false)] {
        let (session, sink) = session(policy, &[]);
        sink.fails.store(true, Ordering::Relaxed);
        let verdict = begin(&session, "status", &json!({}));
        assert_eq!(matches!(verdict, Admission::Forward(_)), is_forwarded, "{policy:?}");
        if let Admission::Refuse(refusal) = verdict {
            assert_eq!(refusal.decision.explain.reason_code, "RECORDING_FAILED");
        }
    }
}

#[test]
fn a_request_on_which_parsers_disagree_is_refused_in_every_mode() {
    let (session, sink) = session(None, &[]);
    let args = IncomingArgs::Ambiguous { hash: Sha256Digest::from_bytes(b"x"), problem: "twice".to_owned() };
    let refusal = refused(session.begin(&IncomingCall { tool_name: "a", args, bytes_in: 1, retry: None }));
    assert_eq!(refusal.decision.explain.reason_code, "AMBIGUOUS_REQUEST");
    session.refused(&refusal, 60);
    assert_eq!(sink.ends()[0].bytes_out, 60);
}

#[test]
fn the_rules_of_the_policy_are_recorded_without_secrets() {
    let secret = "hunter2-hunter2";
    let (_session, sink) = session(Some(&DENY_PUSH.replace("pushing", secret)), &[secret]);
    let events = sink.events.lock().unwrap();
    let loaded = events.iter().find_map(|event| match event {
        EventBody::PolicyLoaded { policy } => policy.rules.clone(),
        _ => None,
    });
    let rules = loaded.unwrap();
    assert_eq!(rules[0]["rule_id"], "no-push");
    assert_eq!(rules[0]["effect"]["message"], "[redacted] is not allowed");
}

#[test]
fn calls_beyond_the_largest_number_of_open_ones_are_refused() {
    let (session, _) = session(Some(DENY_PUSH), &[]);
    let first = forwarded(begin(&session, "status", &json!({})));
    for _ in 1..super::run_session::MAX_OPEN_CALLS {
        forwarded(begin(&session, "status", &json!({})));
    }
    let refusal = refused(begin(&session, "status", &json!({})));
    assert_eq!(refusal.decision.explain.reason_code, "TOO_MANY_OPEN_CALLS");
    session.end(&first, ok(b"{}"));
    forwarded(begin(&session, "status", &json!({})));
}

#[test]
fn a_secret_in_a_message_of_the_policy_is_masked() {
    let policy = "
policy_id: p
version: '1'
mode: control
rules:
  - rule_id: hint
    kind: deny
    match: {tool_name: {glob: [push]}}
    effect: {action: REJECT_WITH_HINT, message: use hunter2-secret, hint_text: try hunter2-secret, suggested_args: {key: hunter2-secret}}
  - {rule_id: stop, kind: deny, match: {tool_name: {glob: [wipe]}}, effect: {action: TERMINATE_RUN, message: no hunter2-secret}}
";
    let (session, sink) = session(Some(policy), &["hunter2-secret"]);
    let mut answers = String::new();
    for tool in ["push", "wipe", "push"] {
        match begin(&session, tool, &json!({})) {
            Admission::Refuse(refusal) => {
                session.refused(&refusal, 1);
                answers += &serde_json::to_string(&refusal.decision).unwrap();
            }
            Admission::Forward(_) => panic!("the call is refused"),
        }
    }
    let termination = format!("{:?}", session.termination());
    for text in [&answers, &sink.text(), &termination] {
        assert!(!text.contains("hunter2") && text.contains("[redacted]"), "{text}");
    }
    assert!(answers.contains(r#""key":"[redacted]""#), "{answers}");
}

#[test]
fn without_a_policy_the_oldest_of_too_many_open_calls_ends() {
    let (session, sink) = session(None, &[]);
    let first = forwarded(begin(&session, "status", &json!({})));
    for _ in 0..super::run_session::MAX_OPEN_CALLS {
        forwarded(begin(&session, "status", &json!({})));
    }
    assert_eq!(session.open_calls(), super::run_session::MAX_OPEN_CALLS);
    assert_eq!(sink.ends().iter().map(|end| &end.call.call_id).collect::<Vec<_>>(), [&first]);
}

#[test]
fn calls_of_a_run_that_cannot_be_reached_are_refused_unless_the_policy_observes() {
    for (policy, is_refused) in [(Some(DENY_PUSH), true), (None, false)] {
        let (session, _) = session_in(policy, &[], RunMembership::Unreachable);
        match begin(&session, "status", &json!({})) {
            Admission::Refuse(refusal) => {
                assert_eq!(refusal.decision.explain.reason_code, "RUN_UNREACHABLE");
                assert!(is_refused);
            }
            Admission::Forward(_) => assert!(!is_refused),
        }
    }
}
