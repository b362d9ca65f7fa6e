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
    let answers = [baseline, new];
    let mut ids = [HashedSet::default(), HashedSet::default()];
    let steps = answers.map(|loaded| loaded.answer.events.len()).into_iter().max().unwrap_or_default();
    // Most agents share an id from the first results on. Looking at the steps in parts that double finds it without the rest.
    let (mut from, mut to) = (0, 2);
    while from < steps {
        for (loaded, ids) in answers.iter().zip(&mut ids) {
            (from..to.min(loaded.answer.events.len())).for_each(|index| add_received(ids, loaded, index));
        }
        if is_enough(&ids) && !ids[0].is_disjoint(&ids[1]) {
            return Some(false);
        }
        (from, to) = (to, to.saturating_mul(2));
    }
    is_enough(&ids).then_some(true)
}

fn is_enough(ids: &[HashedSet; 2]) -> bool {
    ids.iter().all(|ids| ids.len() >= IDS)
}

/// Adds the ids that an agent received in a step.
fn add_received(ids: &mut HashedSet, loaded: &LoadedAnswer, index: usize) {
    match &loaded.answer.events[index].body {
        EventBody::ToolResult(_) | EventBody::Retrieval(_) => match loaded.payload(index) {
            Some(Payload::Text(text)) => add_text(ids, text),
            Some(Payload::Object(fields)) => add_fields(ids, fields),
            Some(Payload::Other(value)) => add(ids, value),
            None => {}
        },
        EventBody::Unknown { kind, fields } if case_input::is_user_turn(kind, fields) => add_fields(ids, fields),
        _ => {}
    }
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
