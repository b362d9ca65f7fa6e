//! Agents that are programs: real processes that answer, fail, hang, or leave background processes.

use std::process::Command;
use std::time::{Duration, Instant};

use counterproof_runner::Settings;
use counterproof_validation::validate_path;
use serde_json::json;

use crate::kit::{Finished, cases, run_with};

/// The answer of a successful script.
const ANSWER: &str =
    r#"{"proposed_actions": [], "events": [], "final_output": {"content_type": "text", "content": "done"}}"#;

fn ask(script: &str, change: impl FnOnce(&mut Settings)) -> Finished {
    let command = format!("sh -c {} agent s3cret-argument", quote(script));
    let run = run_with("http://unused.example", &cases(["c1"]), |settings| {
        settings.target = command.parse::<counterproof_runner::AgentCommand>().unwrap().into();
        settings.retry.retries = 0;
        change(settings);
    });
    let report = validate_path(&run.summary.folder).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    for (name, bytes) in run.files() {
        assert!(!String::from_utf8_lossy(&bytes).contains("s3cret-argument"), "{name} contains an argument");
    }
    run
}

fn quote(script: &str) -> String {
    format!("'{}'", script.replace('\'', r"'\''"))
}

fn alive(marker: &str) -> bool {
    let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap().lines().any(|line| line == format!("sleep {marker}"))
}

#[test]
fn a_program_reads_the_request_from_stdin_and_answers_on_stdout() {
    // The answer contains the input, so that the request can be checked too.
    let script = r#"request=$(cat); printf '{"proposed_actions": [], "events": [], "final_output": {"content_type": "json", "content": %s}}' "$request""#;
    let run = ask(script, |_| ());
    let case = run.case();
    assert_eq!(case["status"], "ok", "{case:#}");
    let request = &case["final_output"]["content"];
    assert_eq!((&request["case_id"], &request["input"]["user"]), (&json!("c1"), &json!("Where is my money?")));
    assert_eq!(case["attempts"][0].get("status"), None, "a program has no HTTP status");
    assert_eq!(run.json("run.json")["base_url"], "cmd:sh");
    assert!(run.summary.reached);
}

#[test]
fn a_program_that_does_not_read_its_input_can_answer() {
    assert_eq!(ask(&format!("exec 0<&-; echo '{ANSWER}'"), |_| ()).case()["status"], "ok");
}

#[test]
fn a_nonzero_exit_code_is_a_failure_with_both_outputs_saved() {
    let run = ask("echo half; echo broken >&2; exit 7", |_| ());
    let failure = run.failure("other", "agent_exit");
    assert_eq!((&failure["exit_code"], &failure["url"]), (&json!(7), &json!("cmd:sh")));
    assert_eq!((&failure["body_snippet"], &failure["status"]), (&json!("half\n"), &json!(null)));
    let stderr = failure["stderr_saved_to"].as_str().unwrap();
    assert_eq!(run.bytes(stderr), b"broken\n");
}

#[test]
fn a_signal_is_a_separate_failure() {
    assert_eq!(ask("kill -SEGV $$", |_| ()).failure("other", "agent_signal")["signal"], 11);
}

#[test]
fn unparsable_output_has_separate_reasons() {
    let failure = ask("echo hello", |_| ()).failure("invalid_json", "not_json");
    let message = failure["error_message"].as_str().unwrap();
    assert!(message.ends_with("; standard output must contain the answer only"), "{message}");
    let failure = ask("true", |_| ()).failure("invalid_json", "empty_body");
    assert_eq!(failure["error_message"], "the program printed nothing on standard output");
    ask("echo '[]'", |_| ()).failure("schema_mismatch", "not_an_object");
    ask("echo '{}'", |_| ()).failure("schema_mismatch", "contract_violated");
}

#[test]
fn a_program_that_cannot_be_started_was_not_reached() {
    let run = run_with("http://unused.example", &cases(["c1"]), |settings| {
        settings.target = "/nowhere/agent".parse::<counterproof_runner::AgentCommand>().unwrap().into();
    });
    let failure = run.failure("other", "agent_not_started");
    assert_eq!((&failure["url"], &failure["attempt"]), (&json!("cmd:agent"), &json!(1)));
    assert!(!run.summary.reached);
}

#[test]
fn a_timeout_kills_the_process_group() {
    let start = Instant::now();
    let run = ask("echo half; sleep 4711 & sleep 4711", |settings| settings.timeout = Duration::from_millis(400));
    let failure = run.failure("timeout", "response_timeout");
    assert_eq!(failure["body_snippet"], "half\n");
    assert_eq!(run.meta()["truncated"], true);
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(!alive("4711"));
}

#[test]
fn background_processes_do_not_delay_the_answer() {
    let start = Instant::now();
    let run = ask(&format!("sleep 4712 & echo '{ANSWER}'"), |_| ());
    assert_eq!(run.case()["status"], "ok");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(!alive("4712"));
}

#[test]
fn output_over_the_limit_is_truncated_and_the_program_is_stopped() {
    let run = ask("yes", |settings| settings.limits.body = 10_000);
    let failure = run.failure("other", "body_too_large");
    assert_eq!(run.bytes(failure["full_body_saved_to"].as_str().unwrap()).len(), 10_000);
}

#[test]
fn output_too_long_for_an_answer_is_saved_in_full() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' x";
    let run = ask(script, |settings| (settings.limits.body, settings.limits.answer) = (4_000_000, 1_000_000));
    let failure = run.failure("other", "body_too_large");
    assert_eq!(run.bytes(failure["full_body_saved_to"].as_str().unwrap()).len(), 3_000_000);
    assert_eq!(run.meta()["truncated"], false);
}

#[test]
fn a_program_may_be_silent_for_as_long_as_an_attempt_takes() {
    let run = ask(&format!("sleep 0.3; echo '{ANSWER}'; sleep 0.3"), |settings| {
        settings.phases.first_byte = Some(Duration::from_millis(20));
        settings.phases.idle = Duration::from_millis(20);
    });
    assert_eq!(run.case()["status"], "ok");
    assert_eq!(run.json("run.json").get("phase_timeouts_ms"), None);
}

#[test]
fn a_large_standard_error_does_not_block_the_program() {
    let script = format!("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo '{ANSWER}'");
    assert_eq!(ask(&script, |_| ()).case()["status"], "ok");
}

#[test]
fn processes_in_another_session_are_killed_too() {
    let run = ask(&format!("setsid sleep 4713 & sleep 0.2; echo '{ANSWER}'"), |_| ());
    assert_eq!(run.case()["status"], "ok");
    assert!(!alive("4713"));
}

#[test]
fn an_unread_request_does_not_block_the_run() {
    let long = "x".repeat(1_000_000);
    let mut case = cases(["c1"]);
    case[0].input.user = long;
    let command = format!("sh -c {}", quote(&format!("echo '{ANSWER}'")));
    let run = run_with("http://unused.example", &case, |settings| {
        settings.target = command.parse::<counterproof_runner::AgentCommand>().unwrap().into();
    });
    assert_eq!(run.case()["status"], "ok");
}

#[test]
fn no_program_starts_without_a_supervisor() {
    let run = ask("true", |settings| settings.supervisor = None);
    let failure = run.failure("other", "agent_not_started");
    assert!(failure["error_message"].as_str().unwrap().contains("counterproof_safe_run::enter"), "{failure:#}");
}
