//! The events of both sides, aligned in rows, with the first divergence.

use std::borrow::Cow;

use counterproof_artifact::{Content, EventBody, Href, Side};
use counterproof_evaluator::{EventRow, JsonChanges, LoadedAnswer, Row, has_failed, row_pointers};
use serde_json::{Map, Value};

use super::cells::{self, CellView, ElementContext, Highlights, NOISE, PairHighlights, RowView};
use super::context;
use super::context::CaseContext;
use crate::view::changes::{self, ChangesView};
use crate::view::display;
use crate::view::verdict;

// Further rows are left out: the linked artifact has all of them.
const MOST_ROWS: usize = 2_000;

/// Shorter stretches of identical steps are not folded.
const FOLD_FROM: usize = 3;

#[derive(Debug, Clone, Default)]
pub(crate) struct StepsView {
    pub(crate) stretches: Vec<StepStretch>,
    /// What is not shown; empty where everything is.
    pub(crate) more: String,
}

/// A stretch of rows that are all identical or all different.
#[derive(Debug, Clone)]
pub(crate) struct StepStretch {
    /// The summary of a folded stretch; empty for an open one.
    pub(crate) summary: String,
    pub(crate) rows: Vec<RowView>,
}

/// The events of both sides, or of the only side with an answer.
pub(crate) fn view(context: &CaseContext<'_>) -> StepsView {
    let rows = rows(context);
    let hidden = rows.len().saturating_sub(MOST_ROWS);
    // Equal and different rows are separate stretches, of which the long equal ones are folded.
    let stretches = rows[..rows.len() - hidden].chunk_by(|a, b| a.is_same() == b.is_same());
    StepsView {
        stretches: stretches.map(|rows| stretch(context, rows)).collect(),
        more: if hidden > 0 { format!("{hidden} more steps are in the artifacts") } else { String::new() },
    }
}

fn stretch(context: &CaseContext<'_>, rows: &[EventRow]) -> StepStretch {
    let compared = context.case.differences.is_some();
    let folded = compared && rows.len() >= FOLD_FROM && rows.iter().all(EventRow::is_same);
    StepStretch {
        summary: if folded { summary(rows) } else { String::new() },
        rows: rows.iter().map(|row| row_view(context, row)).collect(),
    }
}

fn rows<'a>(context: &'a CaseContext<'_>) -> Cow<'a, [EventRow]> {
    if let Some(differences) = &context.case.differences {
        return Cow::Borrowed(&differences.events);
    }
    let Some((side, loaded)) = context.only_answer() else { return Cow::Borrowed(&[]) };
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
        // One range is enough unless steps before the stretch were added or removed.
        (Row::Both { baseline: i, new: j }, Row::Both { baseline: k, new: l }) if i == j && k == l => {
            format!("{count} identical steps, {} to {}", i + 1, k + 1)
        }
        (Row::Both { baseline: i, new: j }, Row::Both { baseline: k, new: l }) => {
            format!("{count} identical steps: {} to {} of baseline, {} to {} of new", i + 1, k + 1, j + 1, l + 1)
        }
        _ => format!("{count} steps"),
    }
}

fn row_view(context: &CaseContext<'_>, row: &EventRow) -> RowView {
    let compared = context.case.differences.is_some();
    let class = if compared { cells::class(row.operation()) } else { "plain" };
    let highlights = PairHighlights::new(&row.changes);
    let cell = |side, index| cell(context, side, index, highlights.get(side));
    let cells = match row.row {
        Row::Both { baseline, new } if row.is_same() => vec![Some(shared_cell(context, baseline, new))],
        Row::Both { baseline, new } => vec![cell(Side::Baseline, baseline), cell(Side::New, new)],
        Row::Removed(index) if !compared => vec![cell(Side::Baseline, index)],
        Row::Added(index) if !compared => vec![cell(Side::New, index)],
        Row::Removed(index) => vec![cell(Side::Baseline, index), None],
        Row::Added(index) => vec![None, cell(Side::New, index)],
    };
    // After the cells, because building them records which changes are highlighted. The difference of the output is
    // shown in the section of the output.
    let is_shown_elsewhere = highlights.cover(&row.changes) || is_output_pair(context, row.row);
    let changes =
        if is_shown_elsewhere { ChangesView::default() } else { changes::changes_view(&row.changes, &context.budget) };
    let divergence = context.case.row.first_divergence.as_ref();
    // No row matches if the first divergence is in an action or in the output.
    let is_first = compared && divergence.is_some_and(|found| row_pointers("/events", row.row) == found.pointers);
    RowView { class, cells, changes, note: note(context, row), is_first }
}

