//! A small coding agent for tests: it sends a task to an OpenAI-compatible model, and runs the tools `write` and `shell`.
//!
//! `coding-test-agent TASK`: the model is `AGENT_MODEL`, and `AGENT_STREAM=1` asks for a stream. Prints the last text of the
//! model. `AGENT_SEEN` names a file that gets a line for each answer that was read to its end. Exit code 0 if the model ends with a text, 1 if a request fails.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test program may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

/// Requests of one task.
const MAX_TURNS: usize = 20;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap();
    let model = std::env::var("AGENT_MODEL").unwrap_or_else(|_| "v1".to_owned());
    let is_stream = std::env::var("AGENT_STREAM").is_ok_and(|value| value == "1");
    let mut messages =
        vec![json!({"role": "system", "content": "You fix code."}), json!({"role": "user", "content": task})];
    let tools = json!([{"type": "function", "function": {"name": "write"}}, {"type": "function", "function": {"name": "shell"}}]);
    for _ in 0..MAX_TURNS {
        let mut body =
            json!({"model": model, "messages": messages, "tools": tools, "temperature": 0, "max_tokens": 500});
        if is_stream {
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
        }
        let answer = post("/chat/completions", &body);
        let message = match answer {
            Ok(text) if is_stream => joined(&text),
            Ok(text) => serde_json::from_str::<Value>(&text).unwrap()["choices"][0]["message"].clone(),
            Err(status) => {
                eprintln!("the model answered with {status}");
                return ExitCode::FAILURE;
            }
        };
        if let Some(path) = std::env::var_os("AGENT_SEEN") {
            note(&path);
        }
        messages.push(message.clone());
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            println!("{}", message["content"].as_str().unwrap_or_default());
            return ExitCode::SUCCESS;
        }
        for call in calls {
            let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            let content = run_tool(call["function"]["name"].as_str().unwrap(), &arguments);
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
        }
    }
    ExitCode::FAILURE
}

#[expect(clippy::disallowed_methods, reason = "appends a line, which only a test reads")]
fn note(path: &std::ffi::OsStr) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(b"seen\n").unwrap();
}

fn run_tool(name: &str, arguments: &Value) -> String {
    if name == "write" {
        let path = camino::Utf8Path::new(arguments["path"].as_str().unwrap());
        let content = arguments["content"].as_str().unwrap();
        counterproof_store::write::write(path, content.as_bytes(), counterproof_store::write::Durability::Cached)
            .unwrap();
        return "written".to_owned();
    }
    let output = Command::new("sh").arg("-c").arg(arguments["command"].as_str().unwrap()).output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    format!("{stdout}{stderr}exit code {}", output.status.code().unwrap_or(-1))
}

/// Sends a request, and returns the body of the answer, or the status of a failed one.
fn post(path: &str, body: &Value) -> Result<String, u16> {
    let base = std::env::var("OPENAI_BASE_URL").unwrap();
    let (host, base_path) = base.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let body = body.to_string();
    let key = std::env::var("OPENAI_API_KEY").unwrap_or_default();
    write!(
        stream,
        "POST /{base_path}{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
    let mut is_chunked = false;
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        is_chunked |= line.to_ascii_lowercase().starts_with("transfer-encoding: chunked");
        if line == "\r\n" {
            break;
        }
    }
    let mut bytes = Vec::new();
    if is_chunked {
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).unwrap();
            if size == 0 {
                break;
            }
            bytes.extend_from_slice(&chunk[..size]);
        }
    } else {
        reader.read_to_end(&mut bytes).unwrap();
    }
    if status == 200 { Ok(String::from_utf8(bytes).unwrap()) } else { Err(status) }
}

/// Joins the deltas of a stream to a message.
fn joined(stream: &str) -> Value {
    let (mut content, mut calls) = (String::new(), Vec::<Value>::new());
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]") {
        let chunk: Value = serde_json::from_str(data).unwrap();
        let delta = &chunk["choices"][0]["delta"];
        content.push_str(delta["content"].as_str().unwrap_or_default());
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(part["index"].as_u64().unwrap()).unwrap();
            if calls.len() <= index {
                calls.push(json!({"id": part["id"], "type": "function", "function": {"name": part["function"]["name"], "arguments": ""}}));
            }
            let text = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
            let more = part["function"]["arguments"].as_str().unwrap_or_default();
            calls[index]["function"]["arguments"] = json!(text + more);
        }
    }
    let mut message =
        json!({"role": "assistant", "content": if content.is_empty() { Value::Null } else { content.into() }});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}
