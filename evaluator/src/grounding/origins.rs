//! The origin of each value that one side passed to its tools.

use std::collections::HashMap;

use counterproof_artifact::EventBody;
use counterproof_artifact::pointer;
use serde_json::{Map, Value};

use super::computed::Calculation;
use super::search::{Origin, Search, SearchTerms, Source, each_below, is_prose};
use crate::diff::differences::Holder;
use crate::load::LoadedAnswer;
use crate::load::case_input::CaseInput;
use crate::load::payload;
use crate::values::meaning::HashedSet;
use crate::values::tokens::{Reader, Token, Word};
use crate::values::{object_hash, same_object, text_hash};

/// Most numbers of an output that are traced.
const NUMBERS_FOLLOWED: usize = 100;

/// A value that was passed to a tool, or is proposed for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf<'a> {
    pub holder: Holder,
    /// The index of the leaf within its holder, counted from 0.
    pub ordinal: usize,
    /// The argument: a hash of the tool and the pointer without array indexes.
    pub argument: u64,
    /// The hash of the tool and the first name of that pointer.
    pub top_argument: u64,
    pub value: &'a Value,
    pub origin: Origin,
    /// True for an arithmetic expression: its origin is the origin of its numbers, which the agent selects itself.
    pub is_sum: bool,
}

/// The values that the agent of one side passed to its tools, with their origins.
#[derive(Debug, Default)]
pub(crate) struct Origins<'a> {
    /// In the order of the calls, then of the actions.
    pub leaves: Vec<Leaf<'a>>,
    pub input_is_known: bool,
    /// For lists and objects that are written as text, the elements without an origin, by holder and ordinal.
    pub missing_elements: HashMap<(Holder, usize), Vec<usize>>,
    carriers: Carriers,
}

impl<'a> Origins<'a> {
    pub(crate) fn trace(loaded: &'a LoadedAnswer, asked: &CaseInput<'_>) -> Self {
        let mut search = Search::default();
        let mut leaves = Vec::new();
        each_holder(loaded, |holder, tool, arguments| {
            // The ordinal replaces a pointer: one index per leaf is cheap, and pointers are only needed for findings.
            let mut ordinal = 0;
            for (key, value) in arguments {
                let top_argument = crate::values::tokens::pair(root(tool), text_hash(key));
                each_below(value, top_argument, &mut |argument, value| {
                    let terms = search.add_terms(value);
                    let is_sum = matches!(terms, SearchTerms::Sum(_));
                    let origin = Origin::Exempt;
                    leaves.push((Leaf { holder, ordinal, argument, top_argument, value, origin, is_sum }, terms));
                    ordinal += 1;
                });
            }
        });
        search.read_input(asked);
        let opaque = search.read_events(loaded);
        // The parameters of an action were decided when its call ran, so a later event cannot be their origin.
        let carriers = Carriers::new(loaded);
        let mut locate = |search: &Search| {
            let mut missing = false;
            for (leaf, terms) in &mut leaves {
                leaf.origin = search.origin(terms, carriers.limit(leaf.holder), opaque);
                missing |= leaf.origin == Origin::Nowhere;
            }
            missing
        };
        // The stored request is another file, which is read only if a value has no origin yet. So is the second pass, which also
        // finds ids that are written in groups.
        let mut input_is_known = asked.case_is_known();
        if locate(&search) {
            search.join_groups();
            search.read_input(asked);
            search.read_events(loaded);
            if let Some(request) = asked.request() {
                input_is_known = true;
                Source { position: 0, search: &mut search, own: &HashedSet::default() }.read(request);
            }
            locate(&search);
        }
        let mut missing_elements = HashMap::new();
        for (leaf, terms) in leaves.iter().filter(|(leaf, _)| leaf.origin == Origin::Nowhere) {
            let missing = search.missing_elements(terms, carriers.limit(leaf.holder), opaque);
            missing_elements.extend(missing.map(|missing| ((leaf.holder, leaf.ordinal), missing)));
        }
        let mut leaves: Vec<_> = leaves.into_iter().map(|(leaf, _)| leaf).collect();
        find_computed(loaded, asked, &carriers, &mut leaves);
        Self { leaves, input_is_known, missing_elements, carriers }
    }

    /// Returns the action that a call carried out: the one that it names, or one of the same tool and params.
    pub(crate) fn action_of(&self, holder: Holder) -> Option<Holder> {
        let Holder::Call(call) = holder else { return None };
        self.carriers.carried_out.get(&call).copied().map(Holder::Action)
    }

    /// The calls that carried out an action, in order.
    pub(crate) fn calls_of(&self, action: usize) -> Vec<usize> {
        let calls = self.carriers.carried_out.iter().filter(|(_, carried)| **carried == action);
        let mut calls: Vec<_> = calls.map(|(call, _)| *call).collect();
        calls.sort_unstable();
        calls
    }

