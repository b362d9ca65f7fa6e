//! Events of Anthropic Messages, joined into a message.

use serde_json::{Map, Value};

/// Further content blocks are left out.
const MAX_BLOCKS: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct AnthropicStream {
    message: Map<String, Value>,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    index: u64,
    fields: Map<String, Value>,
    /// The parts of `input`, which are JSON only together.
    input: String,
}

impl AnthropicStream {
    pub(super) fn event(&mut self, mut event: Value) {
        let index = event["index"].as_u64().unwrap_or(0);
        let mut take = |name: &str| event.get_mut(name).map(Value::take);
        match take("type").as_ref().and_then(Value::as_str) {
            Some("message_start") => {
                if let Some(Value::Object(message)) = take("message") {
                    self.message = message;
                }
            }
            Some("content_block_start") => {
                if let Some(Value::Object(fields)) = take("content_block")
                    && self.blocks.len() < MAX_BLOCKS
                {
                    self.blocks.push(Block { index, fields, input: String::new() });
                }
            }
            Some("content_block_delta") => {
                if let Some(Value::Object(delta)) = take("delta")
                    && let Some(block) = self.blocks.iter_mut().rev().find(|block| block.index == index)
                {
                    block.add(delta);
                }
            }
            Some("message_delta") => {
                if let Some(Value::Object(delta)) = take("delta") {
                    self.message.extend(delta);
                }
                if let Some(Value::Object(usage)) = take("usage") {
                    self.add_usage(usage);
                }
            }
            _ => {}
        }
    }

    /// The counts are those of the whole message up to now, and not differences.
    fn add_usage(&mut self, usage: Map<String, Value>) {
        let known = self.message.entry("usage").or_insert_with(|| Value::Object(Map::new()));
        match known {
            Value::Object(known) => known.extend(usage.into_iter().filter(|(_, count)| !count.is_null())),
            known => *known = Value::Object(usage),
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.message.get("stop_reason").is_some_and(Value::is_string)
    }

    pub(super) fn finish(mut self) -> Value {
        let blocks: Vec<Value> = self.blocks.into_iter().map(Block::finish).collect();
        if !blocks.is_empty() || !self.message.contains_key("content") {
            self.message.insert("content".into(), Value::Array(blocks));
        }
        Value::Object(self.message)
    }
}

impl Block {
    /// Adds a delta. Each of its fields but `type` continues the field of the block.
    fn add(&mut self, delta: Map<String, Value>) {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("type", _) => {}
                ("partial_json", Value::String(part)) => self.input.push_str(&part),
                // Citations come one by one.
                ("citation", citation) => match self.fields.get_mut("citations") {
                    Some(Value::Array(citations)) => citations.push(citation),
                    _ => _ = self.fields.insert("citations".into(), Value::Array(vec![citation])),
                },
                (_, Value::String(part)) => match self.fields.get_mut(&name) {
                    Some(Value::String(text)) => text.push_str(&part),
                    _ => _ = self.fields.insert(name, Value::String(part)),
                },
                (_, value) => _ = self.fields.insert(name, value),
            }
        }
    }

    fn finish(mut self) -> Value {
        if !self.input.is_empty() {
            // A part of JSON is kept as the text that it is.
            let input = serde_json::from_str(&self.input).unwrap_or(Value::String(self.input));
            self.fields.insert("input".into(), input);
        }
        Value::Object(self.fields)
    }
}
