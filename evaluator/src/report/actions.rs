//! The proposed actions of the two sides, aligned in rows, each with the evidence that it rests on.

use counterproof_artifact::Side;
use serde_json::json;

use super::case_page::CaseView;
use super::cells::{self, CellShown, EvidenceShown, NOISE, RowShown};
use super::changes::{self, ChangesShown};
use super::endings::Endings;
use super::marks::Marks;
use super::places;
use super::shown;
use super::writer::ReportError;
use crate::diff::actions::{ActionRow, EvidenceChange};
use crate::diff::align::Row;
use crate::diff::json::JsonChanges;
use crate::diff::pointers;
use crate::load::evidence::{FollowedRef, Resolved};
use crate::messages;
use crate::values::text;

/// Most rows of a page.
const MOST_ROWS: usize = 500;

/// The proposed actions of a case.
#[derive(Debug, Clone, Default)]
pub(super) struct ActionsShown {
    /// The rows, in order.
    pub(super) rows: Vec<RowShown>,
    /// What equal actions say of themselves where all are equal; otherwise empty.
    pub(super) summary: String,
    /// What is not shown, in words; empty where all is.
    pub(super) more: String,
}

/// The actions of both sides, or of the one side that answered.
pub(super) fn show(view: &CaseView<'_>) -> Result<ActionsShown, ReportError> {
    let rows = rows(view);
    let endings = Endings::of(view);
    let hidden = rows.len().saturating_sub(MOST_ROWS);
    let shown = rows.iter().take(MOST_ROWS).map(|row| show_row(view, row, &endings)).collect::<Result<Vec<_>, _>>()?;
    let more = if hidden > 0 { format!("{hidden} more actions are in the artifacts") } else { String::new() };
    let all_same = view.case.differences.is_some()
        && !rows.is_empty()
        && rows.iter().all(|row| row.is_same() && !endings.differ(row.row));
    let summary = if all_same {
        format!("{}, the same on both sides", text::count(rows.len(), "action", "actions"))
    } else {
        String::new()
    };
    Ok(ActionsShown { rows: shown, summary, more })
}

fn rows(view: &CaseView<'_>) -> Vec<ActionRow> {
    if let Some(differences) = &view.case.differences {
        return differences.actions.clone();
    }
    let Some((side, loaded)) = view.only_answer() else { return Vec::new() };
    let row = |index| ActionRow {
        row: cells::alone(side, index),
        changes: JsonChanges::default(),
        evidence: EvidenceChange::Same,
        noise: false,
    };
    (0..loaded.answer.proposed_actions.len()).map(row).collect()
}

fn show_row(view: &CaseView<'_>, row: &ActionRow, endings: &Endings) -> Result<RowShown, ReportError> {
    let compared = view.case.differences.is_some();
    let class = if compared { cells::look(row.operation()) } else { "plain" };
    let marks = Side::BOTH.map(|side| Marks::of(&row.changes, side));
    let cell = |side, index| show_cell(view, side, index, &marks[usize::from(side == Side::New)], endings);
    let ended = endings.note(row.row);
    let cells = match row.row {
        Row::Both { baseline, new } if row.is_same() && !endings.differ(row.row) => {
            vec![Some(shared(view, baseline, new, endings)?)]
        }
        Row::Both { baseline, new } => vec![cell(Side::Baseline, baseline)?, cell(Side::New, new)?],
        Row::Removed(index) if !compared => vec![cell(Side::Baseline, index)?],
        Row::Added(index) if !compared => vec![cell(Side::New, index)?],
        Row::Removed(index) => vec![cell(Side::Baseline, index)?, None],
        Row::Added(index) => vec![None, cell(Side::New, index)?],
    };
    let note = match row.evidence {
        EvidenceChange::Same => "",
        EvidenceChange::Changed => "It rests on other evidence.",
        EvidenceChange::Lost => "Evidence that it had is gone, or leads nowhere.",
    };
    let told = Side::BOTH.into_iter().zip(&marks).all(|(side, marks)| marks.tell_all(&row.changes, side));
    let changes = if told { ChangesShown::default() } else { changes::show(&row.changes, &view.budget) };
    let noise = !row.is_same() && view.is_noise(&pointers::row_pointers("/proposed_actions", row.row));
    let note =
        [ended, note, if noise { NOISE } else { "" }].into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>();
    Ok(RowShown { class, cells, changes, note: note.join(" "), is_first: false })
}

