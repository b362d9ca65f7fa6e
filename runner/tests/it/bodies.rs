//! Bodies with status 200 that are not answers: not JSON, not text, too large, encoded, or incomplete.

use crate::kit::{Agent, Finished, Reaction, answer, cases, gzip, noise, response, run_once, run_with};

fn run_with_body(headers: &str, body: &[u8]) -> Finished {
    run_once(&Agent::sending(response("200 OK", headers, body)))
}

#[test]
fn an_error_page_is_invalid_json_and_saved_as_text() {
    let run = run_with_body("content-type: text/html\r\n", b"<html>down</html>");
    let failure = run.failure("invalid_json", "not_json");
    assert_eq!(failure["body_snippet"], "<html>down</html>");
    assert_eq!(failure["full_body_saved_to"], "assets/c1.attempt1.body.txt");
}

#[test]
fn json_that_ends_early_is_invalid_json() {
    run_with_body("", br#"{"proposed_actions": ["#).failure("invalid_json", "not_json");
}

#[test]
fn a_binary_body_is_saved_as_bytes() {
    let run = run_with_body("", b"{\"a\": \"\xff\xfe\"}");
    let failure = run.failure("invalid_json", "invalid_utf8");
    assert_eq!(failure["full_body_saved_to"], "assets/c1.attempt1.body.bin");
    assert_eq!(run.bytes("assets/c1.attempt1.body.bin"), b"{\"a\": \"\xff\xfe\"}");
}

#[test]
fn an_empty_body_is_invalid_json_without_assets() {
    run_with_body("", b"").failure("invalid_json", "empty_body");
    run_once(&Agent::sending(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())).failure("invalid_json", "empty_body");
}

#[test]
fn a_long_body_has_a_short_snippet_and_is_saved_in_full() {
    let body = "é".repeat(10_000);
    let run = run_with_body("", body.as_bytes());
    let failure = run.failure("invalid_json", "not_json");
    assert_eq!(failure["body_snippet"].as_str().unwrap().len(), 4000);
    assert_eq!(run.bytes("assets/c1.attempt1.body.txt"), body.as_bytes());
}

#[test]
fn a_body_over_the_limit_is_truncated_and_rejected() {
    let mut long = answer();
    long["filler"] = "x".repeat(5000).into();
    let body = long.to_string();
    let agent = Agent::sending(response("200 OK", "", body.as_bytes()));
    let run = run_with(&agent.url(), &cases(["c1"]), |settings| settings.limits.body = 1000);
    run.failure("other", "body_too_large");
    assert_eq!(agent.requests().len(), 1, "it would be as large again");
    let meta = run.meta();
    assert_eq!((meta["bytes_written"].as_u64(), meta["bytes_total"].as_u64()), (Some(1000), Some(body.len() as u64)));
    assert_eq!(meta["truncated"], true);
    assert_eq!(run.bytes("assets/c1.attempt1.body.txt"), &body.as_bytes()[..1000]);

    let exact = run_with(&agent.url(), &cases(["c1"]), |settings| settings.limits.body = body.len());
    assert_eq!(exact.case()["status"], "ok");
}

#[test]
fn an_error_body_over_the_limit_stays_an_http_error() {
    let agent = Agent::sending(response("500 Internal Server Error", "", &[b'x'; 5000]));
    let run = run_with(&agent.url(), &cases(["c1"]), |settings| {
        settings.limits.body = 1000;
        settings.retry.retries = 0;
    });
    run.failure("http_error", "server_error");
    assert_eq!(run.meta()["truncated"], true);
    assert_eq!(run.meta()["note"], "the body is larger than the limit of 1000 bytes");
}

#[test]
fn compressed_answers_are_decoded_and_a_bomb_is_truncated() {
    let encoded = gzip(answer().to_string().as_bytes());
    assert_eq!(run_with_body("content-encoding: gzip\r\n", &encoded).case()["status"], "ok");

    let run = run_with_body("content-encoding: gzip\r\n", &gzip(&vec![b' '; 50_000_000]));
    run.failure("other", "decompression_bomb");
    let meta = run.meta();
    assert_eq!((&meta["encoding"], &meta["truncated"]), (&"gzip".into(), &true.into()));
    assert!(meta["bytes_written"].as_u64().unwrap() <= 2_000_000, "{meta:#}");
    assert!(meta["bytes_total"].is_null());
}

#[test]
fn deflate_is_decoded_with_and_without_the_zlib_wrapper() {
    let body = answer().to_string();
    for encoded in [crate::kit::zlib(body.as_bytes()), crate::kit::deflate(body.as_bytes())] {
        assert_eq!(run_with_body("content-encoding: deflate\r\n", &encoded).case()["status"], "ok");
    }
}

#[test]
fn the_decodable_start_of_an_incomplete_compressed_body_is_saved() {
    let text = noise();
    let encoded = gzip(text.as_bytes());
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", encoded.len());
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&encoded[..encoded.len() / 2]);
    let run = run_once(&Agent::sending(bytes));
    run.failure("network_error", "body_incomplete");
    let kept = run.bytes("assets/c1.attempt1.body.txt");
    assert!(kept.len() > text.len() / 3 && text.as_bytes().starts_with(&kept), "{}", kept.len());
    assert_eq!((&run.meta()["truncated"], &run.meta()["bytes_total"]), (&true.into(), &().into()));
}

#[test]
fn an_answer_too_large_to_parse_is_saved_in_full() {
    let mut long = answer();
    long["filler"] = "é".repeat(100_000).into();
    let agent = Agent::sending(response("200 OK", "", long.to_string().as_bytes()));
    let run = run_with(&agent.url(), &cases(["c1"]), |settings| settings.limits.answer = 1000);
    let failure = run.failure("other", "body_too_large");
    assert!((3998..=4000).contains(&failure["body_snippet"].as_str().unwrap().len()));
    assert_eq!(run.bytes("assets/c1.attempt1.body.txt"), long.to_string().as_bytes());
    assert_eq!(run.meta()["truncated"], false);
}

#[test]
fn bodies_in_unsupported_encodings_are_saved_unchanged() {
    let run = run_with_body("content-encoding: br\r\n", b"\x8b\x02\x80");
    run.failure("other", "unknown_encoding");
    let run = run_with_body("content-encoding: gzip\r\n", b"not gzip at all");
    run.failure("other", "undecodable_body");
    assert_eq!(run.bytes("assets/c1.attempt1.body.txt"), b"not gzip at all");
    assert_eq!(run.meta()["truncated"], false);
}

#[test]
fn the_received_start_of_an_incomplete_body_is_saved() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\": ".to_vec();
    let run = run_once(&Agent::sending(cut));
    let failure = run.failure("network_error", "body_incomplete");
    assert_eq!(failure["body_snippet"], "{\"half\": ");
    assert_eq!((&run.meta()["truncated"], &run.meta()["bytes_total"]), (&true.into(), &100.into()));

    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":".to_vec();
    run_once(&Agent::sending(chunked)).failure("network_error", "body_incomplete");
}

#[test]
fn a_reset_within_the_body_differs_from_an_early_end() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\": ".to_vec();
    let failure = run_once(&Agent::new([Reaction::Reset(head)])).failure("network_error", "connection_reset");
    assert_eq!(failure["body_snippet"], "{\"half\": ");
}
