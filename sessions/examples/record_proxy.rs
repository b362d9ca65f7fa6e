//! Runs a program with the recording proxy between it and its model servers, and writes the records to a file.
//!
//! Usage: `record_proxy FILE -- PROGRAM ARGS…`

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a program for tests")]

use std::sync::{Arc, Mutex};

use counterproof_sessions::event::SessionEvent;
use counterproof_sessions::proxy::{
    ANTHROPIC_DEFAULT, ListeningProxy, OPENAI_DEFAULT, ProxyOptions, RecordError, Records, Secret, UpstreamUrl,
};
use jiff::Timestamp;
use serde_json::json;

#[derive(Default)]
struct Memory(Mutex<Vec<SessionEvent>>);

impl Records for Memory {
    fn record(&self, events: Vec<SessionEvent>) -> Result<(), RecordError> {
        self.0.lock().unwrap().extend(events);
        Ok(())
    }

    fn saw_secret(&self, _: &Secret) {}

    fn warn(&self, message: &str) {
        eprintln!("{message}");
    }
}

fn upstream(name: &str, default: &str) -> UpstreamUrl {
    std::env::var(name).unwrap_or_else(|_| default.to_owned()).parse().unwrap()
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let records = Arc::new(Memory::default());
    let options = ProxyOptions {
        session_id: "example".to_owned(),
        records: records.clone(),
        requires_records: false,
        openai: upstream("OPENAI_BASE_URL", OPENAI_DEFAULT),
        anthropic: upstream("ANTHROPIC_BASE_URL", ANTHROPIC_DEFAULT),
        now: Timestamp::now,
    };
    let proxy = ListeningProxy::bind(options).await.unwrap();
    let (openai, anthropic) = (proxy.openai_base_url(), proxy.anthropic_base_url());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(proxy.serve(async { _ = stopped.await }));
    let (file, program) = (&arguments[0], &arguments[2..]);
    let status = tokio::process::Command::new(&program[0])
        .args(&program[1..])
        .env("OPENAI_BASE_URL", openai)
        .env("ANTHROPIC_BASE_URL", anthropic)
        .env("NO_PROXY", "127.0.0.1")
        .status();
    let status = status.await.unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap();
    let lines: Vec<String> = records.0.lock().unwrap().iter().map(|event| json!(event).to_string()).collect();
    tokio::fs::write(file, lines.join("\n") + "\n").await.unwrap();
    assert!(status.success(), "{status}");
}
