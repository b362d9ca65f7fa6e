//! Where the values come from that an agent gives its tools: the case's input, or an earlier event of its own side. A value
//! that comes from nowhere was made up. Whether that matters is for the findings.
//!
//! What the agent wrote itself is no source: not the arguments of calls, not queries, not outputs; nor is a failed result
//! that only gives back what its own call was given. All else is, unknown types of events included. The words that are
//! looked for are collected first and each text is then read once, so that the cost is that of reading.

mod places;
mod suspects;
mod tokens;

pub use places::{Places, Usual};
pub use suspects::{Suspect, suspects};

use std::collections::HashMap;

use counterproof_artifact::{EventBody, ToolStatus, pointer};
use serde_json::{Map, Value};

use crate::asked::Asked;
use crate::diff::json::{same_object, text_hash};
use crate::hashed::{HashedMap, HashedSet};
use crate::load::LoadedAnswer;
use crate::payload::{self, Payload};
use tokens::{Reader, Token};

/// Whole numbers below this are too common to come from anywhere.
const SMALL: i128 = 10;

/// A text of more words than this is not looked for as a whole.
const LONG: usize = 16;

/// Numbers of an output that are followed to where they come from.
const NUMBERS_FOLLOWED: usize = 100;

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// In the arguments of the call at this event.
    Call(usize),
    /// In the parameters of this proposed action.
    Action(usize),
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
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
    pub const fn is_grounded(self) -> bool {
        matches!(self, Origin::Input | Origin::Event(_))
    }
}

/// A value that was given to a tool, or is to be.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
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
}

/// The values that one side's agent gave to its tools, and where they come from.
#[derive(Debug, Default)]
pub struct Origins<'a> {
    /// In the order of the calls, then of the actions.
    pub leaves: Vec<Leaf<'a>>,
    /// Whether the input of the case was there to be searched.
    pub input_is_known: bool,
    /// The action that each call carried out, where it says so.
    carried_out: HashMap<usize, usize>,
}

