//! The final outputs: shown once where they are equal, otherwise as a difference.

use counterproof_artifact::{Content, ContentType, FinalOutput, Side};
use counterproof_evaluator::{OutputChange, output_pointers};

use super::cells::NOISE;
use super::context::CaseContext;
use crate::files::FileLink;
use crate::view::changes::{self, ChangesView, TextDiffView};
use crate::view::display::DisplayText;

const LONGEST_OUTPUT: usize = 64 * 1024;

/// Longer identical outputs are folded.
const SHORT_OUTPUT: usize = 600;

/// For longer outputs, the page shows the start of each side in addition to the difference.
const LONG_OUTPUT: usize = 16 * 1024;

#[derive(Debug, Clone, Default)]
pub(crate) struct OutputView {
    /// An introductory sentence; may be empty.
    pub(crate) summary: &'static str,
    pub(crate) text: Option<TextDiffView>,
    pub(crate) changes: ChangesView,
    pub(crate) contents: Vec<SideOutputView>,
    /// Whether the outputs are folded, because the difference shows what matters.
    pub(crate) folded: bool,
    /// The artifact files with their sides, where the page truncates an output.
    pub(crate) files: Vec<(&'static str, FileLink)>,
}

impl OutputView {
    fn is_truncated(&self) -> bool {
        let text = self.text.as_ref().is_some_and(|text| !text.more.is_empty());
        text || !self.changes.more.is_empty() || self.contents.iter().any(|output| !output.content.more.is_empty())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct SideOutputView {
    pub(crate) side: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) content: DisplayText,
    /// Whether the output is text instead of JSON.
    pub(crate) is_text: bool,
}

/// The final outputs of both sides, or of the only side with an answer. Truncated outputs come with links to their files.
pub(crate) fn view(context: &CaseContext<'_>) -> OutputView {
    let mut view = difference(context);
    if view.is_truncated() {
        let answered = Side::BOTH.into_iter().filter(|side| context.answer(*side).is_some());
        view.files = answered.map(|side| (side.as_str(), context.artifact_file(side))).collect();
    }
    view
}

fn difference(context: &CaseContext<'_>) -> OutputView {
    let output = |side: Side, name| Some(side_view(context, name, &context.answer(side)?.answer.final_output));
    // Built only if it is needed: each view of an output takes from the budget of the page.
    let both = || [output(Side::Baseline, "baseline"), output(Side::New, "new")].into_iter().flatten().collect();
    let noise = if context.is_noise(&output_pointers()) { NOISE } else { "" };
    match context.case.differences.as_ref().map(|differences| &differences.output) {
        None => OutputView { contents: both(), ..OutputView::default() },
        Some(OutputChange::Same) => {
            // Once, because the outputs are equal.
            let contents: Vec<_> = output(Side::New, "both sides").into_iter().collect();
            let folded = contents.iter().any(|output| output.content.text.len() > SHORT_OUTPUT);
            OutputView { summary: "Identical on both sides.", contents, folded, ..OutputView::default() }
        }
        Some(OutputChange::Text(text)) => OutputView {
            summary: noise,
            text: Some(changes::text_diff(text, "output-change", &context.budget)),
            // The difference of a long text leaves out lines. The start of each side shows some of them.
            contents: if has_long_text(context) { both() } else { Vec::new() },
            folded: true,
            ..OutputView::default()
        },
        Some(OutputChange::Json(json)) => OutputView {
            summary: noise,
            changes: changes::changes_view(json, &context.budget),
            contents: both(),
            folded: true,
            ..OutputView::default()
        },
        Some(OutputChange::Form) => {
            OutputView { summary: "The output types differ.", contents: both(), ..OutputView::default() }
        }
    }
}

fn has_long_text(context: &CaseContext<'_>) -> bool {
    Side::BOTH
        .into_iter()
        .filter_map(|side| context.answer(side))
        .any(|loaded| matches!(&loaded.answer.final_output.content, Content::Text(text) if text.len() > LONG_OUTPUT))
}

fn side_view(context: &CaseContext<'_>, side: &'static str, output: &FinalOutput) -> SideOutputView {
    let (displayed, is_text) = match &output.content {
        Content::Text(text) => (context.budget.text(text, LONGEST_OUTPUT), true),
        Content::Json(object) => (context.budget.json(object, LONGEST_OUTPUT), false),
    };
    let content_type = match output.content_type {
        ContentType::Text => "text",
        ContentType::Json => "json",
    };
    SideOutputView { side, content_type, content: displayed, is_text }
}
