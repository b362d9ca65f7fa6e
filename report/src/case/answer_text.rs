//! An answer as one text with the words that differ marked, and its excerpt. The whole difference is among the raw steps.

use counterproof_artifact::{Content, FinalOutput, Side};
use counterproof_evaluator::{ChangeKind, JsonChanges, LineOrigin, OutputChange, TextChanges, TextLine};
use serde_json::Value;

use super::cells::HighlightedPart;
use crate::view::display;

/// Characters of an answer in the conversation.
const SHOWN_CHARS: usize = 900;

/// Line breaks of an answer in the conversation.
const SHOWN_BREAKS: usize = 11;

/// Answers with fewer marked characters keep all marks.
const MARKED_CHARS: usize = 80;

/// Longer stretches without a mark are shortened in a long answer.
const LONG_STRETCH: usize = 260;

/// Characters of an excerpt, and of the words before its first mark.
const EXCERPT_CHARS: usize = 220;
const LEAD_CHARS: usize = 60;

/// Maximum number of values of an object.
const VALUES_SHOWN: usize = 60;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AnswerText {
    pub(crate) parts: Vec<HighlightedPart>,
    /// Whether something is left out.
    pub(crate) is_cut: bool,
}

impl AnswerText {
    fn plain(text: &str) -> Self {
        Self { parts: vec![HighlightedPart { text: text.to_owned(), marked: false }], is_cut: false }
    }

    /// The words around the first difference, or else the first words.
    pub(crate) fn excerpt(&self) -> Vec<HighlightedPart> {
        let first = self.parts.iter().position(|part| part.marked).unwrap_or(0);
        let before: usize =
            self.parts[..first.min(self.parts.len())].iter().map(|part| part.text.chars().count()).sum();
        let mut skip = if before > EXCERPT_CHARS / 2 { self.word_from(before - LEAD_CHARS) } else { 0 };
        let mut left = EXCERPT_CHARS;
        let mut parts = Vec::new();
        if skip > 0 {
            parts.push(HighlightedPart { text: "… ".to_owned(), marked: false });
        }
        for part in &self.parts {
            let text: String = part.text.chars().skip(skip).take(left).collect();
            skip = skip.saturating_sub(part.text.chars().count());
            left -= text.chars().count();
            if !text.is_empty() {
                parts.push(HighlightedPart { text: text.replace('\n', " "), marked: part.marked });
            }
        }
        if left == 0 || self.is_cut {
            parts.push(HighlightedPart { text: " …".to_owned(), marked: false });
        }
        parts
    }

    /// Returns the position of the first word that starts after this number of characters.
    fn word_from(&self, skip: usize) -> usize {
        let characters = self.parts.iter().flat_map(|part| part.text.chars()).skip(skip).take(LEAD_CHARS / 2);
        let rest = characters.into_iter().position(char::is_whitespace);
        skip + rest.map_or(0, |rest| rest + 1)
    }

    /// The same without marks where nearly all words are marked, which says no more than that the answer is another one.
    fn with_few_marks(mut self) -> Self {
        let count = |marked: bool| -> usize {
            self.parts.iter().filter(|part| part.marked == marked).map(|part| part.text.chars().count()).sum()
        };
        let (marked, plain) = (count(true), count(false));
        if marked > 2 * plain && marked > MARKED_CHARS {
            self.parts.iter_mut().for_each(|part| part.marked = false);
        }
        self
    }

