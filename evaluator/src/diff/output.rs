//! Differences of the final outputs: texts by line and word, objects by pointer.

use counterproof_artifact::{Content, FinalOutput};
use serde_json::Value;
use similar::{Algorithm, ChangeTag, TextDiff};

use super::json::{self, JsonChanges};
use crate::rules::{Notes, Renaming, Rules, Scope, Subject, view};

pub(crate) const POINTER: &str = "/final_output/content";

/// How the final outputs differ.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputChange {
    /// The outputs are equal.
    Same,
    /// Both are texts and differ.
    Text(TextChanges),
    /// Both are objects and differ. Pointers point into the artifact of their side.
    Json(JsonChanges),
    /// One is a text and the other an object, or their declared content types differ.
    Form,
}

/// Returns the rules for the final output: those for events of its type, below `/content`.
pub(crate) fn scope(rules: &Rules) -> Scope<'_> {
    rules.scope(Subject { event: Some("final_output"), tool: None }).below("content")
}

/// Records which rules apply to an output, and the ids in it.
pub(crate) fn note(output: &FinalOutput, scope: &Scope<'_>, notes: &mut Notes) {
    if !scope.is_empty() {
        view(&value(&output.content), scope, notes);
    }
}

pub(crate) fn diff(
    baseline: &FinalOutput,
    new: &FinalOutput,
    scope: &Scope<'_>,
    renaming: &mut Renaming,
) -> OutputChange {
    let here = scope.here();
    if here.ignore {
        return OutputChange::Same;
    }
    if baseline.content_type != new.content_type {
        return OutputChange::Form;
    }
    match (&baseline.content, &new.content) {
        (Content::Text(old), Content::Text(new)) if old == new => OutputChange::Same,
        (old @ Content::Text(before), new @ Content::Text(after)) => {
            let same = !scope.is_empty() && here.same(&value(old), &value(new), renaming);
            if same { OutputChange::Same } else { OutputChange::Text(diff_texts(before, after)) }
        }
        (old @ Content::Json(_), new @ Content::Json(_)) => {
            let changes = json::diff_under(&value(old), &value(new), scope, renaming).below(POINTER, POINTER);
            if changes.is_empty() { OutputChange::Same } else { OutputChange::Json(changes) }
        }
        _ => OutputChange::Form,
    }
}

pub(crate) fn value(content: &Content) -> Value {
    match content {
        Content::Text(text) => Value::String(text.clone()),
        Content::Json(object) => Value::Object(object.clone()),
    }
}

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
    pub lines: Vec<TextLine>,
    /// True if the texts, or a stretch of them, were too long to compare by word.
    pub coarse: bool,
}

/// A line of one text or of both.
#[derive(Debug, Clone, PartialEq)]
pub struct TextLine {
    /// The side that has the line.
    pub origin: LineOrigin,
    /// Its number in the baseline, counted from 1.
    pub baseline: Option<usize>,
    /// Its number in new, counted from 1.
    pub new: Option<usize>,
    /// Its text in parts, without the line break.
    pub parts: Vec<TextPart>,
}

/// The side that has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineOrigin {
    /// Both.
    Both,
    /// The baseline only.
    Baseline,
    /// New only.
    New,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPart {
    /// The words.
    pub text: String,
    /// True if the words changed within the line.
    pub differs: bool,
}

/// Compares two texts.
///
/// Among differences of equal length, the content decides, so that the result does not depend on which side is which.
pub fn diff_texts(baseline: &str, new: &str) -> TextChanges {
    // Myers' algorithm prefers one of several shortest differences by the order of its arguments.
    if baseline <= new { in_this_order(baseline, new) } else { mirrored(in_this_order(new, baseline)) }
}

