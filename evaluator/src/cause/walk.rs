//! Chooses the change of a case that weighs most, and walks back from it along evidence refs, from results to their calls, and from values
//! to their sources, on both sides at once, to the earliest difference on these paths. Each event is visited once, so the work is linear.

use std::collections::{HashMap, HashSet, VecDeque};

use counterproof_artifact::evaluation::{ExpectationResult, SidePointer, Verdict};
use counterproof_artifact::{Content, Event, EventBody, EvidenceTarget, RiskLevel, Side, Sides, ToolCall};
use serde_json::{Map, Value};

use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::output::OutputChange;
use crate::diff::{Differences, EventRole, WithEvidence};
use crate::grounding::{self, Holder, Leaf, Origin, Provenance};
use crate::judge::ReasonCode;
use crate::judge::findings::{Findings, LocatedFinding};
use crate::judge::outcomes::{self, Outcomes};
use crate::load::LoadedAnswer;
use crate::load::case_input::{self, CaseInput, Speaker};
use crate::load::evidence::Resolved;
use crate::values::{key_of, meaning_hash, object_hash};

/// Two answers that differ, and how their elements are connected.
#[derive(Clone, Copy)]
pub(crate) struct Inquiry<'a> {
    pub baseline: WithEvidence<'a>,
    pub new: WithEvidence<'a>,
    pub differences: &'a Differences,
    /// The counterparts of elements, and the sources of values.
    pub provenance: &'a Provenance<'a>,
    pub verdict: Verdict,
    pub expectations: &'a [ExpectationResult],
    pub findings: &'a Findings,
    pub inputs: Sides<&'a CaseInput<'a>>,
}

impl<'a> Inquiry<'a> {
    pub(super) const fn answers(&self) -> Sides<&'a LoadedAnswer> {
        Sides { baseline: self.baseline.loaded, new: self.new.loaded }
    }

    pub(super) const fn side(&self, side: Side) -> WithEvidence<'a> {
        match side {
            Side::Baseline => self.baseline,
            Side::New => self.new,
        }
    }
}

#[derive(Debug)]
pub(super) struct FoundDifference {
    pub(super) place: usize,
    /// From the effect back to the difference.
    pub(super) path: Vec<SidePointer>,
    /// The value that only the user of this side named.
    pub(super) named: Option<(Side, Value)>,
}

/// A visited event, and the visit from which it was reached.
struct Visit {
    side: Side,
    event: usize,
    from: Option<usize>,
    link: Link,
    /// A changed value that the event, a turn of the user, names, and the user of the other side nowhere.
    named: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// A changed value first occurs there.
    Value,
    /// The agent names it as evidence, or it is the outcome of the effect. Agents name more evidence than they need.
    Reference,
}

struct Walk<'i, 'a> {
    inquiry: &'i Inquiry<'a>,
    seen: HashMap<(Side, usize), usize>,
    visits: Vec<Visit>,
    open: VecDeque<usize>,
}

/// Walks back from an effect; `None` if nothing on the paths differs.
pub(super) fn back(inquiry: &Inquiry<'_>, effect: Effect) -> Option<FoundDifference> {
    let mut walk = Walk { inquiry, seen: HashMap::new(), visits: Vec::new(), open: VecDeque::new() };
    walk.start(effect);
    // Breadth first, so that the path to an event is the shortest one.
    while let Some(visit) = walk.open.pop_front() {
        walk.leave(visit);
    }
    walk.earliest(effect).or_else(|| walk.untraced(effect))
}

impl Walk<'_, '_> {
    fn start(&mut self, effect: Effect) {
        match effect {
            Effect::Action(_) | Effect::UngroundedCall(_) => {
                for (side, holder) in effect.holders(self.inquiry) {
                    if let Holder::Action(index) = holder {
                        let refs = self.inquiry.side(side).evidence.get(index).map_or(&[][..], Vec::as_slice);
                        for followed in refs {
                            if let Some(Resolved::Event(event)) = followed.resolved {
                                self.visit(side, event, None, self.link_of_refs(effect));
                            }
                        }
                        self.visit_moved_refs(side, index);
                    }
                    self.visit_origins(side, holder, None);
                }
                self.visit_outcomes(effect);
            }
            Effect::Output => {
                for side in Side::BOTH {
                    let sources = self.output_sources(side);
                    self.visit_sources(side, sources, None);
                }
            }
            Effect::Event(row) => {
                for (side, event) in self.inquiry.differences.events[row].row.elements() {
                    self.visit(side, event, None, Link::Value);
                }
            }
        }
    }

