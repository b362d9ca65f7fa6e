//! What new does differently for a deterministic agent: another action, another object, a lookup that it does not
//! make, or an action before a step that it followed on baseline. `answer_texts` looks at what such an agent says.
//!
//! Words, additional lookups and the order of lookups have no effect and do not count. High-risk actions have a rule of their own.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Event, EventBody, ProposedAction, RiskLevel, Side, Sides, ToolCall};
use serde_json::Value;

use super::outcomes::Outcomes;
use crate::diff::actions::{ActionRow, EvidenceChange};
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::json::JsonChange;
use crate::diff::rows::row_pointers;
use crate::diff::{Differences, WithEvidence};
use crate::grounding::{identifies, name_of};
use crate::load::{LoadedAnswer, tool_names};
use crate::messages::{self, step_name};
use crate::values::{meaning_hash, object_hash, text};

/// Most changes of a case that are listed.
const LISTED: usize = 20;

/// A change of what the agent does.
#[derive(Debug, Clone)]
pub(crate) struct BehaviourChange {
    pub(crate) message: String,
    pub(crate) pointers: Vec<SidePointer>,
}

/// Lists what new does differently, actions first.
pub(crate) fn find(sides: Sides<WithEvidence<'_>>, differences: &Differences) -> Vec<BehaviourChange> {
    let comparison = Comparison::new(sides, differences);
    let mut found: Vec<_> =
        differences.actions.iter().filter_map(|row| comparison.changed_action(row)).take(LISTED).collect();
    // An action and its call differ together.
    if found.is_empty() {
        found.extend(differences.events.iter().filter_map(|row| comparison.changed_call(row)).take(LISTED));
    }
    found.extend(comparison.lookups_gone());
    if found.is_empty() {
        found.extend(comparison.no_longer_waiting());
    }
    found
}

struct Comparison<'a> {
    sides: Sides<WithEvidence<'a>>,
    differences: &'a Differences,
    outcomes: Sides<Outcomes<'a>>,
    /// The tools of the actions of either side.
    write_tools: HashSet<&'a str>,
    /// The values that a result has on baseline and on new, with the event of new: later arguments that follow them are no decision
    /// of the agent.
    other_results: HashMap<(u64, u64), usize>,
}

impl<'a> Comparison<'a> {
    fn new(sides: Sides<WithEvidence<'a>>, differences: &'a Differences) -> Self {
        let actions = |side: WithEvidence<'a>| side.loaded.answer.proposed_actions.iter();
        let write_tools =
            actions(sides.baseline).chain(actions(sides.new)).map(|action| action.tool_name.as_str()).collect();
        let mut other_results = HashMap::new();
        for row in &differences.events {
            let Row::Both { new, .. } = row.row else { continue };
            if sides.new.loaded.answer.events[new].tool_call().is_none() {
                for values in row.changes.iter().filter_map(both_values) {
                    other_results.entry(hashes(values)).or_insert(new);
                }
            }
        }
        let outcomes = sides.map(|side| Outcomes::new(side.loaded));
        Self { sides, differences, outcomes, write_tools, other_results }
    }