    /// The number of events before a call or an action, which alone can be origins of its values.
    pub(super) fn limit(&self, holder: Holder) -> usize {
        self.carriers.limit(holder)
    }

    pub(crate) fn held_by(&self, holder: Holder) -> &[Leaf<'a>] {
        // The leaves are in the order of their holders: calls, then actions.
        let start = self.leaves.partition_point(|leaf| leaf.holder < holder);
        let length = self.leaves[start..].partition_point(|leaf| leaf.holder == holder);
        &self.leaves[start..start + length]
    }
}

/// Most calls and actions whose amounts are recomputed. Each needs a pass over the results.
const RECOMPUTED: usize = 8;

/// Most amounts of one call that are recomputed.
const AMOUNTS: usize = 64;

/// Finds the origins of amounts that the agent worked out from others.
fn find_computed(loaded: &LoadedAnswer, asked: &CaseInput<'_>, carriers: &Carriers, leaves: &mut [Leaf<'_>]) {
    let is_amount = |leaf: &Leaf<'_>| leaf.origin == Origin::Nowhere && Calculation::is_amount(leaf.value);
    let mut holders: Vec<_> = leaves.iter().filter(|leaf| is_amount(leaf)).map(|leaf| leaf.holder).collect();
    holders.dedup();
    for holder in holders.into_iter().take(RECOMPUTED) {
        let arguments = arguments_of(loaded, holder);
        let calculation = Calculation::new(loaded, asked, arguments, carriers.limit(holder));
        // Bounded, since the name of each is found by a walk over the arguments.
        let amounts = leaves.iter_mut().filter(|leaf| leaf.holder == holder && is_amount(leaf));
        for leaf in amounts.take(AMOUNTS) {
            let pointer = leaf_pointer(loaded, holder, leaf.ordinal);
            if let Some(origin) = calculation.origin_of(name_of(&pointer), leaf.value) {
                leaf.origin = origin;
            }
        }
    }
}

/// The last name in a pointer that is not an array index.
pub(crate) fn name_of(pointer: &str) -> &str {
    pointer.rsplit('/').find(|name| !name.bytes().all(|byte| byte.is_ascii_digit())).unwrap_or_default()
}

pub(super) fn arguments_of(loaded: &LoadedAnswer, holder: Holder) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    match holder {
        Holder::Call(index) => loaded.answer.events[index].tool_call().map_or(&*NONE, |call| &call.args),
        Holder::Action(index) => &loaded.answer.proposed_actions[index].params,
    }
}

/// True if both agents received the same and passed the same to their tools. Then no value can have lost its origin.
pub(crate) fn is_same_transcript(baseline: &LoadedAnswer, new: &LoadedAnswer) -> bool {
    let (old, other) = (&baseline.answer, &new.answer);
    let same_event = |index: usize| match (&old.events[index].body, &other.events[index].body) {
        (EventBody::ToolCall(a), EventBody::ToolCall(b)) => a.tool == b.tool && same_object(&a.args, &b.args),
        (EventBody::ToolResult(a), EventBody::ToolResult(b)) => a.status == b.status && same_object(&a.extra, &b.extra),
        (EventBody::Retrieval(a), EventBody::Retrieval(b)) => a.doc_ids == b.doc_ids && same_object(&a.extra, &b.extra),
        // An output is not an origin, so a different output does not matter here.
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

/// Finds the origins of values of the final output, in order. These values were passed to no tool.
pub(crate) fn origins_of_values(loaded: &LoadedAnswer, asked: &CaseInput<'_>, values: &[Value]) -> Vec<Origin> {
    if values.is_empty() {
        return Vec::new();
    }
    let mut search = Search::default();
    let mut terms = Vec::new();
    for value in values {
        each_below(value, 0, &mut |_, leaf| terms.push(search.add_terms(leaf)));
    }
    search.read_input(asked);
    let opaque = search.read_events(loaded);
    terms.iter().map(|terms| search.origin(terms, loaded.answer.events.len(), opaque)).collect()
}

/// Returns for each value whether the user named it, in the input or in a turn.
pub(crate) fn named_by_user(loaded: &LoadedAnswer, asked: &CaseInput<'_>, values: &[Value]) -> Vec<bool> {
    let mut search = Search::default();
    let terms: Vec<_> = values.iter().map(|value| search.add_terms(value)).collect();
    // Ids are named in groups too, as in the search for origins.
    search.join_groups();
    search.read_input(asked);
    search.read_user(loaded);
    terms.iter().map(|terms| search.origin(terms, 0, usize::MAX) != Origin::Nowhere).collect()
}

/// Returns the words with numbers or ids that only the first text has, at most [`NUMBERS_FOLLOWED`].
pub(crate) fn numbers_only_in(mine: &str, theirs: &str) -> Vec<String> {
    // By token, so that a number in another notation is not reported as different.
    let known: HashedSet = numbers(theirs).collect();
    let words = mine.split_whitespace().filter(|word| numbers(word).any(|number| !known.contains(&number)));
    words.take(NUMBERS_FOLLOWED).map(str::to_owned).collect()
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let mut found = Vec::new();
    Reader::default().text(text, &mut |token| {
        if let Token::Word(Word { hash, has_digit: true, .. }) = token {
            found.push(hash);
        }
    });
    found.into_iter()
}

fn prose(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    let (mut words, mut numbers) = (0, 0);
    Reader::default().text(text, &mut |token| {
        if let Token::Word(word) = token {
            words += 1;
            numbers += usize::from(word.has_digit);
        }
    });
    is_prose(words, numbers).then_some(text)
}

/// Returns the distance of two different values without their wording: for prose the distance of its numbers, else 1.
pub(crate) fn distance_of_values(old: &Value, new: &Value) -> f64 {
    match (prose(old), prose(new)) {
        (Some(old), Some(new)) => distance_of_numbers(old, new),
        _ => 1.0,
    }
}

/// Returns the distance of the numbers and ids in two texts as sets, from 0 (equal) to 1 (none in common).
pub(crate) fn distance_of_numbers(old: &str, new: &str) -> f64 {
    let (old, new): (HashedSet, HashedSet) = (numbers(old).collect(), numbers(new).collect());
    let all = old.len() + new.len();
    if all == 0 { 0.0 } else { 1.0 - 2.0 * old.intersection(&new).count() as f64 / all as f64 }
}

/// Returns the pointer within an artifact to a leaf of a call's arguments or an action's parameters.
pub(crate) fn leaf_pointer(loaded: &LoadedAnswer, holder: Holder, ordinal: usize) -> String {
    let mut path = match holder {
        Holder::Call(index) => format!("/events/{index}/args"),
        Holder::Action(index) => format!("/proposed_actions/{index}/params"),
    };
    let mut left = ordinal;
    arguments_of(loaded, holder).iter().any(|(key, value)| lead(&mut path, key, value, &mut left));
    path
}

/// Extends `path` to the leaf with index `left` below a value. Returns false, with fewer left, if there are too few leaves.
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
            // Counts in the order of `each_leaf`, which numbered the leaves.
            *left -= 1;
            false
        }
    };
    if !found {
        path.truncate(length);
    }
    found
}

