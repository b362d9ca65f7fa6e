//! Sessions: the time that the proxy adds to a model call, durable events per second next to bare SQLite, the first page of a
//! session with a million events, and the size of the store next to the JSON of its requests.
//!
//! `sessions [CALLS] [EVENTS]`: the number of model calls of each kind, and of events of the large session.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a benchmark prints its figures and may panic"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_bench::{arguments, machine, target_folder};
use counterproof_ledger::location::LedgerLocation;
use counterproof_sessions::event::{
    EventBody, LlmCall, LlmRequest, LlmResponse, SessionEvent, ToolCall, ToolResult, Usage,
};
use counterproof_sessions::proxy::{ListeningProxy, ProxyOptions};
use counterproof_sessions::recorder::{RecorderOptions, SessionRecorder, SessionSpool};
use counterproof_sessions::recording::SessionRecording;
use counterproof_sessions::session::{Coverage, Origin, SessionHead, SessionStatus};
use counterproof_sessions::store::{EventFilter, SessionStore, redactor};
use counterproof_tests::{ModelAnswer, ModelServer};
use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::{Value, json};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Threads that record at the same time.
const THREADS: usize = 32;

fn main() {
    println!("machine: {}", machine());
    let mut arguments = arguments().into_iter().map(|number| number.parse::<usize>().unwrap());
    let calls = arguments.next().unwrap_or(400);
    let events = arguments.next().unwrap_or(1_000_000);
    let scratch = tempfile::Builder::new().prefix("bench-sessions-").tempdir_in(target_folder()).unwrap();
    let scratch = Utf8Path::from_path(scratch.path()).unwrap();
    for (name, history) in [("2 messages", 2), ("200 messages of 2 KB", 200)] {
        overhead(scratch, name, history, calls);
    }
    durable_events(scratch);
    store_size(scratch, "messages of 100 bytes", 100);
    store_size(scratch, "messages of 2 KB", 2000);
    first_page(scratch, events);
}

fn head(session_id: &str, status: SessionStatus) -> SessionHead {
    SessionHead {
        session_id: session_id.to_owned(),
        title: None,
        origin: Origin::Record,
        workflow: None,
        status,
        started_at: Timestamp::now(),
        ended_at: None,
        parent: None,
        coverage: Coverage::default(),
    }
}

