//! Events of OpenAI Responses. The last event has the whole response, so the others matter if it did not come.

use serde_json::{Map, Value};

/// Further items of the output, and further parts of one of them, are left out.
const MAX_ITEMS: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct ResponsesStream {
    response: Map<String, Value>,
    items: Vec<(u64, Value)>,
}

impl ResponsesStream {
    pub(super) fn event(&mut self, mut event: Value) {
        if let Some(Value::Object(response)) = event.get_mut("response").map(Value::take) {
            self.response = response;
        }
        let Some(index) = event["output_index"].as_u64() else { return };
        let taken = |event: &mut Value, name: &str| event.get_mut(name).map(Value::take);
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "response.output_item.added" | "response.output_item.done" => {
                let Some(item) = taken(&mut event, "item") else { return };
                if let Some(found) = self.item(index) {
                    *found = item;
                } else if self.items.len() < MAX_ITEMS {
                    self.items.push((index, item));
                }
            }
            "response.content_part.added" | "response.reasoning_summary_part.added" => {
                let (list, position) = place(&kind, &event);
                let part = taken(&mut event, "part").unwrap_or_default();
                if let Some(found) = self.part(index, list, position) {
                    *found = part;
                }
            }
            kind => {
                let Some(kind) = kind.strip_suffix(".delta") else { return };
                let Some(delta) = event["delta"].as_str() else { return };
                let text = match kind {
                    "response.output_text" | "response.reasoning_text" | "response.reasoning_summary_text" => "text",
                    "response.refusal" => "refusal",
                    "response.function_call_arguments" | "response.mcp_call_arguments" => "arguments",
                    "response.custom_tool_call_input" => "input",
                    "response.code_interpreter_call_code" => "code",
                    _ => return,
                };
                let (list, position) = place(kind, &event);
                let holder = match text {
                    "text" | "refusal" => self.part(index, list, position),
                    _ => self.item(index),
                };
                append(holder, text, delta);
            }
        }
    }

    fn item(&mut self, index: u64) -> Option<&mut Value> {
        self.items.iter_mut().rev().find(|(found, _)| *found == index).map(|(_, item)| item)
    }

    /// Returns a part of an item, and adds it if it is the next one.
    fn part(&mut self, index: u64, list: &str, position: usize) -> Option<&mut Value> {
        let Some(Value::Object(item)) = self.item(index) else { return None };
        let Value::Array(parts) = item.entry(list).or_insert_with(|| Value::Array(Vec::new())) else { return None };
        if parts.len() == position && position < MAX_ITEMS {
            parts.push(Value::Object(Map::new()));
        }
        parts.get_mut(position)
    }

    pub(super) fn finish(mut self) -> Value {
        // Some servers leave the output out of the last event.
        let has_output = self.response.get("output").and_then(Value::as_array).is_some_and(|items| !items.is_empty());
        if !has_output && !self.items.is_empty() {
            self.items.sort_by_key(|(index, _)| *index);
            let items = self.items.into_iter().map(|(_, item)| item).collect();
            self.response.insert("output".into(), Value::Array(items));
        }
        Value::Object(self.response)
    }
}

/// Returns the list of an item that an event is about, and the position in it.
fn place(kind: &str, event: &Value) -> (&'static str, usize) {
    let (list, field) = match kind.contains("reasoning_summary") {
        true => ("summary", "summary_index"),
        false => ("content", "content_index"),
    };
    (list, event[field].as_u64().and_then(|position| usize::try_from(position).ok()).unwrap_or(0))
}

fn append(holder: Option<&mut Value>, name: &str, delta: &str) {
    let Some(Value::Object(fields)) = holder else { return };
    match fields.get_mut(name) {
        Some(Value::String(text)) => text.push_str(delta),
        _ => _ = fields.insert(name.to_owned(), delta.into()),
    }
}
