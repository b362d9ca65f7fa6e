//! Statuses other than 2xx, and the retries after them.

use serde_json::json;

use crate::kit::{Agent, Reaction, answer, cases, ok, response, run_once, run_with};

#[test]
fn each_status_has_a_reason_and_its_body_is_saved() {
    let named = [
        ("302 Found", "redirect"),
        ("400 Bad Request", "client_error"),
        ("404 Not Found", "client_error"),
        ("408 Request Timeout", "client_error"),
        ("429 Too Many Requests", "rate_limited"),
        ("500 Internal Server Error", "server_error"),
        ("503 Service Unavailable", "server_error"),
    ];
    for (status, name) in named {
        let run = run_once(&Agent::sending(response(status, "content-type: text/html\r\n", b"<h1>no</h1>")));
        let failure = run.failure("http_error", name);
        assert_eq!(failure["status"].to_string(), status[..3]);
        assert_eq!(failure["status_text"], status[4..]);
        assert_eq!(failure["body_snippet"], "<h1>no</h1>");
        assert_eq!(failure["full_body_saved_to"], "assets/c1.attempt1.body.txt");
        assert_eq!(run.meta()["content_type"], "text/html");
        assert_eq!(run.meta()["truncated"], false);
    }
}

#[test]
fn a_failure_without_a_body_has_neither_snippet_nor_assets() {
    let run = run_once(&Agent::sending(response("500 Internal Server Error", "", b"")));
    let failure = run.failure("http_error", "server_error");
    assert_eq!(failure["body_snippet"], json!(null));
    assert!(!run.path("assets").exists());
}

#[test]
fn a_redirect_is_not_followed_and_its_target_is_recorded_without_the_query() {
    let elsewhere = Agent::sending(ok(&answer()));
    let location = format!("location: {}/login?token=s3cret\r\n", elsewhere.url());
    let run = run_once(&Agent::sending(response("307 Temporary Redirect", &location, b"moved")));
    run.failure("http_error", "redirect");
    assert_eq!(run.meta()["headers"]["location"], format!("{}/login", elsewhere.url()));
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn a_failed_attempt_before_a_success_is_recorded_with_its_body() {
    let agent = Agent::new([
        Reaction::Send(response("429 Too Many Requests", "retry-after: 1\r\n", b"slow down")),
        Reaction::Send(response("502 Bad Gateway", "", b"")),
        Reaction::Send(ok(&answer())),
    ]);
    let run = run_with(&agent.url(), &cases(["c1"]), |_| {});
    let case = run.case();
    assert_eq!(case["status"], "ok");
    let attempts = case["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 3);
    assert_eq!((&attempts[0]["error_name"], &attempts[0]["status"]), (&json!("rate_limited"), &json!(429)));
    assert_eq!(attempts[0]["retry_delay_ms"], 20, "what the agent asks for, up to the cap");
    assert_eq!(attempts[0]["full_body_saved_to"], "assets/c1.attempt1.body.txt");
    assert_eq!((&attempts[1]["error_class"], &attempts[1]["status"]), (&json!("http_error"), &json!(502)));
    assert_eq!((&attempts[2]["outcome"], &attempts[2]["status"]), (&json!("ok"), &json!(200)));
    assert_eq!(run.bytes("assets/c1.attempt1.body.txt"), b"slow down");
    assert_eq!((run.summary.counts.retried, run.summary.counts.attempts), (1, 3));
    assert_eq!(run.json("run.json")["stats"]["attempts_total"], 3);
}

#[test]
fn attempts_stop_when_the_retries_are_exhausted() {
    let agent = Agent::sending(response("503 Service Unavailable", "", b"busy"));
    let run = run_with(&agent.url(), &cases(["c1"]), |_| {});
    let failure = run.failure("http_error", "server_error");
    assert_eq!(failure["full_body_saved_to"], "assets/c1.attempt3.body.txt");
    assert_eq!(agent.requests().len(), 3);
}

#[test]
fn permanent_failures_are_not_retried() {
    for response in [response("401 Unauthorized", "", b"no"), response("200 OK", "", b"<html>"), ok(&json!({}))] {
        let agent = Agent::sending(response);
        run_with(&agent.url(), &cases(["c1"]), |_| {});
        assert_eq!(agent.requests().len(), 1);
    }
}

#[test]
fn the_timeouts_and_limits_of_a_run_are_recorded() {
    let run = run_with(&Agent::sending(ok(&answer())).url(), &cases(["c1"]), |settings| {
        settings.phases.first_byte = Some(std::time::Duration::from_secs(7));
        settings.limits.answer = 5000;
    });
    let document = run.json("run.json");
    assert_eq!(document["phase_timeouts_ms"], json!({"connect": 10_000, "first_byte": 7000, "idle": 30_000}));
    assert_eq!((&document["timeout_ms"], &document["limits"]["max_answer_bytes"]), (&json!(10_000), &json!(5000)));
}
