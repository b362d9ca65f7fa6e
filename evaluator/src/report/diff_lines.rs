//! A difference of two texts as lines to be shown: unified, the words that differ marked, long equal stretches folded.

use super::shown::Budget;
use crate::diff::text::{Line, Origin, Part, TextChanges};

/// Equal lines that stay open around a difference.
const CONTEXT: usize = 3;

/// A fold of fewer lines costs the reader more than it saves.
const FOLD_FROM: usize = 4;

/// Most lines of one difference that are shown.
const MOST_LINES: usize = 600;

/// Longest part of a line that is shown.
const LONGEST_PART: usize = 20_000;

/// A stretch of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    /// What a folded stretch says of itself; empty where it is open.
    pub(super) summary: String,
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

/// A difference as lines.
pub(super) fn show(changes: &TextChanges, budget: &Budget) -> DiffShown {
    let lines = merged(&changes.lines, budget);
    let mut notes = Vec::new();
    if changes.coarse {
        notes.push("long texts: compared by line only".to_owned());
    }
    let mut stretches = fold(lines);
    let mut left = MOST_LINES;
    let mut hidden = 0;
    for stretch in &mut stretches {
        hidden += stretch.lines.len().saturating_sub(left);
        stretch.lines.truncate(left);
        left -= stretch.lines.len();
    }
    stretches.retain(|stretch| !stretch.lines.is_empty());
    if hidden > 0 {
        notes.push(format!("{hidden} more lines in the files"));
    }
    DiffShown { stretches, more: notes.join("; ") }
}

/// The lines, a removed and an added line that share their equal parts merged into one.
fn merged(lines: &[Line], budget: &Budget) -> Vec<LineShown> {
    let mut shown = Vec::new();
    let mut rest = lines;
    while let [first, after @ ..] = rest {
        if first.origin == Origin::Both {
            shown.push(line(first, budget));
            rest = after;
            continue;
        }
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

fn fold(lines: Vec<LineShown>) -> Vec<Stretch> {
    let differs: Vec<usize> = (0..lines.len()).filter(|&index| lines[index].class != "same").collect();
    let near = |index: usize| {
        let next = differs.partition_point(|&place| place < index);
        let after = differs.get(next).is_some_and(|&place| place - index <= CONTEXT);
        after || next.checked_sub(1).is_some_and(|before| index - differs[before] <= CONTEXT)
    };
    let mut stretches: Vec<(bool, Vec<LineShown>)> = Vec::new();
    let open: Vec<bool> = (0..lines.len()).map(near).collect();
    for (line, open) in lines.into_iter().zip(open) {
        match stretches.last_mut() {
            Some((last, lines)) if *last == open => lines.push(line),
            _ => stretches.push((open, vec![line])),
        }
    }
    stretches
        .into_iter()
        .map(|(open, lines)| {
            let folded = !open && lines.len() >= FOLD_FROM;
            Stretch { summary: if folded { format!("{} equal lines", lines.len()) } else { String::new() }, lines }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::text;

    fn shown(old: &str, new: &str) -> DiffShown {
        show(&text::diff(old, new), &Budget::of_page())
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
    }
}
