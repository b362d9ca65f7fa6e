//! What is compared of an event or a proposed action, as a value with the names of the artifact, and the preparation of that value
//! for many comparisons.
//!
//! Times, latencies and ids are not part of it: they differ between any two runs. Fields that this version does not know
//! are part of it, because they may carry meaning.

use std::cell::OnceCell;
use std::cmp::Ordering;

use counterproof_artifact::{EventBody, Extra, ProposedAction, ToolStatus};
use serde_json::{Map, Value};

use super::assign::Cost;
use super::json::{self, JsonChanges};
use super::output;
use crate::load::LoadedAnswer;
use crate::load::payload::Payload;
use crate::rules::{self, Notes, Renaming, Scope};
use crate::values::meaning::{self, Leaves, leaves_of};
use crate::values::meaning_hash;
use crate::values::stringified::with_texts_parsed;

/// Builds what is compared of an event, under the pointers of the artifact.
pub(crate) fn event_value(loaded: &LoadedAnswer, index: usize) -> Value {
    let event = &loaded.answer.events[index];
    let payload = || loaded.payload(index).map(Payload::to_value);
    let known = match &event.body {
        EventBody::ToolCall(call) => vec![
            ("args", Some(Value::Object(call.args.clone()))),
            ("risk_level", call.risk_level.map(|level| level.as_str().into())),
            ("risk_tags", call.risk_tags.as_deref().map(sorted)),
        ],
        EventBody::ToolResult(result) => {
            let status = if result.status == ToolStatus::Ok { "ok" } else { "error" };
            vec![("status", Some(status.into())), ("payload_summary", payload())]
        }
        EventBody::Retrieval(found) => vec![
            ("query", Some(found.query.as_str().into())),
            ("doc_ids", Some(found.doc_ids.as_slice().into())),
            ("snippets_hashes", found.snippets_hashes.as_deref().map(Value::from)),
            // Under the name of inline snippets, which are equal to the same snippets in an asset.
            ("snippets", payload()),
        ],
        EventBody::FinalOutput(output) => vec![
            ("content_type", Some(output.content_type.as_str().into())),
            ("content", Some(output::value(&output.content))),
        ],
        EventBody::Unknown { .. } => Vec::new(),
    };
    with_unknown_fields(known, event.extra())
}

/// Builds what is compared of a proposed action, under the pointers of the artifact.
pub(crate) fn action_value(action: &ProposedAction) -> Value {
    let known = vec![
        ("action_type", Some(action.action_type.as_str().into())),
        ("tool_name", Some(action.tool_name.as_str().into())),
        ("params", Some(Value::Object(action.params.clone()))),
        ("risk_level", Some(action.risk_level.as_str().into())),
        ("risk_tags", Some(sorted(&action.risk_tags))),
    ];
    with_unknown_fields(known, &action.extra)
}

fn with_unknown_fields(known: Vec<(&str, Option<Value>)>, unknown: &Extra) -> Value {
    let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut fields: Map<String, Value> = known.collect();
    for (name, value) in unknown {
        fields.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(fields)
}

/// Texts whose order does not matter.
fn sorted(texts: &[String]) -> Value {
    let mut texts: Vec<_> = texts.iter().map(String::as_str).collect();
    texts.sort_unstable();
    texts.into()
}

/// Returns the part of a compared value that identifies a call: its arguments. All of the value if it has none.
fn arguments_in(value: &Value) -> &Value {
    ["args", "params"].iter().find_map(|name| value.get(name)).unwrap_or(value)
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CostRange {
    pub(super) least: Cost,
    /// The cost of two elements with nothing in common, and of an element without a counterpart.
    pub(super) most: Cost,
}

pub(super) struct PreparedItem<'a> {
    value: Value,
    scope: Scope<'a>,
    pub(super) key: u64,
    /// The view under the rules; `None` if no rule applies.
    view: Option<Value>,
    coarse: OnceCell<(Leaves, u64)>,
}

impl<'a> PreparedItem<'a> {
    /// Prepares a part, and records which rules apply.
    pub(super) fn new(value: Value, scope: Scope<'a>, notes: &mut Notes) -> Self {
        let view = (!scope.is_empty()).then(|| rules::view(&value, &scope, notes).unwrap_or_default());
        let key = meaning_hash(view.as_ref().unwrap_or(&value));
        Self { value, scope, key, view, coarse: OnceCell::new() }
    }

    /// Returns what identifies the part under the rules: the arguments of a call, otherwise all of it.
    pub(super) fn arguments(&self) -> &Value {
        arguments_in(self.view())
    }

    fn view(&self) -> &Value {
        self.view.as_ref().unwrap_or(&self.value)
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
        json::diff_under(&self.value, &other.value, &self.scope, renaming)
    }

    /// Returns the number of leaves that a comparison reads.
    pub(super) fn size(&self) -> usize {
        // Only under a rule, where the leaves are needed anyway: counting them costs less than hashing them.
        if self.view.is_some() { self.coarse().0.count() } else { leaves_of(arguments_in(&self.value)) }
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
        // Comparing is expensive, so it runs only if the views without the tolerated numbers have equal hashes.
        self.view.is_some()
            && self.coarse().1 == other.coarse().1
            && self.changes(other, &mut Renaming::any()).is_empty()
    }

    fn coarse(&self) -> &(Leaves, u64) {
        self.coarse.get_or_init(|| {
            // A list that is written as text is as near as the list itself.
            let arguments = |value: &Value| Leaves::from_value(&with_texts_parsed(arguments_in(value)));
            if self.view.is_none() {
                return (arguments(&self.value), self.key);
            }
            let coarse = rules::coarse_view(&self.value, &self.scope).unwrap_or_default();
            (arguments(&coarse), meaning_hash(&coarse))
        })
    }
}