/// Swaps the sides of a difference.
fn mirrored(mut changes: TextChanges) -> TextChanges {
    // Lines of the baseline come before lines of new.
    for line in &mut changes.lines {
        std::mem::swap(&mut line.baseline, &mut line.new);
        line.origin = match line.origin {
            LineOrigin::Both => LineOrigin::Both,
            LineOrigin::Baseline => LineOrigin::New,
            LineOrigin::New => LineOrigin::Baseline,
        };
    }
    for stretch in changes.lines.chunk_by_mut(|a, b| (a.origin == LineOrigin::Both) == (b.origin == LineOrigin::Both)) {
        stretch.sort_by_key(|line| line.origin == LineOrigin::New);
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
        // The bound is shared by the stretches in reading order, so that a long text costs no more than a short one.
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
            let mut parts: Vec<TextPart> = Vec::new();
            for (differs, text) in change.iter_strings_lossy() {
                let text = without_break(&text);
                match parts.last_mut() {
                    Some(last) if last.differs == differs => last.text.push_str(text),
                    _ if text.is_empty() => {}
                    _ => parts.push(TextPart { text: text.to_owned(), differs }),
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

fn whole(text: &str) -> Vec<TextPart> {
    vec![TextPart { text: without_break(text).to_owned(), differs: false }]
}

fn line(tag: ChangeTag, old: Option<usize>, new: Option<usize>, parts: Vec<TextPart>) -> TextLine {
    let origin = match tag {
        ChangeTag::Equal => LineOrigin::Both,
        ChangeTag::Delete => LineOrigin::Baseline,
        ChangeTag::Insert => LineOrigin::New,
    };
    TextLine { origin, baseline: old.map(|index| index + 1), new: new.map(|index| index + 1), parts }
}

fn without_break(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(changes: &TextChanges, hidden: LineOrigin) -> String {
        let lines = changes.lines.iter().filter(|line| line.origin != hidden);
        lines.map(|line| line.parts.iter().map(|part| part.text.as_str()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn changed_words_are_marked_within_their_line() {
        let changes =
            diff_texts("Hello.\nYour refund of 50 is on its way.\n", "Hello.\nYour refund of 500 is on its way.\n");
        let marked: Vec<_> = changes.lines.iter().flat_map(|line| &line.parts).filter(|part| part.differs).collect();
        assert_eq!(marked.iter().map(|part| part.text.as_str()).collect::<Vec<_>>(), ["50", "500"]);
        assert_eq!(changes.lines[0].origin, LineOrigin::Both);
    }

    proptest::proptest! {
        #[test]
        fn each_side_can_be_reconstructed(old in "([a-c ]{0,6}\n){0,6}", new in "([a-c ]{0,6}\n){0,6}") {
            let changes = diff_texts(&old, &new);
            proptest::prop_assert_eq!(side(&changes, LineOrigin::New), old);
            proptest::prop_assert_eq!(side(&changes, LineOrigin::Baseline), new);
        }
    }

    proptest::proptest! {
        #[test]
        fn swapped_texts_give_the_mirrored_difference(old in "([ab ]{0,4}\n){0,8}", new in "([ab ]{0,4}\n){0,8}") {
            proptest::prop_assert_eq!(diff_texts(&old, &new), mirrored(diff_texts(&new, &old)));
        }
    }

    #[test]
    fn long_texts_are_compared_coarsely_and_reported_as_such() {
        let old = "a line of some length\n".repeat(30_000);
        let changes = diff_texts(&old, &format!("{old}x\n"));
        assert!(changes.coarse);
        assert_eq!(changes.lines.iter().filter(|line| line.origin != LineOrigin::Both).count(), 1);
        let long = |word: &str| format!("{} {word}\n", "word ".repeat(5_000));
        assert!(diff_texts(&long("one"), &long("two")).coarse);
        let pages = |word: &str| {
            (0..100)
                .flat_map(|page| [format!("page {page}\n"), word.repeat(2_000), "\n".to_owned()])
                .collect::<String>()
        };
        let changes = diff_texts(&pages("a b "), &pages("b c "));
        assert!(changes.coarse);
        assert!(changes.lines.iter().any(|line| line.parts.len() > 1), "the first pages are compared by word");
    }
}
