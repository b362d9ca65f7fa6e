//! Tool calls in an answer: lists whose elements have a tool's name and its arguments, and the histories of common frameworks.

use serde_json::Value;

use super::mapping::{path, within};
use super::walk::{Node, cel, key_of};
use crate::agent::http_mapping::CallsMapping;
use crate::agent::mapping_path::{AnswerPath, ElementPath};

/// Names of the tool, as pointers into a call.
const NAMES: [&str; 14] = [
    "/name",
    "/tool_name",
    "/tool",
    "/function/name",
    "/fn",
    "/function_name",
    "/toolName",
    "/function",
    "/raw_item/name",
    "/action",
    "/tool/name",
    "/method",
    "/command",
    "/op",
];

/// Names of the arguments.
const ARGUMENTS: [&str; 18] = [
    "/arguments",
    "/args",
    "/parameters",
    "/params",
    "/input",
    "/tool_input",
    "/tool_args",
    "/function/arguments",
    "/kwargs",
    "/toolInput",
    "/raw_item/arguments",
    "/inputs",
    "/payload",
    "/function/args",
    "/tool_arguments",
    "/action_input",
    "/function/parameters",
    "/in",
];

/// Names of the result.
const RESULTS: [&str; 10] = [
    "/result",
    "/output",
    "/out",
    "/observation",
    "/response",
    "/return",
    "/return_value",
    "/tool_output",
    "/content",
    "/returned",
];

/// Names of the id.
const IDS: [&str; 5] = ["/id", "/call_id", "/tool_call_id", "/toolCallId", "/callId"];

/// Names of the error.
const ERRORS: [&str; 5] = ["/error", "/err", "/exception", "/is_error", "/error_message"];

/// Fields that are false if the call failed.
const SUCCESSES: [&str; 3] = ["ok", "success", "succeeded"];

/// Names of lists of calls. Their elements need no arguments.
const LISTS: [&str; 10] = [
    "tool_calls",
    "calls",
    "steps",
    "tools",
    "tool_uses",
    "function_calls",
    "tools_used",
    "trace",
    "invocations",
    "toolCalls",
];

/// Lists that look like calls and are proposals.
const NOT_CALLS: [&str; 2] = ["proposed_actions", "pending_actions"];

/// The paths within a call.
pub(super) struct CallFields {
    pub(super) name: ElementPath,
    pub(super) arguments: Option<ElementPath>,
    result: Option<ElementPath>,
    id: Option<ElementPath>,
    error: Option<ElementPath>,
}