    /// The link of a reference: where nothing but the evidence of an action differs, the references are what changed.
    fn link_of_refs(&self, effect: Effect) -> Link {
        match effect {
            Effect::Action(row) if self.inquiry.differences.actions[row].has_only_other_evidence() => Link::Value,
            _ => Link::Reference,
        }
    }

    /// Visits the results of the calls of an action that failed on one side only.
    fn visit_outcomes(&mut self, effect: Effect) {
        let Effect::Action(row) = effect else { return };
        if !failed_on_one_side(self.inquiry).contains(&row) {
            return;
        }
        for (side, holder) in effect.holders(self.inquiry) {
            let loaded = self.inquiry.side(side).loaded;
            if let Holder::Action(index) = holder {
                let outcomes = Outcomes::new(loaded);
                for result in outcomes.results(&loaded.answer.proposed_actions[index]) {
                    self.visit(side, *result, None, Link::Value);
                }
            }
        }
    }

    /// Visits what an unresolved ref resolves to on the other side: that event is missing here.
    fn visit_moved_refs(&mut self, side: Side, action: usize) {
        let Some(other) = self.inquiry.provenance.counterparts.action(side, action).other else { return };
        let theirs = side.other();
        let unresolved: HashSet<&EvidenceTarget> = self.inquiry.side(side).evidence[action]
            .iter()
            .filter(|followed| followed.resolved.is_none())
            .map(|followed| &followed.target)
            .collect();
        for followed in &self.inquiry.side(theirs).evidence[other] {
            if let Some(Resolved::Event(event)) = followed.resolved
                && unresolved.contains(&followed.target)
            {
                self.visit(theirs, event, None, Link::Value);
            }
        }
    }

    fn visit(&mut self, side: Side, event: usize, from: Option<usize>, link: Link) {
        let next = self.visits.len();
        let known = *self.seen.entry((side, event)).or_insert(next);
        if known == next {
            self.open.push_back(next);
            self.visits.push(Visit { side, event, from, link, named: None });
        } else if link == Link::Value {
            // The stronger link wins, whichever path is found first.
            self.visits[known].link = Link::Value;
        }
    }

    /// Visits the sources of a visited event, and its counterpart if the two differ.
    fn leave(&mut self, visit: usize) {
        let Visit { side, event, link, .. } = self.visits[visit];
        let loaded = self.inquiry.side(side).loaded;
        match &loaded.answer.events[event].body {
            EventBody::ToolResult(result) => {
                if let Some(call) = loaded.index.call_position(&result.call_id) {
                    self.visit(side, call, Some(visit), link);
                }
            }
            EventBody::ToolCall(_) => self.visit_origins(side, Holder::Call(event), Some(visit)),
            EventBody::Retrieval(_) | EventBody::FinalOutput(_) | EventBody::Unknown { .. } => {}
        }
        let stand = self.inquiry.provenance.counterparts.event(side, event);
        if let Some(other) = stand.other
            && stand.differs
        {
            let theirs = side.other();
            self.visit(theirs, other, Some(visit), link);
        }
    }

    /// The events that the changed values of a call or an action came from.
    fn visit_origins(&mut self, side: Side, holder: Holder, from: Option<usize>) {
        let provenance = self.inquiry.provenance;
        let (mine, theirs) = match side {
            Side::Baseline => (&provenance.baseline, &provenance.new),
            Side::New => (&provenance.new, &provenance.baseline),
        };
        let key = |leaf: &Leaf<'_>| (leaf.argument, meaning_hash(leaf.value));
        let other = provenance.counterparts.other(side, holder).map(|other| theirs.held_by(other)).unwrap_or_default();
        // Only changed values can explain a change, so the origins of equal ones are not followed.
        let unchanged: HashSet<_> = other.iter().map(key).collect();
        let mut found = Vec::new();
        for leaf in mine.held_by(holder) {
            if let Origin::Event(event) = leaf.origin
                && !unchanged.contains(&key(leaf))
            {
                found.push((event, leaf.value.clone()));
            }
        }
        self.visit_sources(side, found, from);
    }

