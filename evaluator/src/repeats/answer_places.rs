//! The values of one answer at its places, as hashes.
//!
//! Elements that share a place are combined, whatever their order.

use counterproof_artifact::EventBody;
use serde_json::{Map, Value, json};

use super::place::Place;
use crate::diff::steps::{self, EventKind};
use crate::diff::{compared, output};
use crate::load::LoadedAnswer;
use crate::load::evidence::{self, FollowedRef};
use crate::rules::{self, Rules, Scope, Subject};
use crate::values::meaning_hash;

/// Maximum number of leaves of one call or action that have a place of their own. Further leaves share one place: an object with
/// thousands of leaves uses its keys as data.
const LEAVES_NAMED: usize = 200;

/// An answer whose places are visited, viewed under the rules of comparison.
#[derive(Clone, Copy)]
pub(super) struct AnswerPlaces<'a> {
    pub(super) loaded: &'a LoadedAnswer,
    pub(super) evidence: &'a [Vec<FollowedRef>],
    pub(super) rules: &'a Rules,
}

/// Receives a place, and the hash of the value that one element of the answer has there.
type Visit<'s> = &'s mut dyn FnMut(Place<'_>, u64);

impl AnswerPlaces<'_> {
    /// Visits every place of the answer, one element at a time. Numbers with a tolerance are left out: a hash cannot express a
    /// tolerance, so only the difference of two answers covers them.
    pub(super) fn visit_all(self, visit: Visit<'_>) {
        (0..self.loaded.answer.events.len()).for_each(|index| self.visit_event(index, visit));
        visit(Place::ToolSequence, meaning_hash(&json!(steps::tools_in_order(self.loaded))));
        for (index, action) in self.loaded.answer.proposed_actions.iter().enumerate() {
            visit(Place::Proposed { tool: &action.tool_name }, meaning_hash(&json!(true)));
            self.visit_action(index, visit);
        }
        self.visit_output(visit);
    }

    /// Visits the places of an event, except for its position among the others.
    pub(super) fn visit_event(self, index: usize, visit: Visit<'_>) {
        let Self { loaded, rules, .. } = self;
        let kind = EventKind::new(loaded, index);
        let scope = rules.scope(kind.subject());
        let EventKind { event: kind, tool } = kind;
        let Some(mut fields) = viewed_fields(compared::event_value(loaded, index), &scope) else { return };
        match &loaded.answer.events[index].body {
            EventBody::ToolCall(_) => {
                fields.shift_remove("tool");
                if let Some(Value::Object(args)) = fields.shift_remove("args") {
                    leaves(&args, &mut |path, value| visit(Place::Argument { tool, path }, value));
                }
                if !fields.is_empty() {
                    visit(Place::Call { tool }, meaning_hash(&Value::Object(fields)));
                }
            }
            EventBody::ToolResult(_) => {
                // By leaves: nearly every result contains a time or an id that always differs. As a whole, the result would
                // count as noise, which would hide a change in a stable field.
                if let Some(payload) = fields.shift_remove("payload_summary") {
                    leaves_of(&payload, &mut |path, value| visit(Place::Result { tool, path }, value));
                }
                visit(Place::Result { tool, path: "" }, meaning_hash(&Value::Object(fields)));
            }
            EventBody::Retrieval(_) => visit(Place::Retrieval, meaning_hash(&Value::Object(fields))),
            // Its places are those of the final output, which `visit_output` visits.
            EventBody::FinalOutput(_) => {}
            EventBody::Unknown { .. } => visit(Place::OtherEvent { kind }, meaning_hash(&Value::Object(fields))),
        }
    }

    /// True for an event that repeats the final output.
    pub(super) fn is_output_event(self, index: usize) -> bool {
        matches!(self.loaded.answer.events[index].body, EventBody::FinalOutput(_))
    }

    /// The key of the place for proposed actions with the tool of an event; `None` for an event without a tool.
    pub(super) fn proposed_place(self, index: usize) -> Option<u64> {
        let EventKind { tool, .. } = EventKind::new(self.loaded, index);
        (!tool.is_empty()).then(|| Place::Proposed { tool }.key())
    }

    /// Visits the places of a proposed action, except for its existence.
    pub(super) fn visit_action(self, index: usize, visit: Visit<'_>) {
        let Self { loaded, evidence, rules } = self;
        let action = &loaded.answer.proposed_actions[index];
        let tool = action.tool_name.as_str();
        let subject = Subject { event: None, tool: Some(tool) };
        if let Some(mut fields) = viewed_fields(compared::action_value(action), &rules.scope(subject)) {
            if let Some(Value::Object(params)) = fields.shift_remove("params") {
                leaves(&params, &mut |path, value| visit(Place::Param { tool, path }, value));
            }
            visit(Place::Action { tool }, meaning_hash(&Value::Object(fields)));
        }
        let Some(refs) = evidence.get(index) else { return };
        let mut meanings: Vec<_> = refs.iter().map(|followed| meaning(loaded, followed, rules)).collect();
        // Refs are a set: their order and repetitions carry no meaning.
        meanings.sort_unstable();
        meanings.dedup();
        visit(Place::Evidence { tool }, meaning_hash(&json!(meanings)));
    }

    /// Visits the places of the final output.
    pub(super) fn visit_output(self, visit: Visit<'_>) {
        let content = output::value(&self.loaded.answer.final_output.content);
        match rules::coarse_view(&content, &output::scope(self.rules)) {
            Some(Value::Object(object)) => leaves(&object, &mut |path, value| visit(Place::Output { path }, value)),
            Some(text) => visit(Place::Output { path: "" }, meaning_hash(&text)),
            None => {}
        }
    }
}

