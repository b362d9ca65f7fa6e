//! Which differing step explains an effect. Agents read more than they use, and in another order each time: a read that only
//! moved, that was made on both sides, or that nothing rests on explains nothing.

use std::collections::HashSet;

use counterproof_artifact::{EventBody, Side, Sides};
use serde_json::{Map, Value};

use super::effect::Effect;
use super::inquiry::Inquiry;
use crate::diff::EventRole;
use crate::grounding::Holder;
use crate::load::LoadedAnswer;
use crate::values::{key_of, meaning_hash, object_hash};

/// Shorter texts and smaller numbers are equal by chance.
const SHORTEST: usize = 3;

/// What decides whether a step explains an effect.
pub(super) struct Relevance<'i, 'a> {
    inquiry: &'i Inquiry<'a>,
    /// The values that the effect was given, of both sides.
    values: HashSet<u64>,
    /// The calls of each side, by tool and arguments.
    calls: Sides<HashSet<u64>>,
}

impl<'i, 'a> Relevance<'i, 'a> {
    pub(super) fn new(inquiry: &'i Inquiry<'a>, effect: Effect) -> Self {
        let mut values = HashSet::new();
        for (side, holder) in effect.holders(inquiry) {
            if let Some(arguments) = arguments(inquiry.side(side).loaded, holder) {
                add_values(arguments, &mut values);
            }
        }
        let calls = Sides::from_fn(|side| {
            let events = &inquiry.side(side).loaded.answer.events;
            events.iter().filter_map(|event| call_key(&event.body)).collect()
        });
        Self { inquiry, values, calls }
    }

    /// True if a differing event explains the effect. `by_value` if a changed value first occurs in it.
    pub(super) fn explains(&self, side: Side, event: usize, by_value: bool) -> bool {
        let counterpart = self.inquiry.provenance.counterparts.event(side, event);
        let row = &self.inquiry.differences.events[counterpart.row];
        if row.role(self.inquiry.answers()) != EventRole::Step || row.differs_in_form_only() {
            return false;
        }
        if counterpart.other.is_some() {
            return !row.moved || !row.changes.is_empty();
        }
        let loaded = self.inquiry.side(side).loaded;
        let Some(EventBody::ToolCall(call)) = call_of(loaded, event) else { return true };
        let is_made_there = self.calls.get(side.other()).contains(&key_of((&call.tool, object_hash(&call.args))));
        !is_made_there && (by_value || self.concerns_effect(&call.args))
    }

    /// True if a call was given a value that the effect was given too: it is about the same thing.
    fn concerns_effect(&self, arguments: &Map<String, Value>) -> bool {
        let mut values = HashSet::new();
        add_values(arguments, &mut values);
        values.iter().any(|value| self.values.contains(value))
    }
}

/// The call that an event belongs to: the call itself, or the call of a result.
fn call_of(loaded: &LoadedAnswer, event: usize) -> Option<&EventBody> {
    let events = &loaded.answer.events;
    match &events[event].body {
        EventBody::ToolResult(result) => Some(&events[loaded.index.call_position(&result.call_id)?].body),
        body => Some(body),
    }
}

fn call_key(body: &EventBody) -> Option<u64> {
    match body {
        EventBody::ToolCall(call) => Some(key_of((&call.tool, object_hash(&call.args)))),
        _ => None,
    }
}

fn arguments(loaded: &LoadedAnswer, holder: Holder) -> Option<&Map<String, Value>> {
    match holder {
        Holder::Action(index) => Some(&loaded.answer.proposed_actions[index].params),
        Holder::Call(index) => match &loaded.answer.events[index].body {
            EventBody::ToolCall(call) => Some(&call.args),
            _ => None,
        },
    }
}

fn add_values(arguments: &Map<String, Value>, values: &mut HashSet<u64>) {
    for value in arguments.values() {
        match value {
            Value::Object(fields) => add_values(fields, values),
            Value::Array(items) => values.extend(items.iter().filter(|item| is_telling(item)).map(meaning_hash)),
            value if is_telling(value) => {
                values.insert(meaning_hash(value));
            }
            _ => {}
        }
    }
}

fn is_telling(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() >= SHORTEST,
        Value::Number(number) => number.to_string().len() >= SHORTEST,
        _ => false,
    }
}
