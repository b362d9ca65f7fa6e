//! Where each value comes from that one side gave its tools.

use std::collections::HashMap;

use counterproof_artifact::EventBody;
use counterproof_artifact::pointer;
use serde_json::{Map, Value};

use super::search::{Search, Sought, Source};
use super::tokens::{Reader, Token};
use crate::diff::counterparts::Holder;
use crate::load::LoadedAnswer;
use crate::load::case_input::CaseInput;
use crate::load::payload;
use crate::values::hashed::HashedSet;
use crate::values::{same_object, text_hash};

/// Whole numbers below this are too common to come from anywhere.
pub(super) const SMALL: i128 = 10;

/// A text of more words than this is not looked for as a whole.
pub(super) const LONG: usize = 16;

/// Numbers of an output that are followed to where they come from.
const NUMBERS_FOLLOWED: usize = 100;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It says too little to come from anywhere.
    Exempt,
    /// From the input of the case.
    Input,
    /// From this event.
    Event(usize),
    /// From nothing that the agent was given.
    Nowhere,
    /// From nothing that could be searched; before it came a payload that is too large to be.
    Unknown,
}

impl Origin {
    /// True where the value was seen before it was used.
    pub(crate) const fn is_grounded(self) -> bool {
        matches!(self, Origin::Input | Origin::Event(_))
    }
}

/// A value that was given to a tool, or is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf<'a> {
    /// Where it stands.
    pub holder: Holder,
    /// The how-manieth leaf of its holder it is, counted from 0.
    pub ordinal: usize,
    /// The same for leaves of one tool under one pointer, array indexes left out.
    pub place: u64,
    /// The value.
    pub value: &'a Value,
    /// Where it comes from.
    pub origin: Origin,
    /// True for a sum: what it comes from is what its numbers come from, and which of them it takes is the agent's choice.
    pub is_sum: bool,
}

/// The values that one side's agent gave to its tools, and where they come from.
#[derive(Debug, Default)]
pub(crate) struct Origins<'a> {
    /// In the order of the calls, then of the actions.
    pub leaves: Vec<Leaf<'a>>,
    /// Whether the input of the case was there to be searched.
    pub input_is_known: bool,
    /// The action that each call carried out, where it says so.
    carried_out: HashMap<usize, usize>,
}

impl<'a> Origins<'a> {
    /// Looks for the values of an answer in what its agent was given.
    pub(crate) fn of(loaded: &'a LoadedAnswer, asked: &CaseInput<'_>) -> Self {
        let mut search = Search::default();
        let mut leaves = Vec::new();
        each_holder(loaded, |holder, tool, arguments| {
            let mut ordinal = 0;
            each_leaf(arguments, root(tool), &mut |place, value| {
                let sought = search.seek(value);
                let is_sum = matches!(sought, Sought::Sum(_));
                leaves.push((Leaf { holder, ordinal, place, value, origin: Origin::Exempt, is_sum }, sought));
                ordinal += 1;
            });
        });
        search.read_input(asked);
        let opaque = search.read_events(loaded);
        let carriers = Carriers::of(loaded);
        let mut locate = |search: &Search| {
            let mut missing = false;
            for (leaf, sought) in &mut leaves {
                leaf.origin = search.origin(sought, carriers.limit(leaf.holder), opaque);
                missing |= leaf.origin == Origin::Nowhere;
            }
            missing
        };
        // The request is another file: it is opened only where something is missing.
        let mut input_is_known = asked.case_is_known();
        if locate(&search)
            && let Some(request) = asked.request()
        {
            input_is_known = true;
            Source { position: 0, search: &mut search, own: &HashedSet::default() }.read(request);
            locate(&search);
        }
        let leaves = leaves.into_iter().map(|(leaf, _)| leaf).collect();
        Self { leaves, input_is_known, carried_out: carriers.carried_out }
    }

    /// The action that a call carried out, where it says so.
    pub(crate) fn action_of(&self, holder: Holder) -> Option<Holder> {
        let Holder::Call(call) = holder else { return None };
        self.carried_out.get(&call).copied().map(Holder::Action)
    }

