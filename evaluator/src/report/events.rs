//! The two lists of events, aligned in rows, and the first divergence among them in its context.

use counterproof_artifact::{EventBody, Href, Side, ToolStatus};
use serde_json::{Value, json};

use super::case_page::CaseView;
use super::cells::{self, CellShown, NOISE, RowShown};
use super::changes::{self, ChangesShown};
use super::marks::Marks;
use super::places;
use super::shown;
use super::verdicts;
use super::writer::ReportError;
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::json::JsonChanges;
use crate::diff::pointers::row_pointers;
use crate::load::LoadedAnswer;
use crate::load::payload::Payload;

/// Most rows of a page.
const MOST_ROWS: usize = 2_000;

/// Rows of equal steps from which on they are folded.
const FOLD_FROM: usize = 3;

/// The events of a case.
#[derive(Debug, Clone, Default)]
pub(super) struct EventsShown {
    /// The stretches, in order.
    pub(super) stretches: Vec<EventStretch>,
    /// What is not shown, in words; empty where all is.
    pub(super) more: String,
}

/// A stretch of rows.
#[derive(Debug, Clone)]
pub(super) struct EventStretch {
    /// What a folded stretch says of itself; empty where it is open.
    pub(super) summary: String,
    /// The rows.
    pub(super) rows: Vec<RowShown>,
}

/// The events of both sides, or of the one side that has any.
pub(super) fn show(view: &CaseView<'_>) -> Result<EventsShown, ReportError> {
    let rows = rows(view);
    let hidden = rows.len().saturating_sub(MOST_ROWS);
    let compared = view.case.differences.is_some();
    let mut stretches = Vec::new();
    let divergence = view.case.row.first_divergence.as_ref().map(|found| found.pointers.as_slice()).unwrap_or_default();
    for group in rows[..rows.len() - hidden].chunk_by(|a, b| a.is_same() == b.is_same()) {
        let mut shown = group.iter().map(|row| show_row(view, row)).collect::<Result<Vec<_>, _>>()?;
        for (row, shown) in group.iter().zip(&mut shown) {
            shown.is_first = compared && row_pointers("/events", row.row) == divergence;
        }
        let folded = compared && group[0].is_same() && group.len() >= FOLD_FROM;
        stretches.push(EventStretch { summary: if folded { summary(group) } else { String::new() }, rows: shown });
    }
    let more = if hidden > 0 { format!("{hidden} more steps are in the artifacts") } else { String::new() };
    Ok(EventsShown { stretches, more })
}

fn rows(view: &CaseView<'_>) -> Vec<EventRow> {
    if let Some(differences) = &view.case.differences {
        return differences.events.clone();
    }
    let Some((side, loaded)) = view.only_answer() else { return Vec::new() };
    let row = |index| EventRow {
        row: cells::alone(side, index),
        changes: JsonChanges::default(),
        moved: false,
        concurrent: false,
        noise: false,
    };
    (0..loaded.answer.events.len()).map(row).collect()
}

fn summary(rows: &[EventRow]) -> String {
    let [first, .., last] = rows else { return String::new() };
    let count = rows.len();
    match (first.row, last.row) {
        (Row::Both { baseline: i, new: j }, Row::Both { baseline: k, new: l }) if i == j && k == l => {
            format!("{count} equal steps, {} to {}", i + 1, k + 1)
        }
        (Row::Both { baseline: i, new: j }, Row::Both { baseline: k, new: l }) => {
            format!("{count} equal steps: {} to {} of baseline, {} to {} of new", i + 1, k + 1, j + 1, l + 1)
        }
        _ => format!("{count} steps"),
    }
}

fn show_row(view: &CaseView<'_>, row: &EventRow) -> Result<RowShown, ReportError> {
    let compared = view.case.differences.is_some();
    let class = if compared { cells::look(row.operation()) } else { "plain" };
    let marks = Side::BOTH.map(|side| Marks::of(&row.changes, side));
    let cell = |side, index| show_cell(view, side, index, &marks[usize::from(side == Side::New)]);
    let cells = match row.row {
        Row::Both { baseline, new } if row.is_same() => vec![Some(shared(view, baseline, new)?)],
        Row::Both { baseline, new } => vec![cell(Side::Baseline, baseline)?, cell(Side::New, new)?],
        Row::Removed(index) if !compared => vec![cell(Side::Baseline, index)?],
        Row::Added(index) if !compared => vec![cell(Side::New, index)?],
        Row::Removed(index) => vec![cell(Side::Baseline, index)?, None],
        Row::Added(index) => vec![None, cell(Side::New, index)?],
    };
    let told = Side::BOTH.into_iter().zip(&marks).all(|(side, marks)| marks.tell_all(&row.changes, side));
    let elsewhere = is_told_as_output(view, row.row);
    let changes = if told || elsewhere { ChangesShown::default() } else { changes::show(&row.changes, &view.budget) };
    let noise = !row.is_same() && view.is_noise(&row_pointers("/events", row.row));
    let notes = [
        (noise, NOISE),
        (row.moved, "It stands in another place among the other steps."),
        (row.concurrent, "Called while another call was open: the order of such calls does not matter."),
    ];
    let note: Vec<_> = notes.into_iter().filter(|(holds, _)| compared && *holds).map(|(_, note)| note).collect();
    Ok(RowShown { class, cells, changes, note: note.join(" "), is_first: false })
}

