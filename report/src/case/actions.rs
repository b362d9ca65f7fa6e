//! The proposed actions of both sides, aligned in rows, each with its evidence and the outcomes of the calls that carried it out.

use std::borrow::Cow;

use counterproof_artifact::{Side, Sides};
use counterproof_evaluator::{
    ActionRow, CallOutcome, EvidenceChange, FollowedRef, JsonChanges, Resolved, Row, any_failed, call_outcomes,
    messages, row_pointers, text,
};

use super::cells::{self, CellView, ElementContext, EvidenceView, Highlights, NOISE, PairHighlights, RowView};
use super::context::{self, CaseContext};
use crate::view::changes::{self, ChangesView};
use crate::view::display;

// Further rows are left out: the linked artifact has all of them.
const MOST_ROWS: usize = 500;

#[derive(Debug, Clone, Default)]
pub(crate) struct ActionsView {
    pub(crate) rows: Vec<RowView>,
    /// A summary where all actions are equal, which are then folded; otherwise empty.
    pub(crate) summary: String,
    /// What is not shown; empty where everything is.
    pub(crate) more: String,
}

/// The actions of both sides, or of the only side with an answer.
pub(crate) fn view(context: &CaseContext<'_>) -> ActionsView {
    let rows = rows(context);
    let outcomes = CallOutcomes::new(context);
    let hidden = rows.len().saturating_sub(MOST_ROWS);
    // Without a comparison, nothing is known to be equal.
    let all_same = context.case.differences.is_some()
        && !rows.is_empty()
        && rows.iter().all(|row| row.is_same() && !outcomes.differ(row.row));
    ActionsView {
        rows: rows.iter().take(MOST_ROWS).map(|row| row_view(context, row, &outcomes)).collect(),
        summary: if all_same {
            text::count(rows.len(), "identical action", "identical actions")
        } else {
            String::new()
        },
        more: if hidden > 0 { format!("{hidden} more actions are in the artifacts") } else { String::new() },
    }
}

fn rows<'a>(context: &'a CaseContext<'_>) -> Cow<'a, [ActionRow]> {
    if let Some(differences) = &context.case.differences {
        return Cow::Borrowed(&differences.actions);
    }
    // A single answer has nothing to be aligned with, so its actions keep their order.
    let Some((side, loaded)) = context.only_answer() else { return Cow::Borrowed(&[]) };
    let row = |index| ActionRow {
        row: cells::alone(side, index),
        changes: JsonChanges::default(),
        evidence: EvidenceChange::Same,
        noise: false,
    };
    (0..loaded.answer.proposed_actions.len()).map(row).collect()
}

fn row_view(context: &CaseContext<'_>, row: &ActionRow, outcomes: &CallOutcomes) -> RowView {
    let compared = context.case.differences.is_some();
    // `plain` has no sign: next to a side without an answer, an action is neither added nor removed.
    let class = if compared { cells::class(row.operation()) } else { "plain" };
    let highlights = PairHighlights::new(&row.changes);
    let cell = |side, index| cell(context, &ActionInput { side, index, highlights: highlights.get(side), outcomes });
    let cells = match row.row {
        Row::Both { baseline, new } if row.is_same() && !outcomes.differ(row.row) => {
            vec![Some(shared_cell(context, baseline, new, outcomes))]
        }
        Row::Both { baseline, new } => vec![cell(Side::Baseline, baseline), cell(Side::New, new)],
        // One column, because an empty cell next to it would look like a removed action.
        Row::Removed(index) if !compared => vec![cell(Side::Baseline, index)],
        Row::Added(index) if !compared => vec![cell(Side::New, index)],
        Row::Removed(index) => vec![cell(Side::Baseline, index), None],
        Row::Added(index) => vec![None, cell(Side::New, index)],
    };
    // After the cells, because building them records which changes are highlighted.
    let changes = if highlights.cover(&row.changes) {
        ChangesView::default()
    } else {
        changes::changes_view(&row.changes, &context.budget)
    };
    RowView { class, cells, changes, note: note(context, row, outcomes), is_first: false }
}

