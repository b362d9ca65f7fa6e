//! Differences of two texts, by line and within changed lines by word.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// How long one text may take; what is not finished by then is shown as a coarser difference.
const DEADLINE: Duration = Duration::from_secs(2);

/// Texts longer than this together are compared by line only: words within megabytes help no reader.
const WORDS_UP_TO_BYTES: usize = 512 * 1024;

/// Two texts, line by line.
#[derive(Debug, Clone, PartialEq)]
pub struct TextChanges {
    /// Every line of both texts, in reading order.
    pub lines: Vec<Line>,
    /// True where the texts were too long to be compared by word.
    pub coarse: bool,
}

/// A line of either text, or of both.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Which side has it.
    pub origin: Origin,
    /// Its number in the baseline, counted from 1.
    pub baseline: Option<usize>,
    /// Its number in new, counted from 1.
    pub new: Option<usize>,
    /// Its text in parts, without the line break.
    pub parts: Vec<Part>,
}

/// Which side has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Both.
    Both,
    /// The baseline only.
    Baseline,
    /// New only.
    New,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The words.
    pub text: String,
    /// True where they are what differs within the line.
    pub differs: bool,
}

/// Compares two texts.
pub fn diff(baseline: &str, new: &str) -> TextChanges {
    let diff = TextDiff::configure().timeout(DEADLINE).diff_lines(baseline, new);
    let coarse = baseline.len() + new.len() > WORDS_UP_TO_BYTES;
    let mut lines = Vec::new();
    if coarse {
        for change in diff.iter_all_changes() {
            let parts = vec![Part { text: without_break(change.value()).to_owned(), differs: false }];
            lines.push(line(change.tag(), change.old_index(), change.new_index(), parts));
        }
        return TextChanges { lines, coarse };
    }
    for change in diff.iter_all_inline_changes() {
        let mut parts: Vec<Part> = Vec::new();
        for (differs, text) in change.iter_strings_lossy() {
            let text = without_break(&text);
            match parts.last_mut() {
                Some(last) if last.differs == differs => last.text.push_str(text),
                _ if text.is_empty() => {}
                _ => parts.push(Part { text: text.to_owned(), differs }),
            }
        }
        lines.push(line(change.tag(), change.old_index(), change.new_index(), parts));
    }
    TextChanges { lines, coarse }
}

fn line(tag: ChangeTag, old: Option<usize>, new: Option<usize>, parts: Vec<Part>) -> Line {
    let origin = match tag {
        ChangeTag::Equal => Origin::Both,
        ChangeTag::Delete => Origin::Baseline,
        ChangeTag::Insert => Origin::New,
    };
    Line { origin, baseline: old.map(|index| index + 1), new: new.map(|index| index + 1), parts }
}

fn without_break(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(changes: &TextChanges, hidden: Origin) -> String {
        let lines = changes.lines.iter().filter(|line| line.origin != hidden);
        lines.map(|line| line.parts.iter().map(|part| part.text.as_str()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn the_words_that_differ_are_marked_within_their_line() {
        let changes = diff("Hello.\nYour refund of 50 is on its way.\n", "Hello.\nYour refund of 500 is on its way.\n");
        let marked: Vec<_> = changes.lines.iter().flat_map(|line| &line.parts).filter(|part| part.differs).collect();
        assert_eq!(marked.iter().map(|part| part.text.as_str()).collect::<Vec<_>>(), ["50", "500"]);
        assert_eq!(changes.lines[0].origin, Origin::Both);
    }

    proptest::proptest! {
        #[test]
        fn each_side_can_be_read_back(old in "([a-c ]{0,6}\n){0,6}", new in "([a-c ]{0,6}\n){0,6}") {
            let changes = diff(&old, &new);
            proptest::prop_assert_eq!(side(&changes, Origin::New), old);
            proptest::prop_assert_eq!(side(&changes, Origin::Baseline), new);
        }
    }

    #[test]
    fn long_texts_are_compared_by_line_only() {
        let old = "a line of some length\n".repeat(30_000);
        assert!(diff(&old, &format!("{old}x\n")).coarse);
    }
}
