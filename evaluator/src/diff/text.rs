//! Differences of two texts, by line and within changed lines by word.

use similar::{Algorithm, ChangeTag, TextDiff};

/// Texts with more lines than this in total are compared only at their ends; everything between counts as changed.
///
/// The bounds count lines and bytes and not time, so that the same texts always give the same difference.
const LINES_UP_TO: usize = 20_000;

/// Changed stretches longer than this are compared by line only.
const WORDS_UP_TO_BYTES: usize = 16 * 1024;

/// The bound on all comparisons by word in a text. A stretch costs the square of its bytes.
const WORDS_WORK: usize = 4 * WORDS_UP_TO_BYTES * WORDS_UP_TO_BYTES;

/// Two texts, line by line.
#[derive(Debug, Clone, PartialEq)]
pub struct TextChanges {
    /// Every line of both texts, in reading order.
    pub lines: Vec<Line>,
    /// True if the texts, or a stretch of them, were too long to compare by word.
    pub coarse: bool,
}

/// A line of one text or of both.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The side that has the line.
    pub origin: Origin,
    /// Its number in the baseline, counted from 1.
    pub baseline: Option<usize>,
    /// Its number in new, counted from 1.
    pub new: Option<usize>,
    /// Its text in parts, without the line break.
    pub parts: Vec<Part>,
}

/// The side that has a line.
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
    /// True if the words changed within the line.
    pub differs: bool,
}

/// Compares two texts.
///
/// Among differences of equal length, the content decides, so that the result does not depend on which side is which.
pub fn diff(baseline: &str, new: &str) -> TextChanges {
    if baseline <= new { in_this_order(baseline, new) } else { mirrored(in_this_order(new, baseline)) }
}

/// Swaps the sides of a difference. Lines of the baseline come before lines of new.
fn mirrored(mut changes: TextChanges) -> TextChanges {
    for line in &mut changes.lines {
        std::mem::swap(&mut line.baseline, &mut line.new);
        line.origin = match line.origin {
            Origin::Both => Origin::Both,
            Origin::Baseline => Origin::New,
            Origin::New => Origin::Baseline,
        };
    }
    for stretch in changes.lines.chunk_by_mut(|a, b| (a.origin == Origin::Both) == (b.origin == Origin::Both)) {
        stretch.sort_by_key(|line| line.origin == Origin::New);
    }
    changes
}

fn in_this_order(baseline: &str, new: &str) -> TextChanges {
    if baseline.lines().count() + new.lines().count() > LINES_UP_TO {
        return ends(baseline, new);
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_lines(baseline, new);
    let (mut lines, mut coarse) = (Vec::new(), false);
    let mut work = WORDS_WORK;
    for op in diff.ops() {
        let bytes: usize = diff.iter_changes(op).map(|change| change.value().len()).sum();
        let replaces = op.tag() == similar::DiffTag::Replace;
        let left = work.checked_sub(if replaces { bytes.saturating_mul(bytes) } else { 0 });
        work = left.unwrap_or(work);
        if bytes > WORDS_UP_TO_BYTES || left.is_none() {
            coarse |= replaces;
            lines.extend(
                diff.iter_changes(op)
                    .map(|change| line(change.tag(), change.old_index(), change.new_index(), whole(change.value()))),
            );
            continue;
        }
        for change in diff.iter_inline_changes_deadline(op, None) {
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
    }
    TextChanges { lines, coarse }
}

/// Matches only the equal lines at both ends of two long texts.
fn ends(baseline: &str, new: &str) -> TextChanges {
    let (old, new): (Vec<_>, Vec<_>) = (baseline.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let both = |i: usize, j: usize| line(ChangeTag::Equal, Some(i), Some(j), whole(old[i]));
    let mut lines: Vec<_> = (0..head).map(|i| both(i, i)).collect();
    lines.extend((head..old.len() - tail).map(|i| line(ChangeTag::Delete, Some(i), None, whole(old[i]))));
    lines.extend((head..new.len() - tail).map(|j| line(ChangeTag::Insert, None, Some(j), whole(new[j]))));
    lines.extend((0..tail).rev().map(|k| both(old.len() - 1 - k, new.len() - 1 - k)));
    TextChanges { lines, coarse: true }
}

fn whole(text: &str) -> Vec<Part> {
    vec![Part { text: without_break(text).to_owned(), differs: false }]
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
    fn changed_words_are_marked_within_their_line() {
        let changes = diff("Hello.\nYour refund of 50 is on its way.\n", "Hello.\nYour refund of 500 is on its way.\n");
        let marked: Vec<_> = changes.lines.iter().flat_map(|line| &line.parts).filter(|part| part.differs).collect();
        assert_eq!(marked.iter().map(|part| part.text.as_str()).collect::<Vec<_>>(), ["50", "500"]);
        assert_eq!(changes.lines[0].origin, Origin::Both);
    }

    proptest::proptest! {
        #[test]
        fn each_side_can_be_reconstructed(old in "([a-c ]{0,6}\n){0,6}", new in "([a-c ]{0,6}\n){0,6}") {
            let changes = diff(&old, &new);
            proptest::prop_assert_eq!(side(&changes, Origin::New), old);
            proptest::prop_assert_eq!(side(&changes, Origin::Baseline), new);
        }
    }

    proptest::proptest! {
        #[test]
        fn swapped_texts_give_the_mirrored_difference(old in "([ab ]{0,4}\n){0,8}", new in "([ab ]{0,4}\n){0,8}") {
            proptest::prop_assert_eq!(diff(&old, &new), mirrored(diff(&new, &old)));
        }
    }

    #[test]
    fn long_texts_are_compared_coarsely_and_reported_as_such() {
        let old = "a line of some length\n".repeat(30_000);
        let changes = diff(&old, &format!("{old}x\n"));
        assert!(changes.coarse);
        assert_eq!(changes.lines.iter().filter(|line| line.origin != Origin::Both).count(), 1);
        let long = |word: &str| format!("{} {word}\n", "word ".repeat(5_000));
        assert!(diff(&long("one"), &long("two")).coarse);
        let pages = |word: &str| {
            (0..100)
                .flat_map(|page| [format!("page {page}\n"), word.repeat(2_000), "\n".to_owned()])
                .collect::<String>()
        };
        let changes = diff(&pages("a b "), &pages("b c "));
        assert!(changes.coarse);
        assert!(changes.lines.iter().any(|line| line.parts.len() > 1), "the first pages are compared by word");
    }
}