fn recorder(path: &Utf8Path, session_id: &str) -> SessionRecorder {
    SessionRecorder::start(RecorderOptions {
        ledger: LedgerLocation::SqliteFile(path.to_owned()),
        spool: SessionSpool::new(&Utf8PathBuf::from(format!("{path}.spool"))),
        head: head(session_id, SessionStatus::Running),
        continues: false,
        held: None,
        requires_store: false,
        secrets: Vec::new(),
        warn: Box::new(|text| println!("warning: {text}")),
    })
    .unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Calls through the proxy and without it, in turns.
fn overhead(scratch: &Utf8Path, name: &str, history: usize, calls: usize) {
    let answer = json!({
        "id": "x", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"},
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    });
    let server = ModelServer::start(move |_, _| ModelAnswer::json(200, &answer));
    let recorder = Arc::new(recorder(&scratch.join(format!("overhead-{history}.db")), "s"));
    let commands = scratch.join("commands");
    let session = SessionRecording::start(recorder, "bench", None, commands, Arc::new(|_: &str| {})).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let upstream = format!("{}/v1", server.origin());
    let options = ProxyOptions {
        session_id: "s".to_owned(),
        records: Arc::new(session),
        requires_records: false,
        openai: upstream.parse().unwrap(),
        anthropic: upstream.parse().unwrap(),
        key: None,
        now: Timestamp::now,
    };
    let listening = runtime.block_on(ListeningProxy::bind(options)).unwrap();
    let urls = [upstream, listening.openai_base_url()].map(|url| format!("{url}/chat/completions"));
    runtime.spawn(listening.serve(std::future::pending()));
    let text = "word ".repeat(400);
    let mut messages: Vec<Value> =
        (0..history).map(|it| json!({"role": "user", "content": format!("{it} {text}")})).collect();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut times: [Vec<Duration>; 2] = Default::default();
    for number in 0..calls {
        // The history grows, as that of an agent does.
        messages.push(json!({"role": "user", "content": format!("turn {number}")}));
        let body = json!({"model": "m", "messages": messages}).to_string();
        for (url, times) in urls.iter().zip(&mut times) {
            let request = client.post(url).header("content-type", "application/json").body(body.clone());
            let start = Instant::now();
            runtime.block_on(async { request.send().await.unwrap().bytes().await.unwrap() });
            times.push(start.elapsed());
        }
    }
    let [direct, through] = times.map(median);
    println!(
        "proxy, history of {name}: {:.2} ms direct, {:.2} ms through the proxy, {:.2} ms more at the median (aim: under 1 ms)",
        ms(direct),
        ms(through),
        ms(through.saturating_sub(direct)),
    );
    runtime.shutdown_background();
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn tool_call(number: usize) -> SessionEvent {
    let result = ToolResult {
        success: Some(true),
        content: Some(format!("line {number}\n").repeat(20)),
        truncated: Some(false),
        error: None,
        sandbox: None,
    };
    let call = ToolCall {
        tool_name: format!("tool_{}", number % 23),
        arguments: json!({"path": format!("src/file-{number}.rs"), "limit": 200}),
        result,
        latency_ms: Some(12),
        ..ToolCall::default()
    };
    SessionEvent::captured(Timestamp::now(), EventBody::ToolCall(call))
}

/// Events of many threads, each of which waits until its event is on disk; next to one bare insert and commit for each, and to
/// the same rows in transactions of as many events as there are threads.
fn durable_events(scratch: &Utf8Path) {
    const EACH: usize = 100;
    let recorder = recorder(&scratch.join("durable.db"), "s");
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..EACH).for_each(|number| recorder.record(vec![tool_call(number)]).unwrap()));
        }
    });
    let recorded = start.elapsed();
    recorder.finish(&head("s", SessionStatus::Completed), Duration::from_mins(1)).unwrap();
    let connection = Connection::open(scratch.join("durable.db")).unwrap();
    let text = "SELECT event_id, type, ts, name, call_key, data FROM session_events";
    let mut statement = connection.prepare(text).unwrap();
    let rows: Vec<[String; 6]> = statement
        .query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?]))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let bare = |name: &str, at_once: usize| {
        let connection = Connection::open(scratch.join(name)).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.pragma_update(None, "synchronous", "full").unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (seq INTEGER PRIMARY KEY, event_id TEXT, type TEXT, ts TEXT, name TEXT, call_key TEXT, \
                 data TEXT); CREATE UNIQUE INDEX i1 ON t (event_id); CREATE INDEX i2 ON t (type, seq); \
                 CREATE INDEX i3 ON t (name, seq); CREATE INDEX i4 ON t (call_key)",
            )
            .unwrap();
        let mut insert = connection
            .prepare("INSERT INTO t (event_id, type, ts, name, call_key, data) VALUES (?, ?, ?, ?, ?, ?)")
            .unwrap();
        let start = Instant::now();
        for chunk in rows.chunks(at_once) {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            for row in chunk {
                insert.execute(row.each_ref()).unwrap();
            }
            connection.execute_batch("COMMIT").unwrap();
        }
        rows.len() as f64 / start.elapsed().as_secs_f64()
    };
    let rate = (THREADS * EACH) as f64 / recorded.as_secs_f64();
    let (single, grouped) = (bare("single.db", 1), bare("grouped.db", THREADS));
    println!(
        "durable events of {THREADS} threads: {rate:.0} a second; bare SQLite: {single:.0} with a commit for each ({:.2}), \
         {grouped:.0} in groups of {THREADS} ({:.2})",
        rate / single,
        rate / grouped,
    );
}