/// An action that both sides propose: shown as new has it, with the evidence of both.
fn shared(view: &CaseView<'_>, baseline: usize, new: usize, endings: &Endings) -> Result<CellShown, ReportError> {
    let mut cell = show_cell(view, Side::New, new, &Marks::default(), endings)?.unwrap_or_default();
    cell.anchors.insert(0, view.anchors.add(places::action(Side::Baseline, baseline)));
    cell.side.clear();
    cell.number = cells::number(Row::Both { baseline, new });
    let id =
        |side, index: usize| view.answer(side).map(|loaded| loaded.answer.proposed_actions[index].action_id.as_str());
    if let (Some(shown), Some(old), Some(other)) =
        (cell.facts.first_mut(), id(Side::Baseline, baseline), id(Side::New, new))
    {
        *shown = cells::both(old, other);
    }
    let theirs = evidence(view, Side::Baseline, baseline)?;
    let ours = std::mem::take(&mut cell.evidence);
    let is_one = |(a, b): (&EvidenceShown, &EvidenceShown)| {
        (&a.kind, &a.id, &a.target) == (&b.kind, &b.id, &b.target)
            && view.anchors.are_one(a.href.as_deref(), b.href.as_deref())
    };
    if theirs.len() == ours.len() && theirs.iter().zip(&ours).all(is_one) {
        cell.evidence = ours;
        return Ok(cell);
    }
    let named = |side: Side| move |shown: EvidenceShown| EvidenceShown { side: Some(side.as_str()), ..shown };
    cell.evidence =
        theirs.into_iter().map(named(Side::Baseline)).chain(ours.into_iter().map(named(Side::New))).collect();
    Ok(cell)
}

fn show_cell(
    view: &CaseView<'_>,
    side: Side,
    index: usize,
    marks: &Marks<'_>,
    endings: &Endings,
) -> Result<Option<CellShown>, ReportError> {
    let Some(loaded) = view.answer(side) else { return Ok(None) };
    let action = &loaded.answer.proposed_actions[index];
    let mut facts = vec![shown::visible(&action.action_id)];
    facts.extend(action.risk_tags.iter().map(|tag| shown::visible(tag)));
    let ending = endings.of_action(side, index);
    facts.extend(ending.in_words());
    let pointer = format!("/proposed_actions/{index}/params");
    let mut values = vec![cells::marked("parameters", &json!(action.params), &pointer, marks, &view.budget)];
    if !action.extra.is_empty() {
        values.push(cells::value("more fields", &action.extra, &view.budget));
    }
    Ok(Some(CellShown {
        anchors: vec![view.anchors.add(places::action(side, index))],
        side: side.to_string(),
        number: (index + 1).to_string(),
        kind: shown::visible(&action.action_type),
        name: shown::visible(&action.tool_name),
        risk: Some(action.risk_level.as_str()),
        failed: ending.is_failed(),
        facts,
        values,
        evidence: evidence(view, side, index)?,
        has_evidence: true,
        ..CellShown::default()
    }))
}

fn evidence(view: &CaseView<'_>, side: Side, index: usize) -> Result<Vec<EvidenceShown>, ReportError> {
    let followed = match side {
        Side::Baseline => &view.case.baseline_evidence,
        Side::New => &view.case.new_evidence,
    };
    let refs = followed.get(index).map(Vec::as_slice).unwrap_or_default();
    refs.iter().map(|followed| show_ref(view, side, followed)).collect()
}

fn show_ref(view: &CaseView<'_>, side: Side, followed: &FollowedRef) -> Result<EvidenceShown, ReportError> {
    let (href, target) = match &followed.resolved {
        None => (None, "leads nowhere".to_owned()),
        Some(Resolved::Event(index)) => {
            let name = view
                .answer(side)
                .and_then(|loaded| loaded.answer.events.get(*index).map(|event| messages::step_name(event, loaded)));
            let href = view.anchors.href(&places::event(side, *index));
            (href.or_else(|| Some("#events".to_owned())), format!("step {}: {}", index + 1, name.unwrap_or_default()))
        }
        Some(Resolved::Asset(name)) => {
            let file = view.files(side).asset(name)?;
            let target = if file.href.is_some() { file.name } else { format!("{}: {}", file.name, file.missing) };
            (file.href.map(|href| format!("../{href}")), target)
        }
    };
    let resolved = followed.resolved.is_some() && href.is_some();
    Ok(EvidenceShown {
        side: None,
        kind: followed.target.kind(),
        id: shown::visible(followed.target.id()),
        href,
        target,
        resolved,
    })
}
