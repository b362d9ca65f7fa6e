//! Messages about final outputs and other texts of several lines.

use super::changes::changes;
use crate::diff::OutputChange;
use crate::diff::output::{LineOrigin, TextChanges, TextLine, TextPart};
use crate::values::text;

/// Characters quoted of a text.
const QUOTE_LENGTH: usize = 60;

/// Describes how the final outputs differ.
pub fn output(change: &OutputChange) -> String {
    match change {
        OutputChange::Same => "output unchanged".to_owned(),
        OutputChange::Form => "output type changed".to_owned(),
        OutputChange::Json(list) => format!("output: {}", changes(list)),
        OutputChange::Text(changes) => {
            let TextSummary { quote, counts } = TextSummary::new(changes);
            let parts: Vec<_> = [quote, counts].into_iter().flatten().collect();
            format!("output: {}", parts.join("; "))
        }
    }
}

/// What a message says of a changed text. At least one part is set.
pub(super) struct TextSummary {
    /// The first changed words of both sides: `“50 EUR” → “500 EUR”`. `None` if one side has no words there.
    pub(super) quote: Option<String>,
    /// The changed lines: `1 line removed, 2 lines added`. `None` if exactly one line changed.
    pub(super) counts: Option<String>,
}

impl TextSummary {
    pub(super) fn new(changes: &TextChanges) -> Self {
        let only = |side: LineOrigin| changes.lines.iter().filter(|line| line.origin == side).collect::<Vec<_>>();
        let (old, new) = (only(LineOrigin::Baseline), only(LineOrigin::New));
        if let ([old], [new]) = (&old[..], &new[..]) {
            return Self { quote: Some(quote(&changed_words(old), &changed_words(new))), counts: None };
        }
        let lines = |lines: usize| text::count(lines, "line", "lines");
        let counts = format!("{} removed, {} added", lines(old.len()), lines(new.len()));
        let first = |side: &[&TextLine]| side.iter().map(|line| whole_line(line)).find(|text| !text.trim().is_empty());
        let quote = first(&old).zip(first(&new)).map(|(old, new)| quote(&old, &new));
        Self { quote, counts: Some(counts) }
    }
}

fn quote(old: &str, new: &str) -> String {
    let (old, new) = text::differing_texts(old, new, QUOTE_LENGTH);
    format!("“{old}” → “{new}”")
}

/// The changed words of a line, or the whole line if no word is marked.
fn changed_words(line: &TextLine) -> String {
    let text = |part: &TextPart| part.text.trim().to_owned();
    let marked: Vec<_> =
        line.parts.iter().filter(|part| part.differs).map(text).filter(|text| !text.is_empty()).collect();
    if marked.is_empty() { whole_line(line) } else { marked.join(" … ") }
}

fn whole_line(line: &TextLine) -> String {
    line.parts.iter().map(|part| part.text.as_str()).collect()
}