/// Calls `take` for each call, then for each action, with its tool and arguments.
pub(super) fn each_holder<'a>(loaded: &'a LoadedAnswer, mut take: impl FnMut(Holder, &'a str, &'a Map<String, Value>)) {
    for (index, event) in loaded.answer.events.iter().enumerate() {
        if let Some(call) = event.tool_call() {
            take(Holder::Call(index), &call.tool, &call.args);
        }
    }
    for (index, action) in loaded.answer.proposed_actions.iter().enumerate() {
        take(Holder::Action(index), &action.tool_name, &action.params);
    }
}

/// Returns the hash of a tool, the prefix of the hashes of its arguments.
pub(super) fn root(tool: &str) -> u64 {
    text_hash(tool)
}

/// For each call, by its event, the action that it carried out.
pub(crate) fn carried_out(loaded: &LoadedAnswer) -> HashMap<usize, usize> {
    Carriers::new(loaded).carried_out
}

#[derive(Debug, Default)]
struct Carriers {
    /// For each call, the action that it carried out.
    carried_out: HashMap<usize, usize>,
    /// For each action, the last position that can be its origin: the position of the call that carried it out, or the end.
    limits: Vec<usize>,
}

/// The actions of each tool, with the hashes of their params.
fn actions_by_tool(loaded: &LoadedAnswer) -> HashMap<&str, Vec<(u64, usize)>> {
    let mut by_tool: HashMap<_, Vec<_>> = HashMap::new();
    for (index, action) in loaded.answer.proposed_actions.iter().enumerate() {
        by_tool.entry(action.tool_name.as_str()).or_default().push((object_hash(&action.params), index));
    }
    by_tool
}

impl Carriers {
    fn new(loaded: &LoadedAnswer) -> Self {
        let actions = loaded.answer.proposed_actions.iter().enumerate();
        let by_id: HashMap<_, _> = actions.map(|(index, action)| (action.action_id.as_str(), index)).collect();
        let mut limits = vec![loaded.answer.events.len(); loaded.answer.proposed_actions.len()];
        let mut carried_out = HashMap::new();
        let by_tool = actions_by_tool(loaded);
        for (index, event) in loaded.answer.events.iter().enumerate() {
            let Some(call) = event.tool_call() else { continue };
            // The id decides where the producer states it; the tool and the params are the fallback for producers that do not.
            let named = call.action_id.as_deref().and_then(|id| by_id.get(id)).copied();
            // A call with the tool and the params of an action carried it out, even if it names no action.
            let same = || {
                let actions = by_tool.get(call.tool.as_str())?;
                let meaning = object_hash(&call.args);
                actions.iter().find(|(params, _)| *params == meaning).map(|(_, index)| *index)
            };
            if let Some(action) = named.or_else(same) {
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