    /// The same, of bounded length.
    fn shortened(self) -> Self {
        let length = |parts: &[HighlightedPart]| parts.iter().map(|part| part.text.chars().count()).sum::<usize>();
        let breaks = self.parts.iter().flat_map(|part| part.text.chars()).filter(|c| *c == '\n').count();
        if length(&self.parts) <= SHOWN_CHARS && breaks <= SHOWN_BREAKS {
            return self;
        }
        let (mut left, mut breaks_left) = (SHOWN_CHARS, SHOWN_BREAKS);
        let mut parts = Vec::new();
        for part in self.parts {
            let text = if part.marked { part.text } else { middle_left_out(&part.text) };
            let mut is_in_bounds = |c: &char| {
                let is_break = *c == '\n';
                let fits = left > 0 && (!is_break || breaks_left > 0);
                left = if fits { left - 1 } else { 0 };
                breaks_left -= usize::from(fits && is_break);
                fits
            };
            let text: String = text.chars().take_while(|c| is_in_bounds(c)).collect();
            if !text.is_empty() {
                parts.push(HighlightedPart { text, marked: part.marked });
            }
        }
        Self { parts, is_cut: true }
    }
}

fn middle_left_out(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= LONG_STRETCH {
        return text.to_owned();
    }
    let half = LONG_STRETCH / 2;
    let (head, tail) = (&characters[..half], &characters[characters.len() - half..]);
    head.iter().chain(&[' ', '…', ' ']).chain(tail).collect()
}

/// The answer of a side. `change` is the difference of both answers, where there is one.
pub(crate) fn of_output(side: Side, output: &FinalOutput, change: Option<&OutputChange>) -> AnswerText {
    let whole = match (&output.content, change) {
        (Content::Text(_), Some(OutputChange::Text(changes))) => of_text(side, changes),
        (Content::Text(text), _) => AnswerText::plain(&display::visible(&head(text))),
        (Content::Json(object), change) => {
            let changes = match change {
                Some(OutputChange::Json(changes)) => Some(changes),
                _ => None,
            };
            of_object(side, object, changes)
        }
    };
    let whole = whole.with_few_marks();
    let is_cut = matches!(&output.content, Content::Text(text) if text.chars().count() > FAR_CHARS);
    let mut short = whole.shortened();
    short.is_cut |= is_cut;
    short
}

/// Characters of a text without a difference that are looked at.
const FAR_CHARS: usize = 4 * SHOWN_CHARS;

fn head(text: &str) -> String {
    text.chars().take(FAR_CHARS).collect()
}

fn of_text(side: Side, changes: &TextChanges) -> AnswerText {
    let own = match side {
        Side::Baseline => LineOrigin::Baseline,
        Side::New => LineOrigin::New,
    };
    let mut text = AnswerText::default();
    let is_blank = |line: &TextLine| line.parts.iter().all(|part| part.text.trim().is_empty());
    // Empty lines take place and say nothing.
    let lines = changes.lines.iter().filter(|line| line.origin == LineOrigin::Both || line.origin == own);
    let lines = lines.filter(|line| !is_blank(line));
    for (index, line) in lines.enumerate() {
        // A line without marked words differs as a whole.
        let is_whole = line.origin == own && line.parts.iter().all(|part| !part.differs);
        if index > 0 {
            push(&mut text.parts, "\n", false);
        }
        for part in &line.parts {
            push(&mut text.parts, &part.text, (is_whole || part.differs) && line.origin == own);
        }
    }
    text
}

fn push(parts: &mut Vec<HighlightedPart>, text: &str, marked: bool) {
    // A marked space would be a line without a word.
    let (text, marked) = (display::visible(text), marked && !text.trim().is_empty());
    match parts.last_mut() {
        Some(last) if last.marked == marked => last.text.push_str(&text),
        _ if text.is_empty() => {}
        _ => parts.push(HighlightedPart { text, marked }),
    }
}