/// The hash of a ref's target. A call is viewed under the rules, so that an ignored argument does not change the evidence.
fn meaning(loaded: &LoadedAnswer, followed: &FollowedRef, rules: &Rules) -> u64 {
    let Some(call) = evidence::call_of(loaded, followed).filter(|_| !rules.is_empty()) else { return followed.meaning };
    let EventKind { event: kind, tool } = EventKind::new(loaded, call);
    let fields = viewed_fields(
        compared::event_value(loaded, call),
        &rules.scope(Subject { event: Some(kind), tool: Some(tool) }),
    );
    meaning_hash(&json!([kind, tool, fields.and_then(|mut fields| fields.shift_remove("args"))]))
}

/// The compared fields of an event or an action under the rules; `None` if the rules ignore all of them.
fn viewed_fields(compared: Value, scope: &Scope<'_>) -> Option<Map<String, Value>> {
    let viewed = if scope.is_empty() { Some(compared) } else { rules::coarse_view(&compared, scope) };
    match viewed {
        Some(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// The leaves of an object, each with its path and a hash of its value.
fn leaves(object: &Map<String, Value>, visit: &mut dyn FnMut(&str, u64)) {
    fields(object, &mut String::new(), &mut LEAVES_NAMED.clone(), visit);
}

fn leaves_of(value: &Value, visit: &mut dyn FnMut(&str, u64)) {
    leaf(value, &mut String::new(), &mut LEAVES_NAMED.clone(), visit);
}

fn fields(object: &Map<String, Value>, path: &mut String, left: &mut usize, visit: &mut dyn FnMut(&str, u64)) {
    for (key, value) in object {
        let length = path.len();
        counterproof_artifact::pointer::push(path, key);
        leaf(value, path, left, visit);
        path.truncate(length);
    }
}

fn leaf(value: &Value, path: &mut String, left: &mut usize, visit: &mut dyn FnMut(&str, u64)) {
    match value {
        Value::Object(object) if !object.is_empty() => fields(object, path, left, visit),
        Value::Array(items) if !items.is_empty() => items.iter().for_each(|item| leaf(item, path, left, visit)),
        // The path is part of the hash here, because all leaves beyond the limit share this place.
        _ if *left == 0 => visit("/…", meaning_hash(&json!([path, value]))),
        _ => {
            *left -= 1;
            visit(path, meaning_hash(value));
        }
    }
}
