//! Whether the agents of the two sides were given the same records: an environment that was seeded anew answers with other orders and
//! other customers, and then no difference says anything about the agent.
//!
//! Names of tools and fields are the same in either case, so only values show it: the ids among what an agent received.

use counterproof_artifact::EventBody;
use serde_json::{Map, Value};

use crate::load::LoadedAnswer;
use crate::load::case_input;
use crate::load::payload::Payload;
use crate::values::meaning::HashedSet;
use crate::values::tokens::{Reader, Token};

/// Fewest characters of an id. Shorter words with digits are amounts, sizes and numbers of items, which any two records share.
const ID_CHARS: usize = 5;

/// Fewest ids of a side. A single one may be made for the call, such as the number of a receipt.
const IDS: usize = 2;

/// Whether no id that one agent received was received by the other. `None` if one of them received too few to tell.
pub(crate) fn are_different(baseline: &LoadedAnswer, new: &LoadedAnswer) -> Option<bool> {
    let baseline = received_ids(baseline);
    if baseline.len() < IDS {
        return None;
    }
    let new = received_ids(new);
    (new.len() >= IDS).then(|| baseline.is_disjoint(&new))
}

fn received_ids(loaded: &LoadedAnswer) -> HashedSet {
    let mut ids = HashedSet::default();
    for (index, event) in loaded.answer.events.iter().enumerate() {
        match &event.body {
            EventBody::ToolResult(_) | EventBody::Retrieval(_) => match loaded.payload(index) {
                Some(Payload::Text(text)) => add_text(&mut ids, text),
                Some(Payload::Object(fields)) => add_fields(&mut ids, fields),
                Some(Payload::Other(value)) => add(&mut ids, value),
                None => {}
            },
            EventBody::Unknown { kind, fields } if case_input::is_user_turn(kind, fields) => {
                add_fields(&mut ids, fields);
            }
            _ => {}
        }
    }
    ids
}

fn add_fields(ids: &mut HashedSet, fields: &Map<String, Value>) {
    fields.values().for_each(|value| add(ids, value));
}

fn add(ids: &mut HashedSet, value: &Value) {
    match value {
        Value::Object(fields) => add_fields(ids, fields),
        Value::Array(items) => items.iter().for_each(|item| add(ids, item)),
        Value::String(text) => add_text(ids, text),
        // Fractions are amounts.
        Value::Number(number) if !number.is_f64() => add_text(ids, &number.to_string()),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn add_text(ids: &mut HashedSet, text: &str) {
    Reader::default().text(text, &mut |token| match token {
        Token::Word(word) if word.has_digit && word.length >= ID_CHARS => {
            ids.insert(word.hash);
        }
        _ => {}
    });
}