    /// Visits the events in which values first occurred.
    fn visit_sources(&mut self, side: Side, sources: Vec<(usize, Value)>, from: Option<usize>) {
        let loaded = self.inquiry.side(side).loaded;
        let (mut turns, mut values) = (Vec::new(), Vec::new());
        for (event, value) in sources {
            self.visit(side, event, from, Link::Value);
            if case_input::speaker(&loaded.answer.events[event]) == Some(Speaker::User) {
                turns.push(event);
                values.push(value);
            }
        }
        if turns.is_empty() {
            return;
        }
        let other = side.other();
        let named = grounding::named_by_user(self.inquiry.side(other).loaded, self.inquiry.inputs.get(other), &values);
        for ((event, value), _) in turns.into_iter().zip(values).zip(named).filter(|(_, named)| !named) {
            if let Some(visit) = self.seen.get(&(side, event)) {
                self.visits[*visit].named.get_or_insert(value);
            }
        }
    }

    /// The events in which the changed values of the output first occurred.
    fn output_sources(&self, side: Side) -> Vec<(usize, Value)> {
        let content = |side: Side| &self.inquiry.side(side).loaded.answer.final_output.content;
        let values: Vec<Value> = match (&self.inquiry.differences.output, content(side), content(side.other())) {
            (OutputChange::Json(changes), ..) => changes
                .iter()
                .filter_map(|change| if side == Side::New { change.new.as_ref() } else { change.baseline.as_ref() })
                .map(|place| place.value.clone())
                .collect(),
            (OutputChange::Text(_), Content::Text(mine), Content::Text(theirs)) => {
                grounding::numbers_only_in(mine, theirs).into_iter().map(Value::from).collect()
            }
            _ => Vec::new(),
        };
        let origins =
            grounding::origins_of_values(self.inquiry.side(side).loaded, self.inquiry.inputs.get(side), &values);
        let sources = origins.into_iter().zip(values).filter_map(|(origin, value)| match origin {
            Origin::Event(event) => Some((event, value)),
            Origin::Exempt | Origin::Input | Origin::Nowhere | Origin::Unknown => None,
        });
        sources.collect()
    }

    fn earliest(&self, effect: Effect) -> Option<FoundDifference> {
        let invented = effect.is_ungrounded(self.inquiry);
        // Agents read more than they use, and in another order each time, so a difference on the path is not yet an
        // explanation.
        let relevance = Relevance::new(self.inquiry, effect);
        let differing = self.visits.iter().enumerate().filter_map(|(index, visit)| {
            let stand = self.inquiry.provenance.counterparts.event(visit.side, visit.event);
            // An event that only new has cannot be the reason that a value lost its source.
            let explains = !(invented && visit.side == Side::New && stand.other.is_none());
            // Of both sides of a row, prefer the new side: readers start there.
            // The agent does not choose what the user says.
            let relevant =
                || visit.named.is_some() || relevance.explains(visit.side, visit.event, visit.link == Link::Value);
            let order = (visit.named.is_none(), stand.row, visit.side == Side::Baseline, index);
            (stand.differs && explains && relevant()).then_some(order)
        });
        // By row, the earliest first: what differs later can be its consequence. Before all others what the user named, because
        // every later step may follow from it.
        let (_, place, _, visit) = differing.min()?;
        let mut path = Vec::new();
        let mut at = Some(visit);
        while let Some(index) = at {
            let Visit { side, event, from, .. } = &self.visits[index];
            let (side, event, from) = (*side, *event, *from);
            path.push(SidePointer::new(side, format!("/events/{event}")));
            at = from;
        }
        path.push(effect.pointer(self.inquiry));
        path.reverse();
        path.dedup();
        let Visit { side, named, .. } = &self.visits[visit];
        Some(FoundDifference { place, path, named: named.clone().map(|value| (*side, value)) })
    }

