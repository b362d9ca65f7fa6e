//! The final outputs: once where they are the same, as a difference where they are not.

use counterproof_artifact::{Content, ContentType, FinalOutput, Side};

use super::case_page::CaseView;
use super::cells::NOISE;
use super::changes::{self, ChangesShown};
use super::diff_lines::{self, DiffShown};
use super::files::FileLink;
use super::shown::Shown;
use super::writer::ReportError;
use crate::diff::output::OutputChange;
use crate::diff::pointers;
use crate::load::LoadedAnswer;

/// Longest output that is shown whole.
const LONGEST_OUTPUT: usize = 64 * 1024;

/// An equal output up to this size is read at once.
const SHORT_OUTPUT: usize = 600;

/// Of a longer output the start is shown beside the difference.
const LONG_OUTPUT: usize = 16 * 1024;

/// The final outputs of a case.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputShown {
    /// What is to be said first.
    pub(super) summary: &'static str,
    /// Two texts in one.
    pub(super) text: Option<DiffShown>,
    /// The places at which two objects differ.
    pub(super) changes: ChangesShown,
    /// Whole outputs.
    pub(super) contents: Vec<ContentShown>,
    /// True where the whole outputs are folded, since the difference says what matters.
    pub(super) folded: bool,
    /// Where the whole outputs are, each with its side, where the page does not show all of them.
    pub(super) whole: Vec<(&'static str, FileLink)>,
}

impl OutputShown {
    fn is_cut(&self) -> bool {
        let text = self.text.as_ref().is_some_and(|text| !text.more.is_empty());
        text || !self.changes.more.is_empty() || self.contents.iter().any(|content| !content.shown.more.is_empty())
    }
}

/// A whole output.
#[derive(Debug, Clone)]
pub(super) struct ContentShown {
    /// Whose it is.
    pub(super) side: &'static str,
    /// How it is to be read.
    pub(super) content_type: &'static str,
    /// The output.
    pub(super) shown: Shown,
    /// True where it is text, not JSON.
    pub(super) is_text: bool,
}

/// The final outputs of both sides, or of the one side that answered, with links to the files of those that are cut.
pub(super) fn show(view: &CaseView<'_>) -> Result<OutputShown, ReportError> {
    let mut shown = difference(view);
    if shown.is_cut() {
        for side in Side::BOTH.into_iter().filter(|side| view.answer(*side).is_some()) {
            let id = &view.case.row.case_id;
            shown.whole.push((side.as_str(), view.files(side).artifact(id, view.report.pages.stem(id))?));
        }
    }
    Ok(shown)
}

fn difference(view: &CaseView<'_>) -> OutputShown {
    let whole = |side: Side, name| view.answer(side).map(|loaded| content(view, name, &loaded.answer.final_output));
    let both = || [whole(Side::Baseline, "baseline"), whole(Side::New, "new")].into_iter().flatten().collect();
    let noise = if view.is_noise(&pointers::output_pointers()) { NOISE } else { "" };
    match view.case.differences.as_ref().map(|differences| &differences.output) {
        None => OutputShown { contents: both(), ..OutputShown::default() },
        Some(OutputChange::Same) => {
            let contents: Vec<_> = whole(Side::New, "both sides").into_iter().collect();
            let folded = contents.iter().any(|content| content.shown.text.len() > SHORT_OUTPUT);
            OutputShown { summary: "The same on both sides.", contents, folded, ..OutputShown::default() }
        }
        Some(OutputChange::Text(text)) => {
            let text = Some(diff_lines::show(text, "output-change", &view.budget));
            // What the difference leaves out, the start of each side shows.
            let long = |loaded: &LoadedAnswer| matches!(&loaded.answer.final_output.content, Content::Text(text) if text.len() > LONG_OUTPUT);
            let is_long = Side::BOTH.into_iter().filter_map(|side| view.answer(side)).any(long);
            OutputShown {
                summary: noise,
                text,
                contents: if is_long { both() } else { Vec::new() },
                folded: true,
                ..OutputShown::default()
            }
        }
        Some(OutputChange::Json(places)) => OutputShown {
            summary: noise,
            changes: changes::show(places, &view.budget),
            contents: both(),
            folded: true,
            ..OutputShown::default()
        },
        Some(OutputChange::Form) => {
            OutputShown { summary: "Of another type on each side.", contents: both(), ..OutputShown::default() }
        }
    }
}

fn content(view: &CaseView<'_>, side: &'static str, output: &FinalOutput) -> ContentShown {
    let (shown, is_text) = match &output.content {
        Content::Text(text) => (view.budget.text(text, LONGEST_OUTPUT), true),
        Content::Json(object) => (view.budget.json(object, LONGEST_OUTPUT), false),
    };
    let content_type = match output.content_type {
        ContentType::Text => "text",
        ContentType::Json => "json",
    };
    ContentShown { side, content_type, shown, is_text }
}
