//! Timeouts at every stage of a request.

use std::time::{Duration, Instant};

use crate::kit::{Agent, Finished, Reaction, cases, run_with};

fn run_with_timeouts(reaction: Reaction) -> Finished {
    let agent = Agent::new([reaction]);
    let start = Instant::now();
    let run = run_with(&agent.url(), &cases(["c1"]), |settings| {
        settings.timeout = Duration::from_millis(300);
        settings.retry.retries = 1;
    });
    assert!(start.elapsed() < Duration::from_secs(5), "the time-out holds");
    assert!(run.summary.reached);
    assert_eq!(run.case()["attempts"].as_array().unwrap().len(), 2, "time-outs are tried again");
    assert_eq!(run.case()["runner_failure"]["timeout_ms"], 300);
    assert!(run.case()["runner_failure"]["latency_ms"].as_u64().unwrap() >= 299);
    run
}

#[test]
fn silence_is_a_response_timeout() {
    let failure = run_with_timeouts(Reaction::Stall(Vec::new())).failure("timeout", "response_timeout");
    assert!(failure["body_snippet"].is_null());
}

#[test]
fn an_incomplete_head_is_a_response_timeout() {
    run_with_timeouts(Reaction::Stall(b"HTTP/1.1 200 OK\r\n".to_vec())).failure("timeout", "response_timeout");
}

#[test]
fn silence_after_the_headers_is_a_body_failure() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n".to_vec();
    let failure = run_with_timeouts(Reaction::Stall(head)).failure("timeout", "body_timeout");
    assert!(failure["body_snippet"].is_null());
}

#[test]
fn the_received_start_of_a_stalled_body_is_saved() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"half\": 1".to_vec();
    let run = run_with_timeouts(Reaction::Stall(half));
    let failure = run.failure("timeout", "body_timeout");
    assert_eq!(failure["body_snippet"], "{\"half\": 1");
    assert_eq!(run.meta()["truncated"], true);
}