fn note(context: &CaseContext<'_>, row: &EventRow) -> String {
    if context.case.differences.is_none() {
        return String::new();
    }
    let is_noise = !row.is_same() && context.is_noise(&row_pointers("/events", row.row));
    let notes = [
        (is_noise, NOISE),
        (row.moved, "This step moved relative to the other steps."),
        (row.concurrent, "Called while another call was open: the order of concurrent calls is ignored."),
    ];
    notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note).collect::<Vec<_>>().join(" ")
}

/// The name of the annotations of a call.
const ANNOTATIONS: &str = "annotations";

/// A step that is identical on both sides: the new step, with the ids and files of both sides.
fn shared_cell(context: &CaseContext<'_>, baseline: usize, new: usize) -> CellView {
    let mut view = cell(context, Side::New, new, &Highlights::default()).unwrap_or_default();
    let (old_id, new_id) = (context::event(Side::Baseline, baseline), context::event(Side::New, new));
    view.anchors.insert(0, context.anchors.add_shared(old_id, new_id));
    view.side.clear();
    view.number = cells::number(Row::Both { baseline, new });
    let id = |side, index| context.answer(side).and_then(|loaded| call_id(loaded, index));
    if let (Some(fact), Some(old), Some(other)) =
        (view.facts.first_mut(), id(Side::Baseline, baseline), id(Side::New, new))
    {
        *fact = cells::both(old, other);
    }
    let notes = |side: Side, index| context.answer(side).and_then(|loaded| annotations(loaded, index));
    let (old_notes, notes) = (notes(Side::Baseline, baseline), notes(Side::New, new));
    // Annotations are not compared, so equal calls may have different ones.
    if notes != old_notes {
        for value in view.values.iter_mut().filter(|value| value.name == ANNOTATIONS) {
            "annotations of new".clone_into(&mut value.name);
        }
    }
    if let Some(old_notes) = old_notes.filter(|old_notes| notes != Some(old_notes)) {
        view.values.push(cells::value("annotations of baseline", old_notes, &context.budget));
    }
    // The files of the two sides may have the same name.
    for file in &mut view.files {
        file.name.insert_str(0, "new: ");
    }
    if let Some(href) = context.answer(Side::Baseline).and_then(|loaded| asset(loaded, baseline)) {
        let mut file = context.asset(Side::Baseline, href.as_str());
        file.name.insert_str(0, "baseline: ");
        view.files.insert(0, file);
    }
    view
}

/// The id of a call, or of the call of a result: the first fact of the cell.
fn call_id(loaded: &LoadedAnswer, index: usize) -> Option<&str> {
    match &loaded.answer.events.get(index)?.body {
        EventBody::ToolCall(call) => Some(&call.call_id),
        EventBody::ToolResult(result) => Some(&result.call_id),
        EventBody::Retrieval(_) | EventBody::FinalOutput(_) | EventBody::Unknown { .. } => None,
    }
}

/// What was noted about a call. It is not compared, so equal calls may have different ones.
fn annotations(loaded: &LoadedAnswer, index: usize) -> Option<&Map<String, Value>> {
    match &loaded.answer.events.get(index)?.body {
        EventBody::ToolCall(call) => call.annotations.as_ref(),
        _ => None,
    }
}

fn asset(loaded: &LoadedAnswer, index: usize) -> Option<&Href> {
    loaded.answer.events.get(index)?.asset_href()
}

