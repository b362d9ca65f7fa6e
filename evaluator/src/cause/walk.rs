//! Walks back from an effect along evidence refs, from results to their calls, and from values to their sources, on both sides
//! at once, and finds the earliest difference on these paths. Each event is visited once, so the work is linear.

use std::collections::{HashMap, HashSet, VecDeque};

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Content, EventBody, EvidenceTarget, Side};
use serde_json::Value;

use super::effect::{self, Effect};
use super::inquiry::Inquiry;
use super::relevance::Relevance;
use crate::diff::align::Row;
use crate::diff::output::OutputChange;
use crate::grounding::{self, Holder, Leaf, Origin};
use crate::judge::outcomes::Outcomes;
use crate::load::evidence::Resolved;
use crate::values::meaning_hash;

/// The earliest difference, and the path to it.
#[derive(Debug)]
pub(super) struct FoundDifference {
    /// The row of the aligned events.
    pub(super) place: usize,
    /// From the effect back to the difference.
    pub(super) path: Vec<SidePointer>,
}

/// A visited event, and the visit from which it was reached.
struct Visit {
    side: Side,
    event: usize,
    from: Option<usize>,
    link: Link,
}

/// What leads to a visited event.
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

/// Walks back from an effect; `None` where nothing on the paths differs.
pub(super) fn back(inquiry: &Inquiry<'_>, effect: Effect) -> Option<FoundDifference> {
    let mut walk = Walk { inquiry, seen: HashMap::new(), visits: Vec::new(), open: VecDeque::new() };
    walk.start(effect);
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
                    for origin in self.output_origins(side) {
                        if let Origin::Event(event) = origin {
                            self.visit(side, event, None, Link::Value);
                        }
                    }
                }
            }
            Effect::Event(row) => match self.inquiry.differences.events[row].row {
                Row::Both { baseline, new } => {
                    self.visit(Side::Baseline, baseline, None, Link::Value);
                    self.visit(Side::New, new, None, Link::Value);
                }
                Row::Removed(index) => self.visit(Side::Baseline, index, None, Link::Value),
                Row::Added(index) => self.visit(Side::New, index, None, Link::Value),
            },
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
        if !effect::failed_on_one_side(self.inquiry).contains(&row) {
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
            self.visits.push(Visit { side, event, from, link });
        } else if link == Link::Value {
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
        let unchanged: HashSet<_> = other.iter().map(key).collect();
        for leaf in mine.held_by(holder) {
            if let Origin::Event(event) = leaf.origin
                && !unchanged.contains(&key(leaf))
            {
                self.visit(side, event, from, Link::Value);
            }
        }
    }

    /// The sources of the changed values of the output.
    fn output_origins(&self, side: Side) -> Vec<Origin> {
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
        grounding::origins_of_values(self.inquiry.side(side).loaded, self.inquiry.inputs.get(side), &values)
    }

    /// The earliest difference that was visited.
    fn earliest(&self, effect: Effect) -> Option<FoundDifference> {
        let invented = effect.is_ungrounded(self.inquiry);
        let relevance = Relevance::new(self.inquiry, effect);
        let differing = self.visits.iter().enumerate().filter_map(|(index, visit)| {
            let stand = self.inquiry.provenance.counterparts.event(visit.side, visit.event);
            // An event that only new has cannot be the reason that a value lost its source.
            let explains = !(invented && visit.side == Side::New && stand.other.is_none());
            // Of both sides of a row, prefer the new side: readers start there.
            let relevant = || relevance.explains(visit.side, visit.event, visit.link == Link::Value);
            (stand.differs && explains && relevant()).then_some((stand.row, visit.side == Side::Baseline, index))
        });
        let (place, _, visit) = differing.min()?;
        let mut path = Vec::new();
        let mut at = Some(visit);
        while let Some(index) = at {
            let Visit { side, event, from, .. } = self.visits[index];
            path.push(SidePointer { side, pointer: format!("/events/{event}") });
            at = from;
        }
        path.push(effect.pointer(self.inquiry));
        path.reverse();
        path.dedup();
        Some(FoundDifference { place, path })
    }

    /// Falls back to the first step that differs, where the output differs and no value links the two.
    fn untraced(&self, effect: Effect) -> Option<FoundDifference> {
        let place = (effect == Effect::Output).then(|| effect::first_step(self.inquiry)).flatten()?;
        let path = vec![effect.pointer(self.inquiry), Effect::Event(place).pointer(self.inquiry)];
        Some(FoundDifference { place, path })
    }
}