    fn loaded(&self, side: Side) -> &'a LoadedAnswer {
        self.sides.get(side).loaded
    }

    fn events(&self, side: Side) -> &'a [Event] {
        &self.loaded(side).answer.events
    }

    /// Whether a call changes something: it carries out an action, or states more than a low risk.
    fn is_write(&self, call: &ToolCall) -> bool {
        call.action_id.is_some()
            || self.write_tools.contains(call.tool.as_str())
            || matches!(call.risk_level, Some(RiskLevel::High | RiskLevel::Medium))
    }

    /// The call of a row of the events, named by the side that has it, if it did not fail.
    fn call(&self, row: &EventRow) -> Option<&'a ToolCall> {
        let (side, index) = row.row.named_by();
        self.events(side)[index].tool_call().filter(|call| !self.outcomes.get(side).call_failed(call))
    }

    fn changed_action(&self, row: &ActionRow) -> Option<BehaviourChange> {
        let Sides { baseline, new } = self.sides.map(|side| side.loaded.answer.proposed_actions.as_slice());
        let is_high = |side: Side, index: usize| {
            let actions = if side == Side::Baseline { baseline } else { new };
            actions[index].risk_level == RiskLevel::High
        };
        if !row.counts() || row.is_only_reworded() || row.row.elements().any(|(side, index)| is_high(side, index)) {
            return None;
        }
        let counts = match row.row {
            Row::Added(_) | Row::Removed(_) => true,
            Row::Both { new: index, .. } => {
                let made = self.made_at(&new[index]);
                row.changes.omitted > 0
                    || row.changes.iter().any(|change| self.is_decision(change, made) && !is_wording(change))
                    || self.evidence_is_gone(row)
            }
        };
        counts.then(|| BehaviourChange {
            message: messages::action(row, baseline, new),
            pointers: row_pointers("/proposed_actions", row.row),
        })
    }

    /// Whether new lacks evidence that baseline had. More evidence harms nothing.
    fn evidence_is_gone(&self, row: &ActionRow) -> bool {
        let Row::Both { baseline, new } = row.row else { return false };
        let kept: HashSet<u64> = self.sides.new.evidence[new].iter().map(|followed| followed.meaning).collect();
        row.evidence != EvidenceChange::Same
            && self.sides.baseline.evidence[baseline].iter().any(|followed| !kept.contains(&followed.meaning))
    }

    /// A call that changes something and differs, or a lookup of another object.
    fn changed_call(&self, row: &EventRow) -> Option<BehaviourChange> {
        let call = self.call(row).filter(|_| row.counts() && !row.is_only_reworded())?;
        let is_write = self.is_write(call);
        let (side, index) = row.row.named_by();
        let name = step_name(&self.events(side)[index], self.loaded(side));
        let is_other = |change: &JsonChange| {
            self.is_decision(change, index) && if is_write { !is_wording(change) } else { is_other_object(change) }
        };
        let message = match row.row {
            Row::Added(_) | Row::Removed(_) if is_write => format!("{name}: only in {side}"),
            Row::Both { .. } if row.changes.iter().any(is_other) => {
                format!("{name}: {}", messages::changes(&row.changes))
            }
            Row::Added(_) | Row::Removed(_) | Row::Both { .. } => return None,
        };
        Some(BehaviourChange { message, pointers: row_pointers("/events", row.row) })
    }

    /// Whether a difference of what new did at an event is the agent's: an earlier result that differs in the same way explains it.
    fn is_decision(&self, change: &JsonChange, made: usize) -> bool {
        let follows = |values| self.other_results.get(&hashes(values)).is_some_and(|result| *result < made);
        !change.is_form_only() && !both_values(change).is_some_and(follows)
    }

    /// The event of new that carried an action out; the end for one that was only proposed.
    fn made_at(&self, action: &ProposedAction) -> usize {
        let events = self.events(Side::New);
        let carries_out = |event: &Event| {
            event.tool_call().is_some_and(|call| call.action_id.as_deref() == Some(action.action_id.as_str()))
        };
        events.iter().position(carries_out).unwrap_or(events.len())
    }

    /// Tools, or retrievals, that baseline uses in the case and new does not, if no other tool took their place.
    fn lookups_gone(&self) -> Vec<BehaviourChange> {
        let used = |side: Side| {
            let mut used: Vec<(Option<&str>, usize)> = Vec::new();
            for (index, event) in self.events(side).iter().enumerate() {
                let name = match &event.body {
                    EventBody::ToolCall(call) if !self.outcomes.get(side).call_failed(call) => Some(call.tool.as_str()),
                    EventBody::Retrieval(_) => None,
                    _ => continue,
                };
                if !used.iter().any(|(known, _)| *known == name) {
                    used.push((name, index));
                }
            }
            used
        };
        let (before, after) = (used(Side::Baseline), used(Side::New));
        let has = |used: &[(Option<&str>, usize)], name| used.iter().any(|(known, _)| *known == name);
        if after.iter().any(|(name, _)| !has(&before, *name)) {
            return Vec::new();
        }
        let is_write = |name: Option<&str>| name.is_some_and(|name| self.write_tools.contains(name));
        let gone = before.iter().filter(|(name, _)| !has(&after, *name) && !is_write(*name)).take(LISTED);
        gone.map(|(name, index)| BehaviourChange {
            message: match name {
                Some(tool) => format!("{} is no longer called", text::one_line(tool, 60)),
                None => "no document is retrieved any more".to_owned(),
            },
            pointers: vec![SidePointer::new(Side::Baseline, format!("/events/{index}"))],
        })
        .collect()
    }

    /// Calls that change something before a step that baseline takes before them, or without it.
    fn no_longer_waiting(&self) -> Vec<BehaviourChange> {
        if !self.differences.events.iter().any(EventRow::counts) {
            return Vec::new();
        }
        let done = Sides::from_fn(|side| Done::new(self.events(side)));
        let first_calls = self.first_calls();
        let is_lookup = |body: &EventBody| matches!(body, EventBody::ToolCall(_) | EventBody::Retrieval(_));
        let steps: Vec<&EventRow> = self
            .differences
            .events
            .iter()
            .filter(|row| {
                let (side, index) = row.row.named_by();
                let event = &self.events(side)[index];
                is_lookup(&event.body) && (event.tool_call().is_none() || self.call(row).is_some())
            })
            .collect();
        let mut found = Vec::new();
        for write in &steps {
            let Row::Both { baseline: old, new } = write.row else { continue };
            if !self.call(write).is_some_and(|call| self.is_write(call)) {
                continue;
            }
            let is_replaced = steps.iter().any(|step| matches!(step.row, Row::Added(added) if added < new));
            let left = steps.iter().find(|step| match step.row {
                Row::Both { baseline, new: other } => {
                    baseline != old && done.baseline.of(baseline) < old && done.new.of(other) > new
                }
                Row::Removed(baseline) => {
                    let call = self.events(Side::Baseline)[baseline].tool_call();
                    let made = call.and_then(|call| first_calls.get(&key_of_call(call)));
                    let is_made = made.is_some_and(|made| *made < new);
                    done.baseline.of(baseline) < old && !is_replaced && !is_made
                }
                Row::Added(_) => false,
            });
            let Some(left) = left else { continue };
            let name = |row: &EventRow| {
                let (side, index) = row.row.named_by();
                step_name(&self.events(side)[index], self.loaded(side))
            };
            let how = if matches!(left.row, Row::Both { .. }) { "now before" } else { "without" };
            let mut pointers = row_pointers("/events", write.row);
            pointers.extend(row_pointers("/events", left.row));
            found.push(BehaviourChange { message: format!("{} {how} the {}", name(write), name(left)), pointers });
            if found.len() == LISTED {
                break;
            }
        }
        found
    }

    /// The first event of new that makes each call.
    fn first_calls(&self) -> HashMap<(&'a str, u64), usize> {
        let mut first = HashMap::new();
        for (index, event) in self.events(Side::New).iter().enumerate() {
            if let Some(call) = event.tool_call() {
                first.entry(key_of_call(call)).or_insert(index);
            }
        }
        first
    }
}

