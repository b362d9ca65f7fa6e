//! An MCP server for the tests of the guard: one JSON message per line, with tools that behave in every way a tool can.
//!
//! With `--log FILE`, it appends every byte that it reads to a file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::exit,
    reason = "a test server that fails has failed the test"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let log = arguments.windows(2).find(|pair| pair[0] == "--log").map(|pair| pair[1].clone());
    #[expect(clippy::disallowed_methods, reason = "appends to a log of the test")]
    let mut log: Option<File> = log.map(|path| OpenOptions::new().create(true).append(true).open(path).unwrap());
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).unwrap() > 0 {
        if let Some(log) = &mut log {
            log.write_all(&line).unwrap();
        }
        answer(&line, &mut input);
        line.clear();
    }
}

/// Answers a line. Text that is no JSON is returned as it is, so that a test can see that it arrived.
fn answer(line: &[u8], input: &mut impl BufRead) {
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Array(batch)) => {
            let answers: Vec<Value> = batch.iter().filter_map(|message| respond(message, line.len(), input)).collect();
            send(&json!(answers));
        }
        Ok(message) => {
            if let Some(answer) = respond(&message, line.len(), input) {
                send(&answer);
            }
        }
        Err(_) => io::stdout().write_all(line).unwrap(),
    }
}

fn send(message: &Value) {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{message}").unwrap();
    stdout.flush().unwrap();
}

fn respond(message: &Value, bytes: usize, input: &mut impl BufRead) -> Option<Value> {
    let id = message.get("id")?.clone();
    let params = &message["params"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "mcp-test-server", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "linear_create_issue", "inputSchema": {"type": "object"}},
            {"name": "echo", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" => match call(params, bytes, input)? {
            Ok(result) => result,
            Err(error) => return Some(json!({"jsonrpc": "2.0", "id": id, "error": error})),
        },
        method => {
            let error = json!({"code": -32601, "message": format!("unknown method {method}")});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Calls a tool. Returns none if it never answers.
fn call(params: &Value, bytes: usize, input: &mut impl BufRead) -> Option<Result<Value, Value>> {
    let args = &params["arguments"];
    let number = |key: &str| args[key].as_u64().unwrap_or_default();
    Some(Ok(match params["name"].as_str().unwrap_or_default() {
        "size" => text(&bytes.to_string()),
        "sleep" => {
            std::thread::sleep(Duration::from_millis(number("ms")));
            text("awake")
        }
        "big" => text(&"x".repeat(usize::try_from(number("bytes")).unwrap())),
        "fail" => {
            let message = "no such issue\n    at Server.call (server.js:10:3)\n    at main (server.js:1:1)";
            return Some(Err(json!({"code": -32000, "message": message})));
        }
        "tool_error" => json!({"content": [{"type": "text", "text": "disk full"}], "isError": true}),
        "crash" => std::process::exit(3),
        "hang" => return None,
        "environment" => {
            let value = std::env::var(args["name"].as_str().unwrap_or_default());
            text(&value.unwrap_or_else(|_| "not set".to_owned()))
        }
        "authorized" => {
            let value = std::env::var(args["name"].as_str().unwrap_or_default());
            text(if value.is_ok_and(|value| value.len() >= 8) { "authorized" } else { "unauthorized" })
        }
        "complain" => {
            io::stderr().write_all(args["text"].as_str().unwrap_or_default().as_bytes()).unwrap();
            text("complained")
        }
        "sample" => {
            // The id is that of the pending call, which is allowed: the two sides have sets of their own.
            send(&json!({"jsonrpc": "2.0", "id": args["id"], "method": "sampling/createMessage", "params": {}}));
            let mut line = Vec::new();
            input.read_until(b'\n', &mut line).unwrap();
            text(&String::from_utf8(line).unwrap())
        }
        "ask" if params.get("inputResponses").is_none() => json!({
            "resultType": "input_required",
            "inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "sure?"}}},
            "requestState": "state-1",
        }),
        "ask" => json!({"resultType": "complete", "content": [{"type": "text", "text": "answered"}]}),
        "leave_child" => {
            #[expect(clippy::zombie_processes, reason = "the test is about a process that nobody waits for")]
            let child = Command::new("setsid").args(["sleep", "600"]).stdin(Stdio::null()).spawn().unwrap();
            text(&child.id().to_string())
        }
        _ => text(&args.to_string()),
    }))
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