    /// The leaves of a call or an action.
    pub(crate) fn held_by(&self, holder: Holder) -> &[Leaf<'a>] {
        // The leaves are in the order of their holders: calls, then actions.
        let start = self.leaves.partition_point(|leaf| leaf.holder < holder);
        let length = self.leaves[start..].partition_point(|leaf| leaf.holder == holder);
        &self.leaves[start..start + length]
    }
}

/// True where two answers were given the same and gave their tools the same: then no value lost its source.
pub(crate) fn is_same_transcript(baseline: &LoadedAnswer, new: &LoadedAnswer) -> bool {
    let (old, other) = (&baseline.answer, &new.answer);
    let same_event = |index: usize| match (&old.events[index].body, &other.events[index].body) {
        (EventBody::ToolCall(a), EventBody::ToolCall(b)) => a.tool == b.tool && same_object(&a.args, &b.args),
        (EventBody::ToolResult(a), EventBody::ToolResult(b)) => a.status == b.status && same_object(&a.extra, &b.extra),
        (EventBody::Retrieval(a), EventBody::Retrieval(b)) => a.doc_ids == b.doc_ids && same_object(&a.extra, &b.extra),
        (EventBody::FinalOutput(_), EventBody::FinalOutput(_)) => true,
        (EventBody::Unknown { kind: a, fields: x }, EventBody::Unknown { kind: b, fields: y }) => {
            a == b && same_object(x, y)
        }
        _ => false,
    };
    let actions = old.proposed_actions.iter().zip(&other.proposed_actions);
    old.events.len() == other.events.len()
        && old.proposed_actions.len() == other.proposed_actions.len()
        && actions.into_iter().all(|(a, b)| a.tool_name == b.tool_name && same_object(&a.params, &b.params))
        && (0..old.events.len()).all(same_event)
        && (0..old.events.len()).all(|index| payload::is_same(baseline.payload(index), new.payload(index)))
}

/// Where values come from that were said in the end, and given to no tool: each in its turn.
pub(crate) fn origins_of_values(loaded: &LoadedAnswer, asked: &CaseInput<'_>, values: &[Value]) -> Vec<Origin> {
    if values.is_empty() {
        return Vec::new();
    }
    let mut search = Search::default();
    let mut sought = Vec::new();
    for value in values {
        each_below(value, 0, &mut |_, leaf| sought.push(search.seek(leaf)));
    }
    search.read_input(asked);
    let opaque = search.read_events(loaded);
    sought.iter().map(|sought| search.origin(sought, loaded.answer.events.len(), opaque)).collect()
}

/// The numbers and ids that only the first of two texts has, as they stand there, at most some hundred.
pub(crate) fn numbers_only_in(mine: &str, theirs: &str) -> Vec<String> {
    let known: HashedSet = numbers(theirs).collect();
    let words = mine.split_whitespace().filter(|word| numbers(word).any(|number| !known.contains(&number)));
    words.take(NUMBERS_FOLLOWED).map(str::to_owned).collect()
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let mut found = Vec::new();
    Reader::default().text(text, &mut |token| {
        if let Token::Word { hash, digits: true, .. } = token {
            found.push(hash);
        }
    });
    found.into_iter()
}

/// True for a long text that is mostly words: what an agent writes, not what it copies.
pub(super) const fn is_prose(words: usize, numbers: usize) -> bool {
    words > LONG && numbers * 2 < words
}

fn prose(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    let (mut words, mut numbers) = (0, 0);
    Reader::default().text(text, &mut |token| {
        if let Token::Word { digits, .. } = token {
            words += 1;
            numbers += usize::from(digits);
        }
    });
    is_prose(words, numbers).then_some(text)
}

/// How far two values are apart, as far as their wording is not: prose by its numbers, anything else wholly or not at all.
pub(crate) fn distance_of_values(old: &Value, new: &Value) -> f64 {
    match (prose(old), prose(new)) {
        (Some(old), Some(new)) => distance_of_numbers(old, new),
        _ => 1.0,
    }
}