impl<'a> Origins<'a> {
    /// Looks for the values of an answer in what its agent was given.
    pub fn of(loaded: &'a LoadedAnswer, asked: &Asked<'_>) -> Self {
        let mut search = Search::default();
        let mut leaves = Vec::new();
        each_holder(loaded, |holder, tool, arguments| {
            let mut ordinal = 0;
            each_leaf(arguments, root(tool), &mut |place, value| {
                let sought = search.seek(value);
                leaves.push((Leaf { holder, ordinal, place, value, origin: Origin::Exempt }, sought));
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
    pub fn action_of(&self, holder: Holder) -> Option<Holder> {
        let Holder::Call(call) = holder else { return None };
        self.carried_out.get(&call).copied().map(Holder::Action)
    }

    /// The leaves of a call or an action.
    pub fn held_by(&self, holder: Holder) -> &[Leaf<'a>] {
        // The leaves are in the order of their holders: calls, then actions.
        let start = self.leaves.partition_point(|leaf| leaf.holder < holder);
        let length = self.leaves[start..].partition_point(|leaf| leaf.holder == holder);
        &self.leaves[start..start + length]
    }
}

/// True where two answers were given the same and gave their tools the same: then no value lost its source.
pub fn is_same_transcript(baseline: &LoadedAnswer, new: &LoadedAnswer) -> bool {
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
pub fn origins_of_values(loaded: &LoadedAnswer, asked: &Asked<'_>, values: &[Value]) -> Vec<Origin> {
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
pub fn numbers_only_in(mine: &str, theirs: &str) -> Vec<String> {
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
const fn is_prose(words: usize, numbers: usize) -> bool {
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
pub fn distance_of_values(old: &Value, new: &Value) -> f64 {
    match (prose(old), prose(new)) {
        (Some(old), Some(new)) => distance_of_numbers(old, new),
        _ => 1.0,
    }
}

/// How far the numbers and ids in two texts are apart, as sets: between 0 (the same) and 1 (none in common).
pub fn distance_of_numbers(old: &str, new: &str) -> f64 {
    let (old, new): (HashedSet, HashedSet) = (numbers(old).collect(), numbers(new).collect());
    let all = old.len() + new.len();
    if all == 0 { 0.0 } else { 1.0 - 2.0 * old.intersection(&new).count() as f64 / all as f64 }
}

/// The pointer within an artifact to a leaf of a call's arguments or an action's parameters.
pub fn leaf_pointer(loaded: &LoadedAnswer, holder: Holder, ordinal: usize) -> String {
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
fn each_holder<'a>(loaded: &'a LoadedAnswer, mut take: impl FnMut(Holder, &'a str, &'a Map<String, Value>)) {
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
fn root(tool: &str) -> u64 {
    text_hash(tool)
}

/// Every leaf of an object with its place.
fn each_leaf<'a>(fields: &'a Map<String, Value>, place: u64, take: &mut impl FnMut(u64, &'a Value)) {
    for (key, value) in fields {
        each_below(value, tokens::pair(place, text_hash(key)), take);
    }
}

fn each_below<'a>(value: &'a Value, place: u64, take: &mut impl FnMut(u64, &'a Value)) {
    match value {
        Value::Object(fields) => each_leaf(fields, place, take),
        Value::Array(items) => items.iter().for_each(|item| each_below(item, place, take)),
        leaf => take(place, leaf),
    }
}

/// What is looked for of a value.
#[derive(Debug)]
enum Sought {
    /// Nothing: it says too little.
    Nothing,
    /// All of these.
    Words(std::ops::Range<usize>),
    /// All of these, or the date with or without its year.
    Date(std::ops::Range<usize>, [u64; 2]),
}

/// What is looked for, and where it was first seen.
#[derive(Debug, Default)]
struct Search {
    /// By word, pair of words or date: the first position, or `UNSEEN`. The input is 0, event i is i + 1.
    seen: HashedMap<usize>,
    words: Vec<u64>,
    reader: Reader,
}

const UNSEEN: usize = usize::MAX;

impl Search {
    fn seek(&mut self, value: &Value) -> Sought {
        match value {
            Value::String(_) => {}
            Value::Number(number) if number.as_i128().is_none_or(|whole| whole.abs() >= SMALL) => {}
            _ => return Sought::Nothing,
        }
        let mut words = Vec::new();
        self.reader.restart();
        self.reader.leaf(value, &mut |token| {
            if let Token::Word { hash, digits, length } = token {
                words.push((hash, digits, length));
            }
        });
        let start = self.words.len();
        match words.as_slice() {
            [] | [(_, _, 1)] => return Sought::Nothing,
            [(word, ..)] => self.words.push(*word),
            // The agent's own prose comes from nowhere, and rightly so.
            words if is_prose(words.len(), words.iter().filter(|(_, digits, _)| *digits).count()) => {}
            words if words.len() > LONG => {
                let numbers = words.iter().filter(|(_, digits, length)| *digits && *length > 1);
                self.words.extend(numbers.map(|(word, ..)| *word));
            }
            // Names may be put together from their parts; numbers and ids stand side by side wherever they came from.
            words if words.iter().all(|(_, digits, _)| !digits) => {
                self.words.extend(words.iter().map(|(word, ..)| *word));
            }
            words => self.words.extend(words.windows(2).map(|two| tokens::pair(two[0].0, two[1].0))),
        }
        let range = start..self.words.len();
        if range.is_empty() {
            return Sought::Nothing;
        }
        for word in &self.words[range.clone()] {
            self.seen.entry(*word).or_insert(UNSEEN);
        }
        match value.as_str().and_then(tokens::whole_date) {
            Some(date) => {
                for way in date {
                    self.seen.entry(way).or_insert(UNSEEN);
                }
                Sought::Date(range, date)
            }
            None => Sought::Words(range),
        }
    }

    /// Reads the input as the cases file has it.
    fn read_input(&mut self, asked: &Asked<'_>) {
        let mut input = Source { position: 0, search: self, own: &HashedSet::default() };
        asked.case_texts(|value| input.read(value));
    }

    /// Reads what the events gave the agent. Returns the first position behind a payload that could not be searched.
    fn read_events(&mut self, loaded: &LoadedAnswer) -> usize {
        let nothing = HashedSet::default();
        for (index, event) in loaded.answer.events.iter().enumerate() {
            let own = match &event.body {
                EventBody::ToolResult(result) if result.status == ToolStatus::Error => {
                    let call = loaded.index.call(&loaded.answer.events, &result.call_id);
                    call.map(|call| self.own_words(&call.args)).unwrap_or_default()
                }
                _ => HashedSet::default(),
            };
            let own = if own.is_empty() { &nothing } else { &own };
            let mut source = Source { position: index + 1, search: self, own };
            match &event.body {
                EventBody::ToolResult(result) => {
                    source.read_payload(loaded.payload(index));
                    source.read_fields(&result.extra);
                }
                EventBody::Retrieval(found) => {
                    found.doc_ids.iter().for_each(|id| source.read_text(id));
                    source.read_payload(loaded.payload(index));
                    source.read_fields(&found.extra);
                }
                EventBody::Unknown { fields, .. } => source.read_fields(fields),
                EventBody::ToolCall(_) | EventBody::FinalOutput(_) => {}
            }
        }
        loaded.payloads.first_unread().map_or(UNSEEN, |index| index + 1)
    }

    /// What is looked for of the arguments that a failed call was given.
    fn own_words(&mut self, args: &Map<String, Value>) -> HashedSet {
        let start = self.words.len();
        let mut dates = Vec::new();
        each_leaf(args, 0, &mut |_, value| {
            if let Sought::Date(_, ways) = self.seek(value) {
                dates.extend(ways);
            }
        });
        self.words.drain(start..).chain(dates).collect()
    }

    fn origin(&self, sought: &Sought, limit: usize, opaque: usize) -> Origin {
        let position = |word: &u64| self.seen.get(word).copied().unwrap_or(UNSEEN);
        let all =
            |range: &std::ops::Range<usize>| self.words[range.clone()].iter().map(position).max().unwrap_or(UNSEEN);
        let first = match sought {
            Sought::Nothing => return Origin::Exempt,
            Sought::Words(range) => all(range),
            Sought::Date(range, ways) => ways.iter().map(position).min().unwrap_or(UNSEEN).min(all(range)),
        };
        match first {
            0 => Origin::Input,
            position if position <= limit => Origin::Event(position - 1),
            _ if opaque <= limit => Origin::Unknown,
            _ => Origin::Nowhere,
        }
    }
}

/// A text that the agent was given, while it is read.
struct Source<'s> {
    position: usize,
    search: &'s mut Search,
    /// What does not count as seen here.
    own: &'s HashedSet,
}

impl Source<'_> {
    /// Reads a value: the leaves as one text, so that a value put together from several is found, and the keys apart.
    fn read(&mut self, value: &Value) {
        self.leaves(value, &mut None);
        self.keys(value);
    }

    fn read_payload(&mut self, payload: Option<Payload<'_>>) {
        match payload {
            Some(Payload::Text(text)) => self.read_text(text),
            Some(Payload::Object(fields)) => self.read_fields(fields),
            Some(Payload::Other(value)) => self.read(value),
            None => {}
        }
    }

    fn read_fields(&mut self, fields: &Map<String, Value>) {
        let mut last = None;
        fields.values().for_each(|value| self.leaves(value, &mut last));
        fields.iter().for_each(|(key, value)| self.key(key, value));
    }

    fn read_text(&mut self, text: &str) {
        self.text(text, &mut None);
    }

    fn leaves(&mut self, value: &Value, last: &mut Option<u64>) {
        match value {
            Value::Object(fields) => fields.values().for_each(|value| self.leaves(value, last)),
            Value::Array(items) => items.iter().for_each(|item| self.leaves(item, last)),
            Value::String(text) => self.text(text, last),
            Value::Number(_) => {
                let mut reader = std::mem::take(&mut self.search.reader);
                reader.leaf(value, &mut |token| self.saw(token, last));
                self.search.reader = reader;
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn keys(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.key(key, value)),
            Value::Array(items) => items.iter().for_each(|item| self.keys(item)),
            _ => {}
        }
    }

    fn key(&mut self, key: &str, value: &Value) {
        self.text(key, &mut None);
        self.keys(value);
    }

    fn text(&mut self, text: &str, last: &mut Option<u64>) {
        let mut reader = std::mem::take(&mut self.search.reader);
        reader.restart();
        reader.text(text, &mut |token| self.saw(token, last));
        self.search.reader = reader;
    }

    fn saw(&mut self, token: Token, last: &mut Option<u64>) {
        let mut note = |word: u64| {
            if let Some(first) = self.search.seen.get_mut(&word)
                && !self.own.contains(&word)
            {
                *first = self.position.min(*first);
            }
        };
        match token {
            Token::Word { hash, .. } => {
                note(hash);
                if let Some(last) = last.replace(hash) {
                    note(tokens::pair(last, hash));
                }
            }
            Token::Date { hash, .. } => note(hash),
        }
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
