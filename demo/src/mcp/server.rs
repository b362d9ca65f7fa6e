//! The shop as an MCP server. It has one planted fault: a date in words crashes it.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use super::protocol::{REVISION, read, write};
use crate::shop;

/// The tools, each with its description and its parameters.
const TOOLS: [(&str, &str, &[&str]); 5] = [
    ("get_order", "Returns an order", &["order_id"]),
    ("check_stock", "Returns how many pieces of an article are in stock", &["sku"]),
    ("list_slots", "Lists the delivery slots of a day", &["day"]),
    ("refund_order", "Refunds a part of an order", &["order_id", "amount"]),
    ("send_email", "Sends an e-mail to a customer", &["to", "text"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEnd {
    Closed,
    Crashed,
}

pub fn serve_tools(mut input: impl BufRead, mut output: impl Write) -> io::Result<ServerEnd> {
    while let Some(message) = read(&mut input)? {
        // A notification has no id, and needs no answer.
        let Some(id) = message.get("id") else { continue };
        let params = &message["params"];
        let answer = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"result": {
                "protocolVersion": REVISION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "counterproof-demo", "version": env!("CARGO_PKG_VERSION")},
            }}),
            "ping" => json!({"result": {}}),
            "tools/list" => json!({"result": {"tools": TOOLS.map(tool)}}),
            "tools/call" if is_fault(params) => return Ok(ServerEnd::Crashed),
            "tools/call" => json!({ "result": call(params) }),
            method => json!({"error": {"code": -32601, "message": format!("unknown method `{method}`")}}),
        };
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        for (name, value) in answer.as_object().into_iter().flatten() {
            message[name] = value.clone();
        }
        write(&mut output, &message)?;
    }
    Ok(ServerEnd::Closed)
}

fn tool((name, description, parameters): (&str, &str, &[&str])) -> Value {
    let kind = |name: &str| if name == "amount" { "number" } else { "string" };
    let properties: Value = parameters.iter().map(|&name| (name.to_owned(), json!({"type": kind(name)}))).collect();
    let schema = json!({"type": "object", "properties": properties, "required": parameters});
    json!({"name": name, "description": description, "inputSchema": schema})
}

fn is_fault(params: &Value) -> bool {
    let day = shop::text(&params["arguments"], "day");
    params["name"] == "list_slots" && !day.starts_with(|c: char| c.is_ascii_digit())
}

/// Calls a tool. An error of the tool is a result, so that the agent can read it.
fn call(params: &Value) -> Value {
    let (args, name) = (&params["arguments"], shop::text(params, "name"));
    let result =
        if TOOLS.iter().any(|(known, ..)| *known == name) { shop::run(name, args).result } else { shop::unknown(name) };
    match result {
        Ok(value) => json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value}),
        Err(error) => json!({"content": [{"type": "text", "text": error["message"]}], "isError": true}),
    }
}
