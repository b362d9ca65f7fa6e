//! Changes between two JSON values, each with both values next to each other, and differences of two texts as unified lines, with
//! the changed words marked and long equal stretches folded.

use counterproof_evaluator::{
    ChangeKind, JsonChange, JsonChanges, LineOrigin, LocatedValue, TextChanges, TextLine, TextPart, diff_texts,
    messages,
};
use serde_json::Value;

use super::display::{self, Budget, DisplayText};

const MOST_CHANGES: usize = 100;

/// Longer texts are shown once, with the changed words marked.
const SIDE_BY_SIDE_UP_TO: usize = 80;

/// Longer values are indented.
const ONE_LINE_UP_TO: usize = 160;

const LONGEST_VALUE: usize = 4_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct ChangesView {
    pub(crate) list: Vec<ChangeView>,
    /// What is not listed; empty where everything is.
    pub(crate) more: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ChangeView {
    pub(crate) location: String,
    pub(crate) kind: String,
    pub(crate) baseline: Option<DisplayText>,
    pub(crate) new: Option<DisplayText>,
    /// The difference of two long texts, in place of the two values.
    pub(crate) text: Option<TextDiffView>,
}

pub(crate) fn changes_view(changes: &JsonChanges, budget: &Budget) -> ChangesView {
    let list = changes.iter().take(MOST_CHANGES).map(|change| change_view(change, budget)).collect();
    // The list may be truncated, while the count is of all changes.
    let hidden = changes.count().saturating_sub(MOST_CHANGES.min(changes.len()));
    let more = if hidden > 0 { format!("{hidden} more changes") } else { String::new() };
    ChangesView { list, more }
}

fn change_view(change: &JsonChange, budget: &Budget) -> ChangeView {
    let kind = match change.kind() {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        ChangeKind::Changed => "changed",
        ChangeKind::TypeChanged => "type changed",
        ChangeKind::Reordered => "reordered",
    };
    let kind = match (&change.baseline, &change.new) {
        (Some(LocatedValue { value: Value::Array(old), .. }), Some(LocatedValue { value: Value::Array(new), .. })) => {
            format!("{kind}: {}", display::visible(&messages::reordering(old, new)))
        }
        _ => kind.to_owned(),
    };
    let location = messages::field_path(change.pointer());
    if let Some((old, new)) = long_texts(change) {
        let text = Some(text_diff(&diff_texts(old, new), "", budget));
        return ChangeView { location, kind, baseline: None, new: None, text };
    }
    let value = |place: &Option<LocatedValue>| place.as_ref().map(|place| value(&place.value, budget));
    ChangeView { location, kind, baseline: value(&change.baseline), new: value(&change.new), text: None }
}

fn value(value: &Value, budget: &Budget) -> DisplayText {
    match display::on_one_line(value, ONE_LINE_UP_TO) {
        Some(line) => budget.text(&line, ONE_LINE_UP_TO),
        None => budget.json(value, LONGEST_VALUE),
    }
}

fn long_texts(change: &JsonChange) -> Option<(&str, &str)> {
    let (Value::String(old), Value::String(new)) = (&change.baseline.as_ref()?.value, &change.new.as_ref()?.value)
    else {
        return None;
    };
    // Short texts are compared as a whole at a glance; in long ones, the changed words are hard to find.
    let long = |text: &str| text.len() > SIDE_BY_SIDE_UP_TO || text.contains('\n');
    (long(old) && long(new)).then_some((old, new))
}

/// Equal lines that stay open around a change.
const CONTEXT: usize = 3;

/// Shorter stretches of equal lines are not folded.
const FOLD_FROM: usize = 4;

const MOST_LINES: usize = 600;

const MOST_FOLDED: usize = 60;

const LONGEST_PART: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The summary of a folded stretch; empty for an open one.
    pub(crate) summary: String,
    /// The id of an open stretch; may be empty.
    pub(crate) id: String,
    pub(crate) lines: Vec<LineView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineView {
    /// The CSS class: `same`, `removed`, `added` or `changed`.
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
    pub(crate) parts: Vec<PartView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartView {
    pub(crate) text: String,
    /// Whether only baseline has the part.
    pub(crate) removed: bool,
    /// Whether only new has the part.
    pub(crate) added: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TextDiffView {
    pub(crate) stretches: Vec<Stretch>,
    /// What is not shown; empty where everything is.
    pub(crate) more: String,
}

/// The view of a difference. With a `name`, its open stretches get ids such as `output-1`.
pub(crate) fn text_diff(changes: &TextChanges, name: &str, budget: &Budget) -> TextDiffView {
    let mut hunks = Hunks { name, stretches: Vec::new(), open: Vec::new(), left: MOST_LINES, hidden: 0 };
    let same = |line: &TextLine| line.origin == LineOrigin::Both;
    let chunks: Vec<_> = changes.lines.chunk_by(|a, b| same(a) == same(b)).collect();
    for (index, chunk) in chunks.iter().enumerate() {
        if !chunk.first().is_some_and(same) {
            hunks.hunk(chunk, budget);
            continue;
        }
        // The start and the end of a text are next to no change.
        let before = if index == 0 { 0 } else { CONTEXT };
        let after = if index + 1 == chunks.len() { 0 } else { CONTEXT };
        if chunk.len() < before + after + FOLD_FROM {
            hunks.context(chunk, budget);
            continue;
        }
        let (head, rest) = chunk.split_at(before);
        let (folded, tail) = rest.split_at(rest.len() - after);
        hunks.context(head, budget);
        hunks.fold(folded, budget);
        hunks.context(tail, budget);
    }
    hunks.close();
    let mut notes = Vec::new();
    if changes.coarse {
        notes.push("long texts are compared by line, not by word".to_owned());
    }
    if hunks.hidden > 0 {
        notes.push(format!("{} more lines are in the linked files", hunks.hidden));
    }
    TextDiffView { stretches: hunks.stretches, more: notes.join("; ") }
}

struct Hunks<'a> {
    name: &'a str,
    stretches: Vec<Stretch>,
    open: Vec<LineView>,
    /// The number of lines that may still be open.
    left: usize,
    hidden: usize,
}

impl Hunks<'_> {
    /// Adds equal lines next to a change.
    fn context(&mut self, lines: &[TextLine], budget: &Budget) {
        let kept = lines.len().min(self.left);
        self.open.extend(lines[..kept].iter().map(|one| line(one, budget)));
        self.count(lines.len(), kept);
    }

    /// Adds changed lines: removed lines and the added lines that replace them. Of very many, the first of both kinds.
    fn hunk(&mut self, lines: &[TextLine], budget: &Budget) {
        let removed = lines.iter().filter(|line| line.origin == LineOrigin::Baseline).count();
        if lines.len() <= self.left {
            self.open.extend(merged(lines, budget));
            self.count(lines.len(), lines.len());
            return;
        }
        let (removed_lines, added_lines): (Vec<_>, Vec<_>) =
            lines.iter().cloned().partition(|line| line.origin == LineOrigin::Baseline);
        // Half of the space for each kind, and more for one if the other needs less.
        let half = (self.left / 2).max(self.left.saturating_sub(added_lines.len())).min(removed);
        let rest = (self.left - half).min(added_lines.len());
        let kept: Vec<_> = removed_lines.into_iter().take(half).chain(added_lines.into_iter().take(rest)).collect();
        self.open.extend(merged(&kept, budget));
        self.count(lines.len(), kept.len());
    }

    fn count(&mut self, lines: usize, kept: usize) {
        self.left -= kept;
        self.hidden += lines - kept;
    }

    /// Adds equal lines that are far from any change.
    fn fold(&mut self, lines: &[TextLine], budget: &Budget) {
        self.close();
        let kept = lines.len().min(MOST_FOLDED);
        let rest = lines.len() - kept;
        let rest = if rest > 0 { format!(" (first {kept} shown)") } else { String::new() };
        self.stretches.push(Stretch {
            summary: format!("{} identical lines{rest}", lines.len()),
            id: String::new(),
            lines: lines[..kept].iter().map(|one| line(one, budget)).collect(),
        });
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let number = 1 + self.stretches.iter().filter(|stretch| stretch.summary.is_empty()).count();
        let id = if self.name.is_empty() { String::new() } else { format!("{}-{number}", self.name) };
        self.stretches.push(Stretch { summary: String::new(), id, lines: std::mem::take(&mut self.open) });
    }
}

/// Merges each removed line with its added line where both have the same equal parts.
fn merged(lines: &[TextLine], budget: &Budget) -> Vec<LineView> {
    let mut merged = Vec::new();
    let mut rest = lines;
    while !rest.is_empty() {
        // A block of removed lines, and the block of added lines that replaces it.
        let removed = rest.iter().take_while(|line| line.origin == LineOrigin::Baseline).count();
        let added = rest[removed..].iter().take_while(|line| line.origin == LineOrigin::New).count();
        let (old, new) = rest[..removed + added].split_at(removed);
        let pairs: Option<Vec<_>> = (removed == added)
            .then(|| old.iter().zip(new).map(|(old, new)| merge(&old.parts, &new.parts, budget)).collect())
            .flatten();
        match pairs {
            Some(pairs) => merged.extend(pairs),
            None => merged.extend(old.iter().chain(new).map(|one| line(one, budget))),
        }
        rest = &rest[removed + added..];
    }
    merged
}

fn line(line: &TextLine, budget: &Budget) -> LineView {
    let (class, sign, word) = match line.origin {
        LineOrigin::Both => ("same", "", ""),
        LineOrigin::Baseline => ("removed", "−", "only in baseline:"),
        LineOrigin::New => ("added", "+", "only in new:"),
    };
    // A line without marked words was added or removed as a whole.
    let whole = line.origin != LineOrigin::Both && line.parts.iter().all(|part| !part.differs);
    let parts = line.parts.iter().map(|part| {
        let differs = whole || part.differs;
        PartView {
            text: budget.text(&part.text, LONGEST_PART).text,
            removed: differs && line.origin == LineOrigin::Baseline,
            added: differs && line.origin == LineOrigin::New,
        }
    });
    LineView { class, sign, word, parts: parts.collect() }
}

/// One line with the removed and added parts; `None` where the two lines have too little in common.
fn merge(old: &[TextPart], new: &[TextPart], budget: &Budget) -> Option<LineView> {
    let equal = |parts: &[TextPart]| parts.iter().filter(|p| !p.differs).map(|p| p.text.clone()).collect::<Vec<_>>();
    let kept = equal(old);
    let differs = |parts: &[TextPart]| parts.iter().any(|part| part.differs);
    if kept.is_empty() || kept != equal(new) || !(differs(old) || differs(new)) {
        return None;
    }
    let mut parts = Vec::new();
    let mut push = |part: &TextPart, removed: bool, added: bool| {
        parts.push(PartView { text: budget.text(&part.text, LONGEST_PART).text, removed, added });
    };
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        while let Some(part) = old.next_if(|part| part.differs) {
            push(part, true, false);
        }
        while let Some(part) = new.next_if(|part| part.differs) {
            push(part, false, true);
        }
        let Some(part) = old.next() else { break };
        push(part, false, false);
        new.next();
    }
    Some(LineView { class: "changed", sign: "≠", word: "changed:", parts })
}