/// A step that is the same on both sides: shown as new has it, with the links of both.
fn shared(view: &CaseView<'_>, baseline: usize, new: usize) -> Result<CellShown, ReportError> {
    let mut cell = show_cell(view, Side::New, new, &Marks::default())?.unwrap_or_default();
    cell.anchors
        .insert(0, view.anchors.add_other(places::event(Side::Baseline, baseline), places::event(Side::New, new)));
    cell.side.clear();
    cell.number = cells::number(Row::Both { baseline, new });
    let id = |side, index| view.answer(side).and_then(|loaded| call_id(loaded, index));
    if let (Some(shown), Some(old), Some(other)) =
        (cell.facts.first_mut(), id(Side::Baseline, baseline), id(Side::New, new))
    {
        *shown = cells::both(old, other);
    }
    for file in &mut cell.files {
        file.name.insert_str(0, "new: ");
    }
    if let Some(href) = view.answer(Side::Baseline).and_then(|loaded| asset(loaded, baseline)) {
        let mut file = view.files(Side::Baseline).asset(href.as_str())?;
        file.name.insert_str(0, "baseline: ");
        cell.files.insert(0, file);
    }
    Ok(cell)
}

/// The id of a call, or of the one that a result answers: the first fact of its cell.
fn call_id(loaded: &LoadedAnswer, index: usize) -> Option<&str> {
    match &loaded.answer.events.get(index)?.body {
        EventBody::ToolCall(call) => Some(&call.call_id),
        EventBody::ToolResult(result) => Some(&result.call_id),
        EventBody::Retrieval(_) | EventBody::FinalOutput(_) | EventBody::Unknown { .. } => None,
    }
}

fn asset(loaded: &LoadedAnswer, index: usize) -> Option<&Href> {
    loaded.answer.events.get(index)?.asset_href()
}

/// True where the pair is the final output, which has a section of its own.
fn is_told_as_output(view: &CaseView<'_>, row: Row) -> bool {
    let Row::Both { baseline, new } = row else { return false };
    let is_output = |side, index| view.answer(side).is_some_and(|loaded| is_output(loaded, index));
    is_output(Side::Baseline, baseline) && is_output(Side::New, new)
}

/// True where an event says again what the answer's final output is.
fn is_output(loaded: &LoadedAnswer, index: usize) -> bool {
    match loaded.answer.events.get(index).map(|event| &event.body) {
        Some(EventBody::FinalOutput(said)) => said.content == loaded.answer.final_output.content,
        _ => false,
    }
}

fn show_cell(
    view: &CaseView<'_>,
    side: Side,
    index: usize,
    marks: &Marks<'_>,
) -> Result<Option<CellShown>, ReportError> {
    let Some(loaded) = view.answer(side) else { return Ok(None) };
    let event = &loaded.answer.events[index];
    let mut cell = CellShown {
        side: side.to_string(),
        number: (index + 1).to_string(),
        kind: event.kind().replace('_', " "),
        ..CellShown::default()
    };
    cell.anchors.push(view.anchors.add(places::event(side, index)));
    let payload = loaded.payload(index).map(Payload::to_value);
    describe(&mut cell, view, loaded, index, payload.as_ref(), marks);
    if index > 0 {
        let since = event.ts.as_f64() - loaded.answer.events[0].ts.as_f64();
        cell.facts.push(format!("after {}", shown::duration(since)));
    }
    let extra = event.extra();
    if !extra.is_empty() && !matches!(event.body, EventBody::Unknown { .. }) {
        cell.values.push(cells::value("more fields", extra, &view.budget));
    }
    if let Some(href) = event.asset_href() {
        cell.files.push(view.files(side).asset(href.as_str())?);
    }
    Ok(Some(cell))
}

fn describe(
    cell: &mut CellShown,
    view: &CaseView<'_>,
    loaded: &LoadedAnswer,
    index: usize,
    payload: Option<&Value>,
    marks: &Marks<'_>,
) {
    let budget = &view.budget;
    let at = |field: &str| format!("/events/{index}/{field}");
    match &loaded.answer.events[index].body {
        EventBody::ToolCall(asked) => {
            "call".clone_into(&mut cell.kind);
            cell.name = shown::visible(&asked.tool);
            cell.risk = verdicts::risk(asked.risk_level);
            cell.facts.push(shown::visible(&asked.call_id));
            cell.values.push(cells::marked("arguments", &json!(asked.args), &at("args"), marks, budget));
        }
        EventBody::ToolResult(result) => {
            "result".clone_into(&mut cell.kind);
            let asked = loaded.index.call(&loaded.answer.events, &result.call_id);
            cell.name = asked.map(|call| shown::visible(&call.tool)).unwrap_or_default();
            cell.failed = result.status == ToolStatus::Error;
            cell.facts.push(shown::visible(&result.call_id));
            cell.facts.push(format!("took {}", shown::duration(result.latency_ms.as_f64())));
            cell.values.extend(
                payload.into_iter().flat_map(|payload| cells::payload(payload, &at("payload_summary"), marks, budget)),
            );
        }
        EventBody::Retrieval(found) => {
            cell.values.push(cells::text("query", &found.query, budget));
            cell.values.push(cells::marked("documents", &json!(found.doc_ids), &at("doc_ids"), marks, budget));
        }
        EventBody::FinalOutput(_) if is_output(loaded, index) => cell.sees_output = true,
        EventBody::FinalOutput(output) => cell.values.push(match &output.content {
            counterproof_artifact::Content::Text(text) => cells::text("content", text, budget),
            counterproof_artifact::Content::Json(object) => cells::value("content", object, budget),
        }),
        EventBody::Unknown { kind, fields } => {
            cell.kind = shown::visible(kind);
            cell.values.push(cells::value("fields", fields, budget));
        }
    }
}