fn note(context: &CaseContext<'_>, row: &ActionRow, outcomes: &CallOutcomes) -> String {
    let evidence = match row.evidence {
        EvidenceChange::Same => "",
        EvidenceChange::Changed => "Its evidence changed.",
        EvidenceChange::Lost => "Evidence was lost: a reference is missing or does not resolve.",
    };
    let is_noise = !row.is_same() && context.is_noise(&row_pointers("/proposed_actions", row.row));
    let notes = [outcomes.note(row.row), evidence, if is_noise { NOISE } else { "" }];
    notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join(" ")
}

/// An action that both sides propose: the new action, with the ids and the evidence of both sides.
fn shared_cell(context: &CaseContext<'_>, baseline: usize, new: usize, outcomes: &CallOutcomes) -> CellView {
    let highlights = Highlights::default();
    let input = ActionInput { side: Side::New, index: new, highlights: &highlights, outcomes };
    let mut view = cell(context, &input).unwrap_or_default();
    // Links of both sides must find the shared cell, so it has the ids of both.
    view.anchors.insert(0, context.anchors.add(context::action(Side::Baseline, baseline)));
    view.side.clear();
    view.number = cells::number(Row::Both { baseline, new });
    let id = |side, index: usize| {
        context.answer(side).map(|loaded| loaded.answer.proposed_actions[index].action_id.as_str())
    };
    // The id is the first fact. Ids are not compared, so equal actions may have different ones.
    if let (Some(fact), Some(old), Some(other)) =
        (view.facts.first_mut(), id(Side::Baseline, baseline), id(Side::New, new))
    {
        *fact = cells::both(old, other);
    }
    view.evidence = shared_evidence(context, evidence(context, Side::Baseline, baseline), view.evidence);
    view
}

/// The evidence of both sides: listed once if it is equal, otherwise with its side.
fn shared_evidence(context: &CaseContext<'_>, old: Vec<EvidenceView>, new: Vec<EvidenceView>) -> Vec<EvidenceView> {
    // The links may differ where they lead to one shared step, which has the ids of both sides.
    let is_same = |(a, b): (&EvidenceView, &EvidenceView)| {
        (&a.kind, &a.id, &a.target) == (&b.kind, &b.id, &b.target)
            && context.anchors.is_same_target(a.href.as_deref(), b.href.as_deref())
    };
    if old.len() == new.len() && old.iter().zip(&new).all(is_same) {
        return new;
    }
    let of_side = |side: Side| move |view: EvidenceView| EvidenceView { side: Some(side.as_str()), ..view };
    old.into_iter().map(of_side(Side::Baseline)).chain(new.into_iter().map(of_side(Side::New))).collect()
}

struct ActionInput<'a, 'h> {
    side: Side,
    index: usize,
    highlights: &'a Highlights<'h>,
    outcomes: &'a CallOutcomes,
}

fn cell(context: &CaseContext<'_>, input: &ActionInput<'_, '_>) -> Option<CellView> {
    let ActionInput { side, index, highlights, outcomes } = *input;
    let action = &context.answer(side)?.answer.proposed_actions[index];
    let mut facts = vec![display::visible(&action.action_id)];
    facts.extend(action.risk_tags.iter().map(|tag| display::visible(tag)));
    let outcome = outcomes.of_action(side, index);
    facts.extend(outcome.summary());
    let pointer = format!("/proposed_actions/{index}");
    let element = ElementContext { pointer: &pointer, highlights, budget: &context.budget };
    let mut values = vec![element.highlighted("parameters", "params", &action.params)];
    if !action.extra.is_empty() {
        values.push(cells::value("more fields", &action.extra, &context.budget));
    }
    Some(CellView {
        anchors: vec![context.anchors.add(context::action(side, index))],
        side: side.to_string(),
        number: (index + 1).to_string(),
        kind: display::visible(&action.action_type),
        name: display::visible(&action.tool_name),
        risk: Some(action.risk_level.as_str()),
        failed: outcome.is_failed(),
        facts,
        values,
        evidence: evidence(context, side, index),
        has_evidence: true,
        ..CellView::default()
    })
}

