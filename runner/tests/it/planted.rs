//! Secrets in every field of a request and of an answer, and at the end of truncated bodies: no byte of a run folder contains them.

use std::time::Duration;

use counterproof_artifact::RiskLevel;
use counterproof_cases::CaseSpec;
use counterproof_runner::{AgentCommand, Environment, Protocol, RunError, Secret, Settings, Silent, run};
use serde_json::{Value, json};

use crate::kit::{Agent, Finished, Reaction, case, cases, ok, response, run_with};
use crate::secrets::{KEYS, NAMED, PASSWORD, QUERY, TOKEN, all, assert_clean, forms, run_with_secrets};

/// Returns a text with every secret in every searched form.
fn every() -> String {
    let named = [TOKEN, NAMED, PASSWORD, QUERY].into_iter().flat_map(forms);
    named.chain(KEYS.map(str::to_owned)).collect::<Vec<_>>().join(" ; ")
}

/// Returns a case with a secret in each of its fields.
fn planted() -> CaseSpec {
    let mut planted = case("c1");
    planted.title = Some(NAMED.to_owned());
    planted.input.user = every();
    planted.input.context = Some(json!({"deep": [{(TOKEN): every()}], "number": 1}));
    planted.input.extra.insert(format!("field-{PASSWORD}"), every().into());
    planted
}

/// Sets every option of the OpenAI protocols to a value with a secret.
fn plant_options(settings: &mut Settings) {
    settings.agent.model = Some(format!("model-{NAMED}"));
    settings.agent.system_prompt = Some(every());
    settings.agent.tools = Some(vec![json!({"type": "function", "function": {"name": every()}})]);
    let fields = json!({"metadata": {"key": every()}});
    settings.agent.set_request(fields.as_object().cloned().unwrap()).unwrap();
    settings.agent.risk = [(format!("tool-{NAMED}"), RiskLevel::High)].into_iter().collect();
}

fn saved_request_document(run: &Finished) -> Value {
    run.json("assets/c1.request.json")
}

#[test]
fn a_saved_request_has_no_secrets_in_its_fields() {
    for protocol in Protocol::ALL {
        let agent = Agent::sending(response("500 No", "", b""));
        let run = run_with_secrets(&agent, &[planted()], |settings| {
            settings.protocol = protocol;
            settings.save_requests = true;
            plant_options(settings);
        });
        let sent = agent.requests().remove(0).body.to_string();
        assert!(sent.contains("s3cret"), "{protocol} sends the secrets");
        assert_eq!(saved_request_document(&run)["masked"], true);
        assert_clean(&run);
    }
}

#[test]
fn an_openai_answer_is_saved_without_the_secrets_in_its_fields() {
    let arguments = json!({(TOKEN): every()}).to_string();
    let chat = json!({
        "id": TOKEN, "object": NAMED, "created": 1, "model": PASSWORD, "service_tier": QUERY, "system_fingerprint": KEYS[0],
        "usage": {(NAMED): every()},
        "choices": [
            {"index": 0, "finish_reason": KEYS[2], "message": {"role": "assistant", "content": every(), "tool_calls": [
                {"id": TOKEN, "type": "function", "function": {"name": every(), "arguments": arguments}},
                {"id": "call_2", "type": "function", "function": {"name": "t", "arguments": every()}},
            ]}},
            {"index": 1, "message": {"content": every()}},
        ],
    });
    let responses = json!({
        "id": TOKEN, "status": "completed", "model": PASSWORD, "incomplete_details": {"reason": every()},
        "output": [
            {"type": every(), (TOKEN): every()},
            {"type": "message", "content": [{"type": "output_text", "text": every()}]},
            {"type": "function_call", "call_id": NAMED, "name": every(), "arguments": arguments},
            {"type": "mcp_call", "id": KEYS[1], "name": "n", "server_label": every(), "arguments": every(), "output": every()},
        ],
    });
    for (protocol, body) in [(Protocol::OpenaiChat, chat), (Protocol::OpenaiResponses, responses)] {
        let run = run_with_secrets(&Agent::sending(ok(&body)), &[planted()], |settings| {
            settings.protocol = protocol;
            settings.save_requests = true;
            plant_options(settings);
        });
        assert_eq!(run.case()["status"], "ok", "{protocol}: {:#}", run.case());
        assert_clean(&run);
        // An error in a response with a successful status must not be quoted either.
        let error = json!({"error": {"message": every(), "code": KEYS[0], "type": TOKEN}});
        let run = run_with_secrets(&Agent::sending(ok(&error)), &[planted()], |settings| settings.protocol = protocol);
        run.failure("other", "agent_error");
        assert_clean(&run);
    }
}