/// Returns whether a pair is the final output, which has a separate section.
fn is_output_pair(context: &CaseContext<'_>, row: Row) -> bool {
    let Row::Both { baseline, new } = row else { return false };
    let is_output = |side, index| context.answer(side).is_some_and(|loaded| is_output(loaded, index));
    is_output(Side::Baseline, baseline) && is_output(Side::New, new)
}

fn is_output(loaded: &LoadedAnswer, index: usize) -> bool {
    match loaded.answer.events.get(index).map(|event| &event.body) {
        Some(EventBody::FinalOutput(output)) => output.content == loaded.answer.final_output.content,
        _ => false,
    }
}

fn cell(context: &CaseContext<'_>, side: Side, index: usize, highlights: &Highlights<'_>) -> Option<CellView> {
    let loaded = context.answer(side)?;
    let event = &loaded.answer.events[index];
    let mut cell = CellView {
        anchors: vec![context.anchors.add(context::event(side, index))],
        side: side.to_string(),
        number: (index + 1).to_string(),
        kind: event.kind().replace('_', " "),
        ..CellView::default()
    };
    fill(&mut cell, context, &StepInput { loaded, index, highlights });
    if index > 0 {
        // Relative to the first step, because the clocks of two runs have nothing in common.
        let since = event.ts.as_f64() - loaded.answer.events[0].ts.as_f64();
        cell.facts.push(format!("after {}", display::duration(since)));
    }
    let extra = event.extra();
    // An event of an unknown kind already shows all of its fields.
    if !extra.is_empty() && !matches!(event.body, EventBody::Unknown { .. }) {
        cell.values.push(cells::value("more fields", extra, &context.budget));
    }
    if let Some(href) = event.asset_href() {
        cell.files.push(context.asset(side, href.as_str()));
    }
    Some(cell)
}

/// An event of one side with its highlights.
struct StepInput<'a, 'h> {
    loaded: &'a LoadedAnswer,
    index: usize,
    highlights: &'a Highlights<'h>,
}

/// Fills in what depends on the type of the event.
fn fill(view: &mut CellView, context: &CaseContext<'_>, step: &StepInput<'_, '_>) {
    let StepInput { loaded, index, highlights } = step;
    let budget = &context.budget;
    let pointer = format!("/events/{index}");
    let element = ElementContext { pointer: &pointer, highlights, budget };
    match &loaded.answer.events[*index].body {
        EventBody::ToolCall(call) => {
            "call".clone_into(&mut view.kind);
            view.name = display::visible(&call.tool);
            view.risk = verdict::risk(call.risk_level);
            view.facts.push(display::visible(&call.call_id));
            view.values.push(element.highlighted("arguments", "args", &call.args));
            view.values.extend(annotations(loaded, *index).map(|notes| cells::value(ANNOTATIONS, notes, budget)));
        }
        EventBody::ToolResult(result) => {
            "result".clone_into(&mut view.kind);
            // A result has only the id of its call.
            let call = loaded.index.call(&loaded.answer.events, &result.call_id);
            view.name = call.map(|call| display::visible(&call.tool)).unwrap_or_default();
            view.failed = has_failed(loaded, *index);
            view.facts.push(display::visible(&result.call_id));
            view.facts.push(format!("took {}", display::duration(result.latency_ms.as_f64())));
            let values = |payload| cells::payload(&element, "payload_summary", payload);
            view.values.extend(loaded.payload(*index).map(values).unwrap_or_default());
        }
        EventBody::Retrieval(found) => {
            view.values.push(cells::text("query", &found.query, budget));
            view.values.push(element.highlighted("documents", "doc_ids", &found.doc_ids));
        }
        EventBody::FinalOutput(_) if is_output(loaded, *index) => view.sees_output = true,
        EventBody::FinalOutput(output) => view.values.push(match &output.content {
            Content::Text(text) => cells::text("content", text, budget),
            Content::Json(object) => cells::value("content", object, budget),
        }),
        EventBody::Unknown { kind, fields } => {
            view.kind = display::visible(kind);
            view.values.push(cells::value("fields", fields, budget));
        }
    }
}
