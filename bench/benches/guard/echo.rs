//! A server that answers at once, with little work for each message.
//!
//! `tools/call` returns its own parameters. The tool `seen` returns the lines that have arrived, and the tool `exit` ends the
//! server.

use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Lines that are not longer are remembered.
const SHORT: usize = 4096;

#[derive(serde::Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Serves until the input ends.
pub(crate) fn serve() {
    let mut input = BufReader::with_capacity(1 << 16, stdin().lock());
    let mut output = stdout().lock();
    let mut seen: Vec<String> = Vec::new();
    let mut line = String::new();
    while input.read_line(&mut line).unwrap_or(0) > 0 {
        let text = line.trim_end();
        if text.len() <= SHORT && seen.len() < 100 {
            seen.push(text.to_owned());
        }
        let answer = if text.starts_with('[') {
            let elements: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            let answers: Vec<String> = elements.iter().filter_map(|it| answer(it.get(), &seen)).collect();
            (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
        } else {
            answer(text, &seen)
        };
        if let Some(mut answer) = answer {
            answer.push('\n');
            output.write_all(answer.as_bytes()).and_then(|()| output.flush()).expect("the client reads");
        }
        line.clear();
    }
}

fn answer(text: &str, seen: &[String]) -> Option<String> {
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    let (id, method) = (message.id?.get(), message.method?);
    let params = message.params.map_or("{}", RawValue::get);
    let result = match method.as_str() {
        "initialize" => json!({
            "protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"},
        })
        .to_string(),
        "tools/call" if text.len() <= SHORT => {
            let params: Value = serde_json::from_str(params).unwrap_or_default();
            match params["name"].as_str() {
                Some("seen") => json!({"content": [{"type": "text", "text": json!(seen).to_string()}]}).to_string(),
                #[expect(clippy::exit, reason = "the crash of a server")]
                Some("exit") => std::process::exit(7),
                _ => format!(r#"{{"content":[],"echo":{params}}}"#),
            }
        }
        _ => format!(r#"{{"content":[],"echo":{params}}}"#),
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}