/// Equal for calls of one tool with the same arguments.
fn key_of_call(call: &ToolCall) -> (&str, u64) {
    (&call.tool, object_hash(&call.args))
}

/// When the steps of an answer were done: a call with its result.
struct Done<'a> {
    events: &'a [Event],
    results: HashMap<&'a str, usize>,
}

impl<'a> Done<'a> {
    fn new(events: &'a [Event]) -> Self {
        let result = |(index, event): (usize, &'a Event)| match &event.body {
            EventBody::ToolResult(result) => Some((result.call_id.as_str(), index)),
            _ => None,
        };
        Self { events, results: events.iter().enumerate().filter_map(result).collect() }
    }

    fn of(&self, index: usize) -> usize {
        let call = self.events[index].tool_call();
        call.and_then(|call| self.results.get(call.call_id.as_str()).copied()).unwrap_or(index)
    }
}

fn both_values(change: &JsonChange) -> Option<(&Value, &Value)> {
    Some((&change.baseline.as_ref()?.value, &change.new.as_ref()?.value))
}

fn hashes((old, new): (&Value, &Value)) -> (u64, u64) {
    (meaning_hash(old), meaning_hash(new))
}

/// Words in the names of arguments that say where something goes.
const DESTINATIONS: [&str; 5] = ["address", "street", "phone", "iban", "url"];

/// Whether a change is only one of words: a text of several words with the same numbers, at an argument that identifies nothing.
fn is_wording(change: &JsonChange) -> bool {
    let Some((Value::String(old), Value::String(new))) = both_values(change) else { return false };
    let numbers = |text| {
        let mut numbers: Vec<&str> = text::words_with_digits(text).collect();
        numbers.sort_unstable();
        numbers
    };
    let is_prose = |text: &str| text.trim().contains(char::is_whitespace) && !text.contains('@');
    is_prose(old) && is_prose(new) && numbers(old) == numbers(new) && !is_identifying(name_of(change.pointer()))
}

fn is_identifying(name: &str) -> bool {
    tool_names::words(name).iter().any(|word| identifies(word) || DESTINATIONS.contains(&word.as_str()))
}

/// Whether a lookup has another id or another address: a word with letters and digits, or any word at an argument that
/// identifies something. Numbers are often sizes of pages, and texts of several words are queries.
fn is_other_object(change: &JsonChange) -> bool {
    let is_named = || is_identifying(name_of(change.pointer()));
    match both_values(change) {
        Some((Value::String(old), Value::String(new))) => {
            let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
            let has_digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
            let is_id = |text: &str| is_word(text) && has_digit(text) && text.bytes().any(|b| b.is_ascii_alphabetic());
            old.to_lowercase() != new.to_lowercase() && (is_id(old) && is_id(new) || is_word(new) && is_named())
        }
        Some((Value::Number(_), Value::Number(_))) => is_named(),
        _ => false,
    }
}
