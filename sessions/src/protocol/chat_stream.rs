//! Chunks of OpenAI Chat Completions, joined into a completion.
//!
//! Deltas are joined by their form and not by their names, so that fields of other servers, such as `reasoning_content`,
//! are kept.

use serde_json::{Map, Value};

/// Further choices, and further items with an index in one of them, are left out. Servers send few.
const MAX_ITEMS: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct ChatStream {
    /// The fields of the chunks other than `choices`.
    completion: Map<String, Value>,
    choices: Vec<Choice>,
}

#[derive(Debug)]
struct Choice {
    index: u64,
    message: Value,
    rest: Map<String, Value>,
}

impl ChatStream {
    pub(super) fn chunk(&mut self, chunk: Value) {
        let Value::Object(chunk) = chunk else { return };
        for (name, value) in chunk {
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("choices", Value::Array(choices)) => choices.into_iter().for_each(|choice| self.choice(choice)),
                ("object", _) => _ = self.completion.insert(name, "chat.completion".into()),
                // `usage` too: the last chunk that has one counts.
                (_, value) => _ = self.completion.insert(name, value),
            }
        }
    }

    fn choice(&mut self, choice: Value) {
        let Value::Object(choice) = choice else { return };
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let position = match self.choices.iter().position(|found| found.index == index) {
            Some(position) => position,
            None if self.choices.len() == MAX_ITEMS => return,
            None => {
                self.choices.push(Choice { index, message: Value::Object(Map::new()), rest: Map::new() });
                self.choices.len() - 1
            }
        };
        let found = &mut self.choices[position];
        for (name, value) in choice {
            match name.as_str() {
                "index" => {}
                "delta" => join(&mut found.message, value),
                _ => join_field(&mut found.rest, name, value),
            }
        }
    }

    /// True if every choice has ended.
    pub(super) fn is_finished(&self) -> bool {
        let has_ended = |choice: &Choice| choice.rest.get("finish_reason").is_some_and(Value::is_string);
        !self.choices.is_empty() && self.choices.iter().all(has_ended)
    }

    pub(super) fn finish(mut self) -> Value {
        self.choices.sort_by_key(|choice| choice.index);
        let choices = self.choices.into_iter().map(|Choice { index, mut message, rest }| {
            if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
                // Only chunks have it.
                calls.sort_by_key(index_of);
                calls.iter_mut().filter_map(Value::as_object_mut).for_each(|call| _ = call.shift_remove("index"));
            }
            let mut choice = Map::from_iter([("index".into(), index.into()), ("message".into(), message)]);
            choice.extend(rest);
            Value::Object(choice)
        });
        let choices = choices.collect();
        let mut completion = self.completion;
        let usage = completion.shift_remove("usage");
        completion.insert("choices".into(), Value::Array(choices));
        if let Some(usage) = usage {
            completion.insert("usage".into(), usage);
        }
        Value::Object(completion)
    }
}

/// Adds a delta. Texts and lists grow, objects are joined field by field, and other values are replaced.
fn join(joined: &mut Value, delta: Value) {
    match (joined, delta) {
        (_, Value::Null) => {}
        (Value::Object(fields), Value::Object(delta)) => {
            for (name, value) in delta {
                join_field(fields, name, value);
            }
        }
        (Value::String(text), Value::String(delta)) => text.push_str(&delta),
        (Value::Array(items), Value::Array(delta)) => delta.into_iter().for_each(|item| join_item(items, item)),
        (joined, delta) => *joined = delta,
    }
}

fn join_field(fields: &mut Map<String, Value>, name: String, delta: Value) {
    match (fields.get_mut(&name), delta) {
        // Two calls with one index can be in the first delta of a list, too.
        (None | Some(Value::Null), Value::Array(items)) => {
            let mut joined = Vec::new();
            items.into_iter().for_each(|item| join_item(&mut joined, item));
            fields.insert(name, Value::Array(joined));
        }
        (None, delta) => _ = fields.insert(name, delta),
        (Some(joined), delta) => match name.as_str() {
            // Some servers repeat these in each chunk, and others send them empty.
            "id" | "type" | "role" | "finish_reason" if joined.is_string() => {
                if delta.as_str().is_some_and(|text| !text.is_empty()) {
                    *joined = delta;
                }
            }
            "name" if *joined == delta => {}
            _ => join(joined, delta),
        },
    }
}

fn join_item(items: &mut Vec<Value>, delta: Value) {
    // Some servers give parallel calls the same index, and others none. Their ids differ.
    let id_of = |item: &Value| item.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
    let (id, index) = (id_of(&delta), index_of(&delta));
    let is_same = |item: &Value| {
        index_of(item) == index && id.as_deref().is_none_or(|id| id_of(item).is_none_or(|found| found == id))
    };
    let position = match index {
        Some(_) => items.iter().rposition(is_same),
        None if is_continuation(&delta) => items.len().checked_sub(1),
        None => None,
    };
    match position {
        Some(position) => join(&mut items[position], delta),
        None if index.is_none() || items.len() < MAX_ITEMS => items.push(delta),
        None => {}
    }
}

/// True for a part of a tool call that has neither a name nor an id.
fn is_continuation(delta: &Value) -> bool {
    delta.get("function").is_some_and(|function| function.get("name").is_none_or(Value::is_null))
}

fn index_of(item: &Value) -> Option<u64> {
    item.get("index").and_then(Value::as_u64)
}