#[cfg(test)]
mod tests {

    use super::*;

    fn diff(old: &str, new: &str) -> TextDiffView {
        text_diff(&diff_texts(old, new), "output", &Budget::for_page())
    }

    fn marked(diff: &TextDiffView) -> String {
        let lines = diff.stretches.iter().flat_map(|stretch| &stretch.lines);
        let parts = |line: &LineView| {
            let mark = |part: &PartView| match (part.removed, part.added) {
                (true, _) => format!("[-{}-]", part.text),
                (_, true) => format!("{{+{}+}}", part.text),
                _ => part.text.clone(),
            };
            line.parts.iter().map(mark).collect::<String>()
        };
        lines.map(parts).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_changed_line_is_shown_once_with_old_and_new_words() {
        let diff = diff("Your refund of 50 is on its way.", "Your refund of 500 is on its way.");
        assert_eq!(marked(&diff), "Your refund of [-50-]{+500+} is on its way.");
    }

    #[test]
    fn lines_without_common_parts_are_shown_separately() {
        assert_eq!(marked(&diff("abc", "xyz")), "[-abc-]\n{+xyz+}");
    }

    #[test]
    fn long_equal_stretches_are_folded_around_a_context() {
        let text: Vec<_> = ('a'..='t').map(String::from).collect();
        let text = text.join("\n");
        let diff = diff(&text, &text.replace('k', "other"));
        let folds: Vec<_> = diff.stretches.iter().map(|stretch| stretch.summary.as_str()).collect();
        assert_eq!(folds, ["7 identical lines", "", "6 identical lines"]);
        assert_eq!(diff.stretches[1].id, "output-1");
    }

    #[test]
    fn a_change_at_the_end_of_a_huge_text_is_shown() {
        let lines: Vec<_> =
            (0..15_000).map(|number| format!("line {number} of a text that fills many pages")).collect();
        let text = lines.join("\n");
        let diff = diff(&text, &text.replace("line 14000 of", "line 14000, at last, of"));
        assert!(marked(&diff).contains("at last"), "{:?}", diff.more);
        let count: usize = diff.stretches.iter().map(|stretch| stretch.lines.len()).sum();
        assert!(count < 200, "{count}");
    }

    #[test]
    fn of_very_many_changed_lines_the_first_of_both_sides_are_shown() {
        let side = |word: &str| (0..3_000).map(|number| format!("{word} {number}")).collect::<Vec<_>>().join("\n");
        let diff = diff(&side("old"), &side("new"));
        let marked = marked(&diff);
        assert!(marked.contains("old 0") && marked.contains("new 0"), "{marked}");
        assert!(diff.more.ends_with("5400 more lines are in the linked files"), "{}", diff.more);
    }
}
