//! A difference of two texts as lines to be shown: unified, the words that differ marked, long equal stretches folded.

use super::shown::Budget;
use crate::diff::text::{Line, Origin, Part, TextChanges};

/// Equal lines that stay open around a difference.
const CONTEXT: usize = 3;

/// A fold of fewer lines costs the reader more than it saves.
const FOLD_FROM: usize = 4;

/// Most lines of the hunks of one difference.
const MOST_LINES: usize = 600;

/// Lines that a fold holds; the rest of a long one is in the files.
const MOST_FOLDED: usize = 60;

/// Longest part of a line that is shown.
const LONGEST_PART: usize = 20_000;

/// A stretch of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    /// What a folded stretch says of itself; empty where it is open.
    pub(super) summary: String,
    /// The id of an open stretch, where links may lead to it; otherwise empty.
    pub(super) id: String,
    /// The lines.
    pub(super) lines: Vec<LineShown>,
}

/// A line, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineShown {
    /// The class of its background: `same`, `removed`, `added` or `changed`.
    pub(super) class: &'static str,
    /// The sign in its margin.
    pub(super) sign: &'static str,
    /// The sign in words, for who does not see it.
    pub(super) word: &'static str,
    /// Its text.
    pub(super) parts: Vec<PartShown>,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartShown {
    /// The text.
    pub(super) text: String,
    /// True where only the baseline has it.
    pub(super) removed: bool,
    /// True where only new has it.
    pub(super) added: bool,
}

/// A text difference, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DiffShown {
    /// The stretches, in reading order.
    pub(super) stretches: Vec<Stretch>,
    /// What is not shown, in words; empty where all is.
    pub(super) more: String,
}

/// A difference as lines. Its hunks are called after `name`, where there is one: `output-1`.
pub(super) fn show(changes: &TextChanges, name: &str, budget: &Budget) -> DiffShown {
    let mut shown = Hunks { name, stretches: Vec::new(), open: Vec::new(), left: MOST_LINES, hidden: 0 };
    let same = |line: &Line| line.origin == Origin::Both;
    let chunks: Vec<_> = changes.lines.chunk_by(|a, b| same(a) == same(b)).collect();
    for (index, chunk) in chunks.iter().enumerate() {
        if !chunk.first().is_some_and(same) {
            shown.hunk(chunk, budget);
            continue;
        }
        let before = if index == 0 { 0 } else { CONTEXT };
        let after = if index + 1 == chunks.len() { 0 } else { CONTEXT };
        if chunk.len() < before + after + FOLD_FROM {
            shown.context(chunk, budget);
            continue;
        }
        let (head, rest) = chunk.split_at(before);
        let (folded, tail) = rest.split_at(rest.len() - after);
        shown.context(head, budget);
        shown.fold(folded, budget);
        shown.context(tail, budget);
    }
    shown.close();
    let mut notes = Vec::new();
    if changes.coarse {
        notes.push("long texts: compared by line only".to_owned());
    }
    if shown.hidden > 0 {
        notes.push(format!("{} more lines in the files", shown.hidden));
    }
    DiffShown { stretches: shown.stretches, more: notes.join("; ") }
}

/// A difference while it is put together.
struct Hunks<'a> {
    name: &'a str,
    stretches: Vec<Stretch>,
    open: Vec<LineShown>,
    /// Lines that may still be open.
    left: usize,
    /// Lines that are not shown.
    hidden: usize,
}

impl Hunks<'_> {
    /// Equal lines beside a difference.
    fn context(&mut self, lines: &[Line], budget: &Budget) {
        let kept = lines.len().min(self.left);
        self.open.extend(lines[..kept].iter().map(|one| line(one, budget)));
        self.took(lines.len(), kept);
    }

    /// Lines that differ: the removed ones, and those that took their place. Of very many, the first of both are shown.
    fn hunk(&mut self, lines: &[Line], budget: &Budget) {
        let removed = lines.iter().filter(|line| line.origin == Origin::Baseline).count();
        if lines.len() <= self.left {
            self.open.extend(merged(lines, budget));
            self.took(lines.len(), lines.len());
            return;
        }
        let (gone, come): (Vec<_>, Vec<_>) = lines.iter().cloned().partition(|line| line.origin == Origin::Baseline);
        let half = (self.left / 2).max(self.left.saturating_sub(come.len())).min(removed);
        let rest = (self.left - half).min(come.len());
        let kept: Vec<_> = gone.into_iter().take(half).chain(come.into_iter().take(rest)).collect();
        self.open.extend(merged(&kept, budget));
        self.took(lines.len(), kept.len());
    }

    fn took(&mut self, lines: usize, kept: usize) {
        self.left -= kept;
        self.hidden += lines - kept;
    }

    /// Equal lines far from any difference.
    fn fold(&mut self, lines: &[Line], budget: &Budget) {
        self.close();
        let kept = lines.len().min(MOST_FOLDED);
        let rest = lines.len() - kept;
        let rest = if rest > 0 { format!(", the first {kept} of them here") } else { String::new() };
        self.stretches.push(Stretch {
            summary: format!("{} equal lines{rest}", lines.len()),
            id: String::new(),
            lines: lines[..kept].iter().map(|one| line(one, budget)).collect(),
        });
    }

    /// Ends the open stretch.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let number = 1 + self.stretches.iter().filter(|stretch| stretch.summary.is_empty()).count();
        let id = if self.name.is_empty() { String::new() } else { format!("{}-{number}", self.name) };
        self.stretches.push(Stretch { summary: String::new(), id, lines: std::mem::take(&mut self.open) });
    }
}