/// Proposes where the calls of an answer are.
pub(super) fn propose(answer: &Value, nodes: &[Node<'_>]) -> Option<CallsMapping> {
    let history = nodes.iter().filter(|node| !node.at.contains('*')).find_map(|node| framework(node, answer));
    history.or_else(|| listed(nodes))
}

/// Returns the calls of a list that has the names of calls.
fn listed(nodes: &[Node<'_>]) -> Option<CallsMapping> {
    let mut seen: Vec<&str> = Vec::new();
    for node in nodes.iter().filter(|node| node.value.is_array() && !NOT_CALLS.contains(&key_of(&node.at))) {
        if seen.contains(&node.at.as_str()) {
            continue;
        }
        seen.push(&node.at);
        // All lists in the same place: the calls of each step, for example.
        let lists = nodes.iter().filter(|other| other.at == node.at).filter_map(|other| other.value.as_array());
        let elements: Vec<&Value> = lists.flatten().collect();
        if let Some(fields) = fields(&elements)
            && (fields.arguments.is_some() || LISTS.contains(&key_of(&node.at)))
        {
            return mapping(path(node.at.clone())?, fields);
        }
    }
    None
}

#[expect(clippy::unnecessary_wraps, reason = "the callers chain options")]
fn mapping(path: AnswerPath, fields: CallFields) -> Option<CallsMapping> {
    let CallFields { name, arguments, result, id, error } = fields;
    Some(CallsMapping { path, name, arguments, result, id, error })
}

/// Returns the paths within the elements, if each has the name of a tool.
pub(super) fn fields(elements: &[&Value]) -> Option<CallFields> {
    let all = |pointer: &&str| elements.iter().all(|element| element.pointer(pointer).is_some());
    let any = |pointer: &&str| elements.iter().any(|element| element.pointer(pointer).is_some());
    let is_name = |pointer: &&str| {
        elements.iter().all(|element| element.pointer(pointer).and_then(Value::as_str).is_some_and(is_tool))
    };
    if elements.is_empty() {
        return None;
    }
    let name = *NAMES.iter().find(|pointer| is_name(pointer))?;
    let is_arguments = |pointer: &&&str| {
        any(pointer) && elements.iter().filter_map(|element| element.pointer(pointer)).all(is_object_or_text)
    };
    let arguments = ARGUMENTS.iter().find(is_arguments).copied();
    let result = RESULTS.iter().find(|pointer| any(pointer) && Some(**pointer) != arguments).copied();
    let id = IDS.iter().find(|pointer| all(pointer)).copied();
    let success = SUCCESSES.into_iter().find(|field| elements.iter().all(|element| element[*field].is_boolean()));
    let error = match success {
        Some(field) => within(format!("!item.{field}")),
        None => ERRORS.iter().find(|pointer| any(pointer)).and_then(|pointer| within(*pointer)),
    };
    let or_else = |pointer: &str, otherwise: &str| {
        if all(&pointer) {
            return within(pointer);
        }
        let field = cel("item", pointer);
        within(format!("has({field}) ? {field} : {otherwise}"))
    };
    Some(CallFields {
        name: within(name)?,
        arguments: arguments.and_then(|pointer| or_else(pointer, "{}")),
        result: result.and_then(|pointer| or_else(pointer, "null")),
        id: id.and_then(within),
        error,
    })
}

/// Tools have short names without spaces.
fn is_tool(text: &str) -> bool {
    !text.is_empty() && text.len() <= 100 && !text.contains(char::is_whitespace)
}

fn is_object_or_text(value: &Value) -> bool {
    value.is_object() || value.is_null() || value.as_str().is_some_and(|text| text.trim_start().starts_with('{'))
}

/// A history in which calls and results are separate elements.
fn framework(node: &Node<'_>, answer: &Value) -> Option<CallsMapping> {
    let items = node.value.as_array()?;
    let (at, list) = (&node.at, cel("answer", &node.at));
    let has = |field: &str, value: &str| items.iter().any(|item| item[field] == value);
    if has("type", "tool_call_item") {
        return agents_sdk(&list);
    }
    if has("type", "function_call") {
        // Messages of the user have no type.
        let all_typed = items.iter().all(|item| item.get("type").is_some());
        let of_type = |name: &str, kind: &str| {
            let has_type = if all_typed { String::new() } else { format!("has({name}.type) && ") };
            format!("{has_type}{name}.type == \"{kind}\"")
        };
        let output = of_type("o", "function_call_output");
        let outputs = format!("{list}.filter(o, {output} && o.call_id == item.call_id)");
        return Some(CallsMapping {
            path: path(format!("{list}.filter(i, {})", of_type("i", "function_call")))?,
            name: within("/name")?,
            arguments: within("/arguments"),
            result: has("type", "function_call_output").then(|| within(format!("{outputs}[0].output"))).flatten(),
            id: within("/call_id"),
            error: None,
        });
    }
    if has("type", "tool_use") {
        return Some(CallsMapping {
            path: path(format!("{list}.filter(i, i.type == \"tool_use\")"))?,
            name: within("/name")?,
            arguments: within("/input"),
            result: None,
            id: within("/id"),
            error: None,
        });
    }
    if items.iter().any(|item| {
        item["parts"].as_array().is_some_and(|parts| parts.iter().any(|part| part["part_kind"] == "tool-call"))
    }) {
        return pydantic_ai(&list, items);
    }
    // Messages of LangChain and of OpenAI, whose results name the call.
    let calls: Vec<&Value> = items.iter().filter_map(|item| item["tool_calls"].as_array()).flatten().collect();
    if calls.is_empty() || at.is_empty() && answer.is_array() && items.iter().all(|item| item.get("content").is_none())
    {
        return None;
    }
    let mut fields = fields(&calls)?;
    let is_answered =
        |call: &&Value| items.iter().any(|item| !item["tool_call_id"].is_null() && item["tool_call_id"] == call["id"]);
    if fields.result.is_none() && calls.iter().all(is_answered) {
        let result = format!("{list}.filter(m, has(m.tool_call_id) && m.tool_call_id == item.id)[0]");
        fields.result = within(format!("{result}.content"));
        if items.iter().any(|item| !item["tool_call_id"].is_null() && item["status"].is_string()) {
            fields.error = within(format!("has({result}.status) && {result}.status == \"error\""));
        }
    }
    mapping(path(format!("{at}/*/tool_calls"))?, fields)
}

/// `new_items` of the OpenAI Agents SDK.
fn agents_sdk(list: &str) -> Option<CallsMapping> {
    let output = "o.type == \"tool_call_output_item\" && o.raw_item.call_id == item.raw_item.call_id";
    Some(CallsMapping {
        path: path(format!("{list}.filter(i, i.type == \"tool_call_item\")"))?,
        name: within("/raw_item/name")?,
        arguments: within("/raw_item/arguments"),
        result: within(format!("{list}.filter(o, {output})[0].output")),
        id: within("/raw_item/call_id"),
        error: None,
    })
}

/// Messages of pydantic-ai, whose parts are texts, calls and results.
fn pydantic_ai(list: &str, items: &[Value]) -> Option<CallsMapping> {
    let mut parts = items.iter().filter_map(|item| item["parts"].as_array()).flatten();
    let has_results = parts.any(|part| part["part_kind"] == "tool-return");
    let returned = "p.part_kind == \"tool-return\" && p.tool_call_id == item.tool_call_id";
    let result = format!("{list}.map(m, m.parts.filter(p, {returned})).filter(l, size(l) > 0)[0][0].content");
    Some(CallsMapping {
        path: path(format!("{list}.map(m, m.parts.filter(p, p.part_kind == \"tool-call\"))"))?,
        name: within("/tool_name")?,
        arguments: within("/args"),
        result: has_results.then(|| within(result)).flatten(),
        id: within("/tool_call_id"),
        error: None,
    })
}

/// Returns the path of the last message of a conversation, if the answer has no text outside of it.
pub(super) fn conversation_output(answer: &Value, nodes: &[Node<'_>], user: &str) -> Option<AnswerPath> {
    let is_text = |node: &Node<'_>| {
        matches!(key_of(&node.at), "reply" | "answer" | "output" | "response" | "final_output" | "result" | "data")
            && node.value.as_str().is_some_and(|text| text != user)
            && !node.at.contains('*')
    };
    if nodes.iter().any(is_text) {
        return None;
    }
    let node = nodes.iter().find(|node| !node.at.contains('*') && is_conversation(node.value))?;
    // A stream has messages of the agent only.
    if node.at.is_empty() && answer.get(0).is_some_and(by_agent) {
        return None;
    }
    let list = cel("answer", &node.at);
    let last = format!("{list}[size({list}) - 1]");
    let message = node.value.as_array()?.last()?;
    if message["parts"].is_array() {
        return path(format!("{last}.parts.filter(p, p.part_kind == \"text\").map(p, p.content)"));
    }
    path(format!("{last}.content"))
}

/// Reports whether a value is a list of messages that ends with one of the agent.
fn is_conversation(value: &Value) -> bool {
    let Some(messages) = value.as_array() else { return false };
    let is_message = |message: &Value| {
        let has_author = ["role", "type", "kind"].iter().any(|field| message[*field].is_string());
        has_author && (has_content(message) || matches!(message["type"].as_str(), Some(kind) if CALLS.contains(&kind)))
    };
    messages.iter().all(is_message) && messages.last().is_some_and(|last| has_content(last) && by_agent(last))
}

/// Elements between the messages of OpenAI's conversations.
const CALLS: [&str; 3] = ["function_call", "function_call_output", "reasoning"];

fn has_content(message: &Value) -> bool {
    message.get("content").is_some() || message["parts"].is_array()
}

/// Reports whether a message is one of the agent.
fn by_agent(message: &Value) -> bool {
    let authors = [&message["role"], &message["type"], &message["kind"]];
    let author = authors.into_iter().find_map(Value::as_str);
    matches!(author, Some("assistant" | "ai" | "AIMessage" | "model" | "response" | "agent" | "bot"))
}