/// The database of a session of 200 turns next to the JSON of its requests and answers.
fn store_size(scratch: &Utf8Path, name: &str, bytes: usize) {
    let path = scratch.join(format!("size-{bytes}.db"));
    let ledger = counterproof_ledger::open_or_create(&LedgerLocation::SqliteFile(path.clone())).unwrap();
    let mut store = SessionStore::new(ledger).unwrap();
    // Texts that no compression would shorten much, and all different.
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = || -> String { (0..bytes).map(|_| random.alphanumeric()).collect() };
    let tools: Value = (0..10)
        .map(|it| json!({"type": "function", "function": {"name": format!("tool_{it}"), "description": text()}}))
        .collect();
    let mut messages = vec![json!({"role": "system", "content": text()})];
    let (mut events, mut raw) = (Vec::new(), 0);
    for turn in 0..200 {
        messages.push(json!({"role": "user", "content": text()}));
        let body = json!({"model": "m", "messages": messages, "tools": tools, "temperature": 0});
        let content = text();
        let answer = json!({"id": format!("x{turn}"), "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]});
        raw += body.to_string().len() + answer.to_string().len();
        let request = LlmRequest {
            model: Some("m".into()),
            messages: json!(messages),
            tools: tools.clone(),
            temperature: json!(0),
            body,
            ..LlmRequest::default()
        };
        let response = LlmResponse {
            content: Some(content.clone()),
            usage: Some(Usage::new(Some(10), Some(10), None)),
            finish_reason: Some("stop".into()),
            body: answer,
            ..LlmResponse::default()
        };
        let call = LlmCall { request, response: Some(response), latency_ms: Some(1), ..LlmCall::default() };
        events.push(SessionEvent::captured(Timestamp::now(), EventBody::LlmCall(call)));
        messages.push(json!({"role": "assistant", "content": content}));
    }
    let redactor = redactor(Origin::Record, &BTreeSet::new()).unwrap();
    store.import(&head("s", SessionStatus::Completed), events, redactor).unwrap();
    store.close().unwrap();
    let stored = path.metadata().unwrap().len() as usize;
    println!(
        "store of 200 turns, {name}: {stored} bytes, {:.3} of the JSON of its requests and answers (aim: at most 0.25)",
        stored as f64 / raw as f64
    );
}

/// The first page of a large session.
fn first_page(scratch: &Utf8Path, events: usize) {
    let path = scratch.join("large.db");
    let ledger = LedgerLocation::SqliteFile(path);
    let mut store = SessionStore::new(counterproof_ledger::open_or_create(&ledger).unwrap()).unwrap();
    let redactor = redactor(Origin::Record, &BTreeSet::new()).unwrap();
    let start = Instant::now();
    store.import(&head("s", SessionStatus::Completed), (0..events).map(tool_call), redactor).unwrap();
    println!("import of {events} events: {:.0} a second", events as f64 / start.elapsed().as_secs_f64());
    store.close().unwrap();
    for (name, limit) in [("a page of 100", 100), ("a page of 10,000", 10_000)] {
        let start = Instant::now();
        let mut store = SessionStore::new(counterproof_ledger::open(&ledger).unwrap()).unwrap();
        let page = store.timeline("s", &EventFilter::default(), limit, None).unwrap().unwrap();
        println!("first {name} of {events} events: {:.1} ms (aim for 100: under 50 ms)", ms(start.elapsed()));
        assert_eq!(page.events.len(), (limit as usize).min(events));
    }
    let before = resident();
    let mut store = SessionStore::new(counterproof_ledger::open(&ledger).unwrap()).unwrap();
    let mut count = 0_usize;
    let each = |_, _| {
        count += 1;
        Ok::<_, counterproof_ledger::store::StoreError>(())
    };
    let start = Instant::now();
    store.for_each("s", &EventFilter::default(), 0, None, each).unwrap();
    println!(
        "all of {count} events: {:.0} a second, {} KiB of memory more",
        count as f64 / start.elapsed().as_secs_f64(),
        resident().saturating_sub(before)
    );
    let start = Instant::now();
    store.overview("s").unwrap().unwrap();
    println!("overview of {events} events: {:.0} ms", ms(start.elapsed()));
}

/// Returns the resident memory of this process in KiB. Zero on systems other than Linux.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