fn evidence(context: &CaseContext<'_>, side: Side, index: usize) -> Vec<EvidenceView> {
    let followed = match side {
        Side::Baseline => &context.case.baseline_evidence,
        Side::New => &context.case.new_evidence,
    };
    let references = followed.get(index).map(Vec::as_slice).unwrap_or_default();
    references.iter().map(|reference| evidence_view(context, side, reference)).collect()
}

fn evidence_view(context: &CaseContext<'_>, side: Side, reference: &FollowedRef) -> EvidenceView {
    let (href, target) = match &reference.resolved {
        None => (None, "unresolved".to_owned()),
        Some(Resolved::Event(index)) => {
            // A step beyond the limit of rows has no id, but its section has one.
            let href = context.anchors.href(&context::event(side, *index)).unwrap_or_else(|| "#events".to_owned());
            (Some(href), event_target(context, side, *index))
        }
        Some(Resolved::Asset(name)) => {
            let file = context.asset(side, name);
            // A missing file is named with the reason, so that the reader need not search the run folder.
            let target = if file.href.is_some() { file.name } else { format!("{}: {}", file.name, file.missing) };
            (file.href.map(|href| format!("../{href}")), target)
        }
    };
    EvidenceView {
        side: None,
        kind: reference.target.kind(),
        id: display::visible(reference.target.id()),
        resolved: href.is_some(),
        href,
        target,
    }
}

fn event_target(context: &CaseContext<'_>, side: Side, index: usize) -> String {
    let name = context.answer(side).and_then(|loaded| {
        let event = loaded.answer.events.get(index)?;
        Some(messages::step_name(event, loaded))
    });
    format!("step {}: {}", index + 1, name.unwrap_or_default())
}

/// The call outcomes of all actions of a case.
#[derive(Debug, Default)]
pub(crate) struct CallOutcomes {
    /// The outcomes of each side, in the order of its actions; empty where no tool call failed.
    sides: Sides<Vec<CallOutcome>>,
}

impl CallOutcomes {
    pub(crate) fn new(context: &CaseContext<'_>) -> Self {
        let has_failures = |side| context.answer(side).is_some_and(any_failed);
        // Without a failed tool call, no outcome is shown.
        if !Side::BOTH.into_iter().any(has_failures) {
            return Self::default();
        }
        let of_side = |side| context.answer(side).map(call_outcomes).unwrap_or_default();
        Self { sides: Sides::from_fn(of_side) }
    }

    pub(crate) fn of_action(&self, side: Side, index: usize) -> CallOutcome {
        self.sides.get(side).get(index).copied().unwrap_or_default()
    }

    /// Returns whether the cells of a pair of actions show different outcomes.
    pub(crate) fn differ(&self, row: Row) -> bool {
        self.of_pair(row).is_some_and(|Sides { baseline, new }| {
            (baseline.is_failed(), baseline.summary()) != (new.is_failed(), new.summary())
        })
    }

    /// The note on a pair of actions of which only one failed; empty for every other row.
    pub(crate) fn note(&self, row: Row) -> &'static str {
        match self.of_pair(row) {
            // An action without calls was only proposed, so its outcome cannot be compared.
            Some(Sides { baseline, new }) if baseline.calls > 0 && new.calls > 0 => {
                match (baseline.is_failed(), new.is_failed()) {
                    (false, true) => "The call failed on new but not on baseline.",
                    (true, false) => "The call failed on baseline but not on new.",
                    _ => "",
                }
            }
            _ => "",
        }
    }

    fn of_pair(&self, row: Row) -> Option<Sides<CallOutcome>> {
        let Row::Both { baseline, new } = row else { return None };
        let indexes = Sides { baseline, new };
        Some(Sides::from_fn(|side| self.of_action(side, *indexes.get(side))))
    }
}
