//! The arguments of the calls of one side for a reader: each with its value, and what the value is from.

use std::collections::HashSet;

use serde_json::Value;

use super::origins::{Leaf, Origins, leaf_pointer};
use super::{Holder, Origin};
use crate::load::LoadedAnswer;
use crate::values::text;

/// Maximum number of arguments of a side.
const LISTED: usize = 200;

/// Characters of a value.
const VALUE_CHARS: usize = 60;

/// An argument that an agent passed to a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedArgument {
    /// The tool.
    pub tool: String,
    /// The JSON pointer of the value within the answer.
    pub pointer: String,
    /// The value as short JSON, a text without quotes.
    pub value: String,
    /// What the value is from.
    pub source: ValueSource,
}

/// What a value is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSource {
    /// What was asked contains it.
    Request,
    /// This event, such as the result of a tool, is the first that contains it.
    Event(usize),
    /// Nothing that was recorded contains it.
    Nothing,
    /// It was not looked for: such values are everywhere, or an earlier result was too large to search.
    NotTraced,
}

/// The arguments of the calls, then those of the actions that no call carried out.
pub(crate) fn of_side(loaded: &LoadedAnswer, origins: &Origins<'_>) -> Vec<TracedArgument> {
    let carried: HashSet<Holder> = origins.leaves.iter().filter_map(|leaf| origins.action_of(leaf.holder)).collect();
    let leaves = origins.leaves.iter().filter(|leaf| !carried.contains(&leaf.holder));
    leaves.take(LISTED).map(|leaf| traced(loaded, leaf)).collect()
}

fn traced(loaded: &LoadedAnswer, leaf: &Leaf<'_>) -> TracedArgument {
    let tool = match leaf.holder {
        Holder::Call(index) => loaded.answer.events[index].tool_call().map(|call| &call.tool),
        Holder::Action(index) => Some(&loaded.answer.proposed_actions[index].tool_name),
    };
    TracedArgument {
        tool: tool.cloned().unwrap_or_default(),
        pointer: leaf_pointer(loaded, leaf.holder, leaf.ordinal),
        value: match leaf.value {
            Value::String(words) => text::one_line(words, VALUE_CHARS),
            other => text::one_line(&other.to_string(), VALUE_CHARS),
        },
        source: match leaf.origin {
            Origin::Input => ValueSource::Request,
            Origin::Event(index) => ValueSource::Event(index),
            Origin::Nowhere => ValueSource::Nothing,
            Origin::Exempt | Origin::Unknown => ValueSource::NotTraced,
        },
    }
}
