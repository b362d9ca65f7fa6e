//! An event or a proposed action as it is compared, defined once: [`Item::content`]. The value, its hash, its size, its distance and the
//! fast test for equality all follow from that list of fields.
//!
//! Times, latencies and ids are not part of it: they differ between any two runs. Fields that this version does not know
//! are part of it, because they may carry meaning.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::hash::DefaultHasher;

use counterproof_artifact::{Content as OutputContent, EventBody, Extra, ProposedAction, ToolStatus};
use serde_json::{Map, Value};

use super::assign::Cost;
use super::json::{self, JsonChanges};
use crate::load::LoadedAnswer;
use crate::load::payload::{self, Payload};
use crate::rules::{self, Notes, Renaming, Scope};
use crate::values::meaning::{self, Leaves, leaves_below, leaves_of, leaves_of_object};
use crate::values::stringified::with_texts_parsed;
use crate::values::{self, ObjectMeaning, hash_object, hash_text, hash_texts, same_object};

/// The fields of a call and of an action that hold what the tool is given.
const ARGUMENTS: [&str; 2] = ["args", "params"];

/// Most known fields of one event or action.
const KNOWN_FIELDS: usize = 5;

/// An event or an action that is compared.
#[derive(Clone, Copy)]
pub(super) enum Item<'a> {
    /// The event of an answer with this index.
    Event(&'a LoadedAnswer, usize),
    Action(&'a ProposedAction),
}

impl<'a> Item<'a> {
    /// Lists the fields that are compared, under their names in the artifact.
    fn content(self) -> Content<'a> {
        use Field::{Object, Set, Text, Texts};
        match self {
            Item::Action(action) => Content {
                known: [
                    Some(("action_type", Text(action.action_type.as_str()))),
                    Some(("tool_name", Text(&action.tool_name))),
                    Some(("params", Object(&action.params))),
                    Some(("risk_level", Text(action.risk_level.as_str()))),
                    Some(("risk_tags", Set(&action.risk_tags))),
                ],
                unknown: &action.extra,
            },
            Item::Event(loaded, index) => {
                let event = &loaded.answer.events[index];
                let payload = || loaded.payload(index).map(Field::Payload);
                let known = match &event.body {
                    EventBody::ToolCall(call) => [
                        Some(("args", Object(&call.args))),
                        call.risk_level.map(|level| ("risk_level", Text(level.as_str()))),
                        call.risk_tags.as_deref().map(|tags| ("risk_tags", Set(tags))),
                        None,
                        None,
                    ],
                    EventBody::ToolResult(result) => {
                        let status = if result.status == ToolStatus::Ok { "ok" } else { "error" };
                        let payload = payload().map(|payload| ("payload_summary", payload));
                        [Some(("status", Text(status))), payload, None, None, None]
                    }
                    EventBody::Retrieval(found) => [
                        Some(("query", Text(&found.query))),
                        Some(("doc_ids", Texts(&found.doc_ids))),
                        found.snippets_hashes.as_deref().map(|hashes| ("snippets_hashes", Texts(hashes))),
                        payload().map(|snippets| ("snippets_asset_href", snippets)),
                        None,
                    ],
                    EventBody::FinalOutput(output) => {
                        let content = match &output.content {
                            OutputContent::Text(text) => Text(text),
                            OutputContent::Json(fields) => Object(fields),
                        };
                        let content_type = Text(output.content_type.as_str());
                        [Some(("content_type", content_type)), Some(("content", content)), None, None, None]
                    }
                    EventBody::Unknown { .. } => [None; KNOWN_FIELDS],
                };
                Content { known, unknown: event.extra() }
            }
        }
    }

    pub(super) fn to_value(self) -> Value {
        let content = self.content();
        let known = content.fields().map(|(name, field)| (name.to_owned(), field.to_value()));
        let mut fields: Map<String, Value> = known.collect();
        for (name, value) in content.unknown {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Value::Object(fields)
    }

    /// Hashes the compared fields: the meaning hash of [`Self::to_value`], without building it.
    pub(super) fn meaning_hash(self) -> u64 {
        let content = self.content();
        let known = content.fields().fold(ObjectMeaning::default(), |meaning, (name, field)| {
            meaning.field(name, |hasher| field.hash_meaning(hasher))
        });
        known.fields(content.unknown).finish()
    }

    /// Counts the leaves of the arguments, or of all compared fields if there are no arguments.
    pub(super) fn size(self) -> usize {
        let content = self.content();
        // The leaves that a comparison of two calls reads, as in `arguments_in`.
        let arguments = ARGUMENTS.iter().find_map(|name| content.field_leaves(name));
        // An object without fields is a leaf itself.
        arguments.unwrap_or_else(|| {
            let known: usize = content.fields().map(|(_, field)| field.leaves()).sum();
            (known + leaves_below(content.unknown)).max(1)
        })
    }

    /// True if the compared fields of both are equal.
    pub(super) fn is_same(self, other: Item<'_>) -> bool {
        let (content, other_content) = (self.content(), other.content());
        let is_same_slot = |(field, other): (&Slot<'_>, &Slot<'_>)| match (field, other) {
            (Some((name, field)), Some((other_name, other))) => name == other_name && field.is_same(*other),
            (field, other) => field.is_none() && other.is_none(),
        };
        let is_same = content.known.iter().zip(&other_content.known).all(is_same_slot)
            && same_object(content.unknown, other_content.unknown);
        debug_assert!(!is_same || self.meaning_hash() == other.meaning_hash(), "equal contents have equal hashes");
        is_same
    }
}

/// Returns the part of a compared value that identifies a call: its arguments. All of the value if it has none.
pub(super) fn arguments_in(value: &Value) -> &Value {
    ARGUMENTS.iter().find_map(|name| value.get(name)).unwrap_or(value)
}

/// Builds what is compared of an event, under the pointers of the artifact.
pub(crate) fn event_value(loaded: &LoadedAnswer, index: usize) -> Value {
    Item::Event(loaded, index).to_value()
}

/// Builds what is compared of a proposed action, under the pointers of the artifact.
pub(crate) fn action_value(action: &ProposedAction) -> Value {
    Item::Action(action).to_value()
}

/// A place for a known field; empty if the event does not have the field.
type Slot<'a> = Option<(&'static str, Field<'a>)>;

/// The compared fields of an event or an action.
struct Content<'a> {
    known: [Slot<'a>; KNOWN_FIELDS],
    unknown: &'a Extra,
}

impl<'a> Content<'a> {
    fn fields(&self) -> impl Iterator<Item = (&'static str, Field<'a>)> {
        self.known.iter().flatten().copied()
    }

    fn field_leaves(&self, name: &str) -> Option<usize> {
        let known = self.fields().find(|(known, _)| *known == name).map(|(_, field)| field.leaves());
        known.or_else(|| self.unknown.get(name).map(leaves_of))
    }
}

/// The value of a compared field, borrowed from the artifact.
#[derive(Clone, Copy)]
enum Field<'a> {
    Text(&'a str),
    /// Texts in their order.
    Texts(&'a [String]),
    /// Texts whose order does not matter.
    Set(&'a [String]),
    Object(&'a Map<String, Value>),
    /// A payload, wherever it is stored.
    Payload(Payload<'a>),
}

impl Field<'_> {
    fn to_value(self) -> Value {
        match self {
            Field::Text(text) => Value::from(text),
            Field::Texts(texts) => Value::from(texts),
            Field::Set(texts) => Value::from(sorted(texts)),
            Field::Object(fields) => Value::Object(fields.clone()),
            Field::Payload(payload) => payload.to_value(),
        }
    }

    fn hash_meaning(self, hasher: &mut DefaultHasher) {
        match self {
            Field::Text(text) => hash_text(text, hasher),
            Field::Texts(texts) => hash_texts(texts.iter().map(String::as_str), hasher),
            Field::Set(texts) => hash_texts(sorted(texts).into_iter(), hasher),
            Field::Object(fields) => hash_object(fields, hasher),
            Field::Payload(payload) => payload.hash_meaning(hasher),
        }
    }

    fn leaves(self) -> usize {
        match self {
            Field::Text(_) => 1,
            Field::Texts(texts) | Field::Set(texts) => texts.len().max(1),
            Field::Object(fields) => leaves_of_object(fields),
            Field::Payload(payload) => payload.leaves(),
        }
    }

    fn is_same(self, other: Field<'_>) -> bool {
        match (self, other) {
            (Field::Text(text), Field::Text(other)) => text == other,
            (Field::Texts(texts), Field::Texts(other)) => texts == other,
            // Nearly always the order is the same too, and nothing is sorted.
            (Field::Set(texts), Field::Set(other)) => texts == other || sorted(texts) == sorted(other),
            (Field::Object(fields), Field::Object(other)) => same_object(fields, other),
            (Field::Payload(payload), Field::Payload(other)) => payload::is_same(Some(payload), Some(other)),
            _ => false,
        }
    }
}

fn sorted(texts: &[String]) -> Vec<&str> {
    let mut texts: Vec<_> = texts.iter().map(String::as_str).collect();
    texts.sort_unstable();
    texts
}

/// What it costs to pair two elements that differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostRange {
    pub(super) least: Cost,
    /// The cost of two elements with nothing in common, and of an element without a counterpart.
    pub(super) most: Cost,
}

/// An event or an action, prepared for comparison. Values are built only when needed: for most parts the hash decides.
pub(super) struct PreparedItem<'a> {
    item: Item<'a>,
    value: OnceCell<Value>,
    pub(super) scope: Scope<'a>,
    /// A hash that is equal for equal parts.
    pub(super) key: u64,
    /// The view under the rules; `None` if no rule applies.
    view: Option<Value>,
    coarse: OnceCell<(Leaves, u64)>,
}

impl<'a> PreparedItem<'a> {
    /// Prepares a part, and records which rules apply.
    pub(super) fn new(item: Item<'a>, scope: Scope<'a>, notes: &mut Notes) -> Self {
        let (value, mut view) = (OnceCell::new(), None);
        let key = if scope.is_empty() {
            let key = item.meaning_hash();
            debug_assert_eq!(key, values::meaning_hash(&item.to_value()), "the hash covers the compared fields");
            key
        } else {
            let seen = rules::view(value.get_or_init(|| item.to_value()), &scope, notes).unwrap_or_default();
            values::meaning_hash(view.insert(seen))
        };
        Self { item, value, scope, key, view, coarse: OnceCell::new() }
    }

    /// Returns the compared fields, under the pointers of the artifact. They are built on first use.
    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| self.item.to_value())
    }

    /// Returns the view under the rules.
    pub(super) fn view(&self) -> &Value {
        self.view.as_ref().unwrap_or_else(|| self.value())
    }

    pub(super) fn order(&self, other: &PreparedItem<'_>) -> Ordering {
        if self.key == other.key { Ordering::Equal } else { meaning::compare_values(self.view(), other.view()) }
    }

    pub(super) fn changes(&self, other: &PreparedItem<'_>, renaming: &mut Renaming) -> JsonChanges {
        // With a view, equal keys do not suffice: ids that may be renamed have the same placeholder and still have to be
        // mapped.
        let known_to_be_same = self.key == other.key && self.view.is_none() && other.view.is_none();
        if known_to_be_same {
            return JsonChanges::default();
        }
        json::diff_under(self.value(), other.value(), &self.scope, renaming)
    }

    /// Returns the number of leaves that a comparison reads.
    pub(super) fn size(&self) -> usize {
        // A list that is written as text counts as one.
        if self.view.is_some() {
            return self.coarse().0.count();
        }
        self.item.size()
    }

    /// Returns the cost of a pair: 0 for equal parts, else within the range by distance.
    pub(super) fn cost(&self, other: &PreparedItem<'_>, range: CostRange) -> Cost {
        if self.key == other.key || self.is_near(other) {
            return 0;
        }
        range.least + self.coarse().0.cost(&other.coarse().0, range.most - range.least)
    }

    /// True if the parts differ only in numbers within the tolerance of a rule.
    fn is_near(&self, other: &PreparedItem<'_>) -> bool {
        // Comparing is expensive, so it runs only if the views without such numbers have equal hashes.
        self.view.is_some()
            && self.coarse().1 == other.coarse().1
            && self.changes(other, &mut Renaming::any()).is_empty()
    }

    fn coarse(&self) -> &(Leaves, u64) {
        self.coarse.get_or_init(|| {
            // A list that is written as text is as near as the list itself.
            let arguments = |value: &Value| Leaves::from_value(&with_texts_parsed(arguments_in(value)));
            if self.view.is_none() {
                return (arguments(self.value()), self.key);
            }
            let coarse = rules::coarse_view(self.value(), &self.scope).unwrap_or_default();
            (arguments(&coarse), values::meaning_hash(&coarse))
        })
    }
}