#[cfg(unix)]
#[test]
fn a_program_run_has_no_secrets_from_its_input_or_output() {
    let answers = r#"request=$(cat); echo "$@" "$request" >&2; printf '{"proposed_actions": [], "events": [], "final_output": {"content_type": "json", "content": %s}}' "$request""#;
    let fails = r#"request=$(cat); echo "$@" "$request" | tee /dev/stderr; exit 3"#;
    let hangs = r#"request=$(cat); echo "$@" "$request" | tee /dev/stderr; sleep 5"#;
    for (script, status) in [(answers, "ok"), (fails, "runner_error"), (hangs, "runner_error")] {
        let words = ["sh", "-c", script, "agent"].into_iter().chain(all());
        let command: AgentCommand = shell_words::join(words).parse().unwrap();
        let run = run_with_secrets(&Agent::sending(""), &[planted()], |settings| {
            // The URL and headers of a server are secrets implicitly. A program has neither, so its secrets are named here.
            settings.secrets.extend([TOKEN, PASSWORD, QUERY].map(|secret| Secret::from(secret.to_owned())));
            settings.target = command.into();
            settings.save_requests = true;
            settings.retry.retries = 0;
            settings.timeout = Duration::from_millis(1500);
        });
        assert_eq!(run.case()["status"], status, "{:#}", run.case());
        assert_clean(&run);
    }
}

#[test]
fn an_id_that_contains_a_named_secret_is_rejected_before_any_write() {
    let folder = tempfile::tempdir().unwrap();
    let out = camino::Utf8Path::from_path(folder.path()).unwrap();
    for (run_id, case_id) in [("r1", "refund-s3cret-001"), ("nightly-s3cret", "c1")] {
        let url = "http://localhost:9".parse().unwrap();
        let mut settings = Settings::new(
            run_id.parse().unwrap(),
            counterproof_artifact::Side::New,
            url,
            "c.json".into(),
            out.join("runs"),
        );
        settings.secrets.push(Secret::from("s3cret".to_owned()));
        let error = run(&settings, &[case(case_id)], Environment::from_system(), &mut Silent).unwrap_err();
        assert!(matches!(error, RunError::SecretRunId | RunError::SecretCaseId { .. }), "{error:?}");
        assert!(!format!("{error}").contains("s3cret"), "{error}");
        assert!(!out.join("runs").exists());
    }
}

/// The number of received body bytes in the test below.
const COME: usize = 100;

/// Returns a body that is truncated after this many bytes of the token, and its expected saved form.
fn truncated_after(of_token: usize) -> (String, String) {
    let before = ".".repeat(COME - of_token);
    let kept = if of_token < 4 { before.clone() } else { format!("{before}[redacted]") };
    (format!("{before}{TOKEN} and more"), kept)
}

/// Runs a case for each possible number of received token bytes, and checks each saved body.
fn assert_cut(what: &str, reaction: impl Fn(&str) -> Reaction, change: impl FnOnce(&mut Settings)) {
    let (bodies, kept): (Vec<_>, Vec<_>) = (1..=TOKEN.len()).map(truncated_after).unzip();
    let cases: Vec<_> = (1..=TOKEN.len()).map(|of_token| case(&format!("c{of_token}"))).collect();
    let agent = Agent::new(bodies.iter().map(|body| reaction(body)).collect::<Vec<_>>());
    let run = run_with(&agent.url(), &cases, |settings| {
        settings.retry.retries = 0;
        settings.secrets.push(Secret::from(TOKEN.to_owned()));
        change(settings);
    });
    for (case, expected) in cases.iter().zip(kept) {
        let failure = run.json(&format!("{}.json", case.id))["runner_failure"].clone();
        assert_eq!(run.json(failure["full_body_meta_saved_to"].as_str().unwrap())["truncated"], true);
        let kept = String::from_utf8(run.bytes(failure["full_body_saved_to"].as_str().unwrap())).unwrap();
        assert_eq!(kept, expected, "{what}: {}", case.id);
        assert_eq!(failure["body_snippet"], expected);
        assert_eq!(failure.get("redactions_applied").is_some(), kept.contains("[redacted]"));
    }
}

#[test]
fn a_body_truncated_anywhere_within_a_secret_contains_no_part_of_it() {
    for status in ["200 OK", "500 No"] {
        let start =
            |body: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 999\r\n\r\n{}", &body[..COME]).into_bytes();
        let whole = |body: &str| Reaction::Send(response(status, "", body.as_bytes()));
        assert_cut("the connection closes", |body| Reaction::Send(start(body)), |_| ());
        assert_cut("the limit of bodies", whole, |settings| settings.limits.body = COME);
        // Streamed to disk from the first byte.
        assert_cut("the limit, on disk", whole, |settings| (settings.limits.body, settings.limits.answer) = (COME, 0));
        assert_cut(
            "a timeout",
            |body| Reaction::Stall(start(body)),
            |settings| {
                settings.phases.idle = Duration::from_millis(100);
            },
        );
    }
}

#[cfg(unix)]
#[test]
fn output_truncated_within_a_secret_contains_no_part_of_it() {
    let script = format!("printf '%s' 'the key is: {}' | tee /dev/stderr; sleep 5", &TOKEN[..9]);
    let command: AgentCommand = shell_words::join(["sh", "-c", &script]).parse().unwrap();
    let run = run_with("http://unused.example", &cases(["c1"]), |settings| {
        settings.target = command.into();
        settings.secrets.push(Secret::from(TOKEN.to_owned()));
        settings.retry.retries = 0;
        settings.timeout = Duration::from_millis(700);
    });
    let failure = run.failure("timeout", "response_timeout");
    assert_eq!(failure["body_snippet"], "the key is: [redacted]");
    assert_eq!(run.bytes(failure["stderr_saved_to"].as_str().unwrap()), b"the key is: [redacted]");
}