    /// Falls back to the first step that differs, if the output differs and no value links the two.
    fn untraced(&self, effect: Effect) -> Option<FoundDifference> {
        let place = (effect == Effect::Output).then(|| first_step(self.inquiry)).flatten()?;
        let path = vec![effect.pointer(self.inquiry), Effect::Event(place).pointer(self.inquiry)];
        Some(FoundDifference { place, path, named: None })
    }
}

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
            events.iter().filter_map(Event::tool_call).map(call_key).collect()
        });
        Self { inquiry, values, calls }
    }

    /// True if a differing event explains the effect. `by_value` if a changed value first occurs in it.
    pub(super) fn explains(&self, side: Side, event: usize, by_value: bool) -> bool {
        let counterpart = self.inquiry.provenance.counterparts.event(side, event);
        let row = &self.inquiry.differences.events[counterpart.row];
        if row.role(self.inquiry.answers()) != EventRole::Step || row.is_only_reworded() {
            return false;
        }
        if counterpart.other.is_some() {
            return !row.moved || !row.changes.is_empty();
        }
        let loaded = self.inquiry.side(side).loaded;
        let Some(call) = call_of(loaded, event) else { return true };
        // An agent reads in another order each time, so a call that the other side also made explains nothing.
        let is_made_there = self.calls.get(side.other()).contains(&call_key(call));
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
fn call_of(loaded: &LoadedAnswer, event: usize) -> Option<&ToolCall> {
    let events = &loaded.answer.events;
    match &events[event].body {
        EventBody::ToolResult(result) => loaded.index.call(events, &result.call_id),
        _ => events[event].tool_call(),
    }
}

fn call_key(call: &ToolCall) -> u64 {
    key_of((&call.tool, object_hash(&call.args)))
}

fn arguments(loaded: &LoadedAnswer, holder: Holder) -> Option<&Map<String, Value>> {
    match holder {
        Holder::Action(index) => Some(&loaded.answer.proposed_actions[index].params),
        Holder::Call(index) => loaded.answer.events[index].tool_call().map(|call| &call.args),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Action(usize),
    /// A call on new with an ungrounded argument.
    UngroundedCall(usize),
    Output,
    Event(usize),
}

/// Chooses the change that weighs most, in this order: an action that differs or that failed on one side only, by risk, and
/// first one that had an effect; an ungrounded value; an action with other evidence; an action in another form, if no step
/// differs in more; the output; an action that says the same in other words; the first step that differs.
pub(super) fn choose(inquiry: &Inquiry<'_>) -> Option<Effect> {
    let differences = inquiry.differences;
    let failed_on_one_side = failed_on_one_side(inquiry);
    let actions = differences.actions.iter().enumerate();
    let actions = actions.filter(|(number, row)| row.counts() || failed_on_one_side.contains(number));
    let (reworded, actions): (Vec<_>, Vec<_>) =
        actions.partition(|(number, row)| row.changes.are_only_reworded() && !failed_on_one_side.contains(number));
    let (changed, resting): (Vec<_>, Vec<_>) = actions.into_iter().partition(|(number, row)| {
        !matches!(row.row, Row::Both { .. }) || !row.changes.is_empty() || failed_on_one_side.contains(number)
    });
    // `max_by_key` returns the last maximum; reversed, that is the first of the actions with the highest risk.
    let riskiest =
        changed.into_iter().rev().max_by_key(|(_, row)| (risk(inquiry, row.row), had_effect(inquiry, row.row)));
    let invented = || {
        let is_value = |found: &&LocatedFinding| found.code != ReasonCode::RepeatedCall && !found.baseline_has_value;
        let found = inquiry.findings.fresh().find(is_value)?;
        Some(match found.holder {
            Holder::Call(index) => Effect::UngroundedCall(index),
            Holder::Action(index) => Effect::Action(inquiry.provenance.counterparts.action(Side::New, index).row),
        })
    };
    let formal = || {
        let mut formal = reworded.iter().filter(|(_, row)| row.changes.are_form_only());
        formal.next().filter(|_| first_step(inquiry).is_none()).map(|(row, _)| Effect::Action(*row))
    };
    let output = || differences.output_counts().then_some(Effect::Output);
    riskiest
        .map(|(row, _)| Effect::Action(row))
        .or_else(invented)
        .or_else(|| resting.first().map(|(row, _)| Effect::Action(*row)))
        .or_else(formal)
        .or_else(output)
        .or_else(|| reworded.first().map(|(row, _)| Effect::Action(*row)))
        .or_else(|| first_event(inquiry).map(Effect::Event))
}

/// False if all calls of the action failed, on each side that has it.
fn had_effect(inquiry: &Inquiry<'_>, row: Row) -> bool {
    let failed = |side: Side, index: usize| {
        let loaded = inquiry.side(side).loaded;
        outcomes::any_failed(loaded) && Outcomes::new(loaded).failed(&loaded.answer.proposed_actions[index])
    };
    row.elements().any(|(side, index)| !failed(side, index))
}

/// The rows of actions that failed on exactly one side: there, every call that executed them failed.
pub(super) fn failed_on_one_side(inquiry: &Inquiry<'_>) -> HashSet<usize> {
    let (old, new) = (inquiry.baseline.loaded, inquiry.new.loaded);
    if !outcomes::any_failed(old) && !outcomes::any_failed(new) {
        return HashSet::new();
    }
    let (before, after) = (Outcomes::new(old), Outcomes::new(new));
    let (old, new) = (&old.answer.proposed_actions, &new.answer.proposed_actions);
    let rows = inquiry.differences.actions.iter().enumerate();
    let failed_on_one_side = rows.filter(|(_, row)| match row.row {
        Row::Both { baseline, new: index } => !row.noise && before.failed(&old[baseline]) != after.failed(&new[index]),
        Row::Removed(_) | Row::Added(_) => false,
    });
    failed_on_one_side.map(|(number, _)| number).collect()
}

fn risk(inquiry: &Inquiry<'_>, row: Row) -> u8 {
    let of = |(side, index): (Side, usize)| match inquiry.side(side).loaded.answer.proposed_actions[index].risk_level {
        RiskLevel::High => 2,
        // An unstated risk counts as medium, as everywhere.
        RiskLevel::Medium | RiskLevel::Unknown => 1,
        RiskLevel::Low => 0,
    };
    row.elements().map(of).max().unwrap_or_default()
}

impl Effect {
    /// The pointer to the effect, on the new side if possible.
    pub(super) fn pointer(self, inquiry: &Inquiry<'_>) -> SidePointer {
        let at = |list: &str, row: Row| {
            let (side, index) = row.named_by();
            (side, format!("/{list}/{index}"))
        };
        let (side, pointer) = match self {
            Effect::Action(row) => at("proposed_actions", inquiry.differences.actions[row].row),
            Effect::Event(row) => at("events", inquiry.differences.events[row].row),
            Effect::UngroundedCall(index) => (Side::New, format!("/events/{index}")),
            Effect::Output => (Side::New, "/final_output/content".to_owned()),
        };
        SidePointer { side, pointer }
    }

    /// The calls and actions whose values are traced back, by side.
    pub(super) fn holders(self, inquiry: &Inquiry<'_>) -> Vec<(Side, Holder)> {
        match self {
            Effect::Action(row) => {
                let row = inquiry.differences.actions[row].row;
                row.elements().map(|(side, index)| (side, Holder::Action(index))).collect()
            }
            Effect::UngroundedCall(index) => {
                let other = inquiry
                    .provenance
                    .counterparts
                    .event(Side::New, index)
                    .other
                    .map(|it| (Side::Baseline, Holder::Call(it)));
                other.into_iter().chain([(Side::New, Holder::Call(index))]).collect()
            }
            Effect::Output | Effect::Event(_) => Vec::new(),
        }
    }

    pub(super) fn is_ungrounded(self, inquiry: &Inquiry<'_>) -> bool {
        self.holders(inquiry).iter().any(|(side, holder)| *side == Side::New && inquiry.findings.is_ungrounded(*holder))
    }
}

pub(super) fn any_step_differs(inquiry: &Inquiry<'_>) -> bool {
    first_step(inquiry).is_some()
}

/// The first step that differs in more than its position or the way in which it says the same.
pub(super) fn first_step(inquiry: &Inquiry<'_>) -> Option<usize> {
    position(inquiry, |row, role| {
        let is_moved = row.moved && row.changes.is_empty();
        role == EventRole::Step && !is_moved && !row.is_only_reworded()
    })
}

/// The first row that differs: a step if possible, else what the agent said, else what the user said.
fn first_event(inquiry: &Inquiry<'_>) -> Option<usize> {
    let first = |wanted: EventRole| position(inquiry, |_, role| role == wanted);
    first_step(inquiry)
        .or_else(|| first(EventRole::Step))
        .or_else(|| first(EventRole::Wording))
        .or_else(|| first(EventRole::Input))
}

fn position(inquiry: &Inquiry<'_>, is_wanted: impl Fn(&EventRow, EventRole) -> bool) -> Option<usize> {
    let answers = inquiry.answers();
    inquiry.differences.events.iter().position(|row| row.counts() && is_wanted(row, row.role(answers)))
}