/// The values of an object with their names: `status: cancelled, refund.amount: 50`.
fn of_object(side: Side, object: &serde_json::Map<String, Value>, changes: Option<&JsonChanges>) -> AnswerText {
    let places =
        changes.into_iter().flat_map(|changes| changes.iter()).filter(|change| change.kind() != ChangeKind::Reordered);
    let changed: Vec<&str> = places
        .filter_map(|change| {
            let place = match side {
                Side::Baseline => &change.baseline,
                Side::New => &change.new,
            };
            Some(place.as_ref()?.pointer.as_str())
        })
        .collect();
    let mut leaves = Vec::new();
    each_leaf(&Value::Object(object.clone()), "/final_output/content", "", &mut leaves);
    let mut text = AnswerText { is_cut: leaves.len() > VALUES_SHOWN, ..AnswerText::default() };
    let mut previous = String::new();
    for (index, leaf) in leaves.iter().take(VALUES_SHOWN).enumerate() {
        if index > 0 {
            push(&mut text.parts, ", ", false);
        }
        if leaf.name != previous {
            push(&mut text.parts, &format!("{}: ", leaf.name), false);
        }
        previous.clone_from(&leaf.name);
        let is_at = |changed: &&str| {
            leaf.pointer.strip_prefix(*changed).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        push(&mut text.parts, &leaf.value, changed.iter().any(is_at));
    }
    text
}

struct ObjectLeaf {
    pointer: String,
    name: String,
    value: String,
}

fn each_leaf(value: &Value, pointer: &str, name: &str, leaves: &mut Vec<ObjectLeaf>) {
    // One more than are shown, so that the caller sees that there are more.
    if leaves.len() > VALUES_SHOWN {
        return;
    }
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                let below = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                let escaped = key.replace('~', "~0").replace('/', "~1");
                each_leaf(value, &format!("{pointer}/{escaped}"), &below, leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                each_leaf(item, &format!("{pointer}/{index}"), name, leaves);
            }
        }
        leaf => leaves.push(ObjectLeaf {
            pointer: pointer.to_owned(),
            name: name.to_owned(),
            value: match leaf {
                Value::String(text) => head(text),
                other => other.to_string(),
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::ContentType;
    use counterproof_evaluator::{diff_json, diff_texts};
    use serde_json::json;

    use super::*;

    fn marked(parts: &[HighlightedPart]) -> String {
        parts.iter().map(|part| if part.marked { format!("[{}]", part.text) } else { part.text.clone() }).collect()
    }

    fn text(content: &str) -> FinalOutput {
        serde_json::from_value(json!({"content_type": "text", "content": content})).unwrap()
    }

    #[test]
    fn words_that_differ_are_marked_on_their_side() {
        let (old, new) = ("Hello.\nYour refund of 50 is on its way.", "Hello.\nYour refund of 500 is on its way.");
        let change = OutputChange::Text(diff_texts(old, new));
        let of = |side, whole| marked(&of_output(side, &text(whole), Some(&change)).parts);
        assert_eq!(of(Side::Baseline, old), "Hello.\nYour refund of [50] is on its way.");
        assert_eq!(of(Side::New, new), "Hello.\nYour refund of [500] is on its way.");
    }

    #[test]
    fn an_object_is_its_values() {
        let (old, new) =
            (json!({"state": "open", "ids": [1, 2]}), json!({"state": "done", "ids": [1, 2], "a": {"b": 3}}));
        let changes = diff_json(&old, &new).below("/final_output/content", "/final_output/content");
        let output = FinalOutput {
            content_type: ContentType::Json,
            content: Content::Json(new.as_object().unwrap().clone()),
            ..text("")
        };
        let shown = of_output(Side::New, &output, Some(&OutputChange::Json(changes)));
        assert_eq!(marked(&shown.parts), "state: [done], ids: 1, 2, a.b: [3]");
    }

    #[test]
    fn a_long_answer_is_cut_and_its_excerpt_starts_near_the_first_difference() {
        let old = format!("{}the end is here", "word ".repeat(400));
        let new = format!("{}the end is near", "word ".repeat(400));
        let change = OutputChange::Text(diff_texts(&old, &new));
        let shown = of_output(Side::New, &text(&new), Some(&change));
        assert!(shown.is_cut && marked(&shown.parts).ends_with("the end is [near]"), "{shown:?}");
        let excerpt = marked(&shown.excerpt());
        assert!(excerpt.starts_with("… ") && excerpt.contains("[near]") && excerpt.chars().count() < 300, "{excerpt}");
    }
}