/// How far the numbers and ids in two texts are apart, as sets: between 0 (the same) and 1 (none in common).
pub(crate) fn distance_of_numbers(old: &str, new: &str) -> f64 {
    let (old, new): (HashedSet, HashedSet) = (numbers(old).collect(), numbers(new).collect());
    let all = old.len() + new.len();
    if all == 0 { 0.0 } else { 1.0 - 2.0 * old.intersection(&new).count() as f64 / all as f64 }
}

/// The pointer within an artifact to a leaf of a call's arguments or an action's parameters.
pub(crate) fn leaf_pointer(loaded: &LoadedAnswer, holder: Holder, ordinal: usize) -> String {
    let (mut path, arguments) = match holder {
        Holder::Call(index) => match &loaded.answer.events[index].body {
            EventBody::ToolCall(call) => (format!("/events/{index}/args"), &call.args),
            _ => return format!("/events/{index}"),
        },
        Holder::Action(index) => {
            (format!("/proposed_actions/{index}/params"), &loaded.answer.proposed_actions[index].params)
        }
    };
    let mut left = ordinal;
    arguments.iter().any(|(key, value)| lead(&mut path, key, value, &mut left));
    path
}

/// Leads a pointer on to a leaf below a value, if it has so many.
fn lead(path: &mut String, key: &str, value: &Value, left: &mut usize) -> bool {
    let length = path.len();
    pointer::push(path, key);
    let found = match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| lead(path, key, value, left)),
        Value::Array(items) => {
            items.iter().enumerate().any(|(index, value)| lead(path, &index.to_string(), value, left))
        }
        _ if *left == 0 => true,
        _ => {
            *left -= 1;
            false
        }
    };
    if !found {
        path.truncate(length);
    }
    found
}

/// Every call and action that gives a tool something, in order.
pub(super) fn each_holder<'a>(loaded: &'a LoadedAnswer, mut take: impl FnMut(Holder, &'a str, &'a Map<String, Value>)) {
    for (index, event) in loaded.answer.events.iter().enumerate() {
        if let EventBody::ToolCall(call) = &event.body {
            take(Holder::Call(index), &call.tool, &call.args);
        }
    }
    for (index, action) in loaded.answer.proposed_actions.iter().enumerate() {
        take(Holder::Action(index), &action.tool_name, &action.params);
    }
}

/// The place of a tool's arguments.
pub(super) fn root(tool: &str) -> u64 {
    text_hash(tool)
}

/// Every leaf of an object with its place.
pub(super) fn each_leaf<'a>(fields: &'a Map<String, Value>, place: u64, take: &mut impl FnMut(u64, &'a Value)) {
    for (key, value) in fields {
        each_below(value, super::tokens::pair(place, text_hash(key)), take);
    }
}

pub(super) fn each_below<'a>(value: &'a Value, place: u64, take: &mut impl FnMut(u64, &'a Value)) {
    match value {
        Value::Object(fields) => each_leaf(fields, place, take),
        Value::Array(items) => items.iter().for_each(|item| each_below(item, place, take)),
        leaf => take(place, leaf),
    }
}

/// Which call carried out which action.
struct Carriers {
    /// By the index of the call.
    carried_out: HashMap<usize, usize>,
    /// For each action, up to which position it could have seen what it was given: an action stands where the call stands
    /// that carried it out, or at the end.
    limits: Vec<usize>,
}

impl Carriers {
    fn of(loaded: &LoadedAnswer) -> Self {
        let actions = loaded.answer.proposed_actions.iter().enumerate();
        let by_id: HashMap<_, _> = actions.map(|(index, action)| (action.action_id.as_str(), index)).collect();
        let mut limits = vec![loaded.answer.events.len(); loaded.answer.proposed_actions.len()];
        let mut carried_out = HashMap::new();
        for (index, event) in loaded.answer.events.iter().enumerate() {
            if let EventBody::ToolCall(call) = &event.body
                && let Some(&action) = call.action_id.as_deref().and_then(|id| by_id.get(id))
            {
                carried_out.insert(index, action);
                limits[action] = limits[action].min(index);
            }
        }
        Self { carried_out, limits }
    }

    fn limit(&self, holder: Holder) -> usize {
        match holder {
            Holder::Call(index) => index,
            Holder::Action(index) => self.limits[index],
        }
    }
}
