//! The agent over HTTP, as a runner calls it.

#![allow(clippy::unwrap_used, reason = "a test panics where it cannot go on")]

use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::{EventBody, Outcome, Side};
use counterproof_demo::{Agent, CASES, PLANTED, Variant, start};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends a request. Returns the status and the body.
async fn send(agent: &Agent, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(agent.address()).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: demo\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

async fn ask(agent: &Agent, case_id: &str) -> (u16, String) {
    let request = json!({"case_id": case_id, "version": "new", "input": {"user": "hello"}});
    send(agent, "POST", "/run-case", &request.to_string()).await
}

#[tokio::test]
async fn health_is_ok() {
    let agent = start(Variant::Baseline).await.unwrap();
    assert_eq!(send(&agent, "GET", "/health", "").await, (200, json!({"ok": true}).to_string()));
}

#[tokio::test]
async fn incomplete_requests_get_the_required_fields() {
    let agent = start(Variant::Baseline).await.unwrap();
    let unfit = [
        "",
        "[",
        "{}",
        r#"{"case_id":"","version":"new","input":{"user":"x"}}"#,
        r#"{"case_id":"a","version":"old","input":{"user":"x"}}"#,
        r#"{"case_id":"a","version":"new","input":{}}"#,
    ];
    for body in unfit {
        let (status, body) = send(&agent, "POST", "/run-case", body).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &body["error"]), (400, &json!("Invalid request")));
        assert_eq!(body["allowed_versions"], json!(["baseline", "new"]));
    }
}

#[tokio::test]
async fn a_case_that_is_not_in_the_playbook_is_not_found() {
    let agent = start(Variant::Baseline).await.unwrap();
    assert_eq!(ask(&agent, "nobody").await.0, 404);
}

#[tokio::test]
async fn answers_are_valid_and_end_with_the_final_output() {
    for variant in Variant::BOTH {
        let agent = start(variant).await.unwrap();
        for planted in PLANTED.iter().filter(|it| !["broken", "recovered"].contains(&it.verdict)) {
            let (status, body) = ask(&agent, planted.case_id).await;
            assert_eq!(status, 200, "{}", planted.case_id);
            let mut answer: Value = serde_json::from_str(&body).unwrap();
            answer["schema_version"] = json!("case.v1");
            answer["status"] = json!("ok");
            assert_eq!(counterproof_validation::validate_case(&answer), [], "{}", planted.case_id);
            let case: counterproof_artifact::Case = serde_json::from_value(answer).unwrap();
            assert_eq!((case.case_id.as_str(), case.version), (planted.case_id, Side::New));
            let Outcome::Ok(answer) = case.outcome else { panic!("the status is ok") };
            assert!(matches!(answer.events.last().unwrap().body, EventBody::FinalOutput(_)));
        }
    }
}

#[tokio::test]
async fn answers_are_deterministic_and_one_is_large() {
    let agent = start(Variant::New).await.unwrap();
    let (first, second) = (ask(&agent, "order_history_001").await, ask(&agent, "order_history_001").await);
    assert_eq!(first, second);
    let answer: Value = serde_json::from_str(&first.1).unwrap();
    assert!(answer["events"][3]["payload_summary"].to_string().len() > 8 * 1024);
}

#[tokio::test]
async fn the_planted_http_faults_occur() {
    let (baseline, new) = (start(Variant::Baseline).await.unwrap(), start(Variant::New).await.unwrap());
    assert_eq!(ask(&baseline, "delivery_slot_001").await.0, 503);
    assert_eq!(ask(&new, "delivery_slot_001").await.0, 200);
    assert_eq!(ask(&new, "stock_check_001").await.0, 500);
    let (status, body) = ask(&new, "loyalty_points_001").await;
    assert_eq!(status, 200);
    assert!(serde_json::from_str::<Value>(&body).unwrap_err().is_eof());
    let silence = tokio::time::timeout(Duration::from_millis(300), ask(&new, "gift_advice_001")).await;
    assert!(silence.is_err(), "an answer came: {silence:?}");
}

#[test]
fn the_cases_file_loads_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
    counterproof_store::write::write(&path, CASES.as_bytes(), counterproof_store::write::Durability::Cached).unwrap();
    let suite = counterproof_cases::load(&path).unwrap();
    assert_eq!((suite.cases.len(), suite.warnings.len()), (10, 0));
}