/// The lines, a removed and an added line that share their equal parts merged into one.
fn merged(lines: &[Line], budget: &Budget) -> Vec<LineShown> {
    let mut shown = Vec::new();
    let mut rest = lines;
    while !rest.is_empty() {
        // A block of removed lines, followed by the block of added ones that takes its place.
        let removed = rest.iter().take_while(|line| line.origin == Origin::Baseline).count();
        let added = rest[removed..].iter().take_while(|line| line.origin == Origin::New).count();
        let (old, new) = rest[..removed + added].split_at(removed);
        let pairs: Option<Vec<_>> = (removed == added)
            .then(|| old.iter().zip(new).map(|(old, new)| merge(&old.parts, &new.parts, budget)).collect())
            .flatten();
        match pairs {
            Some(pairs) => shown.extend(pairs),
            None => shown.extend(old.iter().chain(new).map(|one| line(one, budget))),
        }
        rest = &rest[removed + added..];
    }
    shown
}

fn line(line: &Line, budget: &Budget) -> LineShown {
    let (class, sign, word) = match line.origin {
        Origin::Both => ("same", "", ""),
        Origin::Baseline => ("removed", "−", "only in baseline:"),
        Origin::New => ("added", "+", "only in new:"),
    };
    let whole = line.origin != Origin::Both && line.parts.iter().all(|part| !part.differs);
    let parts = line.parts.iter().map(|part| {
        let differs = whole || part.differs;
        PartShown {
            text: budget.text(&part.text, LONGEST_PART).text,
            removed: differs && line.origin == Origin::Baseline,
            added: differs && line.origin == Origin::New,
        }
    });
    LineShown { class, sign, word, parts: parts.collect() }
}

/// One line with what was taken out and put in; `None` where the two lines do not share enough to be read as one.
fn merge(old: &[Part], new: &[Part], budget: &Budget) -> Option<LineShown> {
    let equal = |parts: &[Part]| parts.iter().filter(|p| !p.differs).map(|p| p.text.clone()).collect::<Vec<_>>();
    let kept = equal(old);
    let differs = |parts: &[Part]| parts.iter().any(|part| part.differs);
    if kept.is_empty() || kept != equal(new) || !(differs(old) || differs(new)) {
        return None;
    }
    let mut parts = Vec::new();
    let mut push = |part: &Part, removed: bool, added: bool| {
        parts.push(PartShown { text: budget.text(&part.text, LONGEST_PART).text, removed, added });
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
    Some(LineShown { class: "changed", sign: "≠", word: "changed:", parts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::text;

    fn shown(old: &str, new: &str) -> DiffShown {
        show(&text::diff(old, new), "output", &Budget::of_page())
    }

    fn marked(diff: &DiffShown) -> String {
        let lines = diff.stretches.iter().flat_map(|stretch| &stretch.lines);
        let parts = |line: &LineShown| {
            let mark = |part: &PartShown| match (part.removed, part.added) {
                (true, _) => format!("[-{}-]", part.text),
                (_, true) => format!("{{+{}+}}", part.text),
                _ => part.text.clone(),
            };
            line.parts.iter().map(mark).collect::<String>()
        };
        lines.map(parts).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_changed_line_is_read_once_with_old_and_new_words() {
        let diff = shown("Your refund of 50 is on its way.", "Your refund of 500 is on its way.");
        assert_eq!(marked(&diff), "Your refund of [-50-]{+500+} is on its way.");
    }

    #[test]
    fn lines_that_share_nothing_stand_below_each_other() {
        assert_eq!(marked(&shown("abc", "xyz")), "[-abc-]\n{+xyz+}");
    }

    #[test]
    fn long_equal_stretches_are_folded_around_a_context() {
        let text: Vec<_> = ('a'..='t').map(String::from).collect();
        let text = text.join("\n");
        let diff = shown(&text, &text.replace('k', "other"));
        let folds: Vec<_> = diff.stretches.iter().map(|stretch| stretch.summary.as_str()).collect();
        assert_eq!(folds, ["7 equal lines", "", "6 equal lines"]);
        assert_eq!(diff.stretches[1].id, "output-1");
    }

    #[test]
    fn what_differs_far_down_a_huge_text_is_shown_all_the_same() {
        let lines: Vec<_> =
            (0..15_000).map(|number| format!("line {number} of a text that fills many pages")).collect();
        let text = lines.join("\n");
        let diff = shown(&text, &text.replace("line 14000 of", "line 14000, at last, of"));
        assert!(marked(&diff).contains("at last"), "{:?}", diff.more);
        let count: usize = diff.stretches.iter().map(|stretch| stretch.lines.len()).sum();
        assert!(count < 200, "{count}");
    }

    #[test]
    fn of_very_many_lines_that_differ_the_first_of_both_sides_are_shown() {
        let side = |word: &str| (0..3_000).map(|number| format!("{word} {number}")).collect::<Vec<_>>().join("\n");
        let diff = shown(&side("old"), &side("new"));
        let marked = marked(&diff);
        assert!(marked.contains("old 0") && marked.contains("new 0"), "{marked}");
        assert!(diff.more.ends_with("5400 more lines in the files"), "{}", diff.more);
    }
}
