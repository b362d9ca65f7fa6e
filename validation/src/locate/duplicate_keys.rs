//! Keys that an object has more than once.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use counterproof_artifact::pointer;

use super::walk::{Step, Walk, decode};

/// A key that an object has more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The JSON Pointer of the key's value.
    pub pointer: String,
    /// The bytes of the later key, quotes included.
    pub span: Range<usize>,
}

/// The duplicate keys of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DuplicateKeys {
    /// The first 1000, in the order of the text.
    pub listed: Vec<DuplicateKey>,
    /// The number of further duplicates.
    pub omitted: usize,
}

/// Maximum number of listed duplicates. More would not help a reader, and each costs a pointer.
pub(super) const MAX_DUPLICATES: usize = 1000;

/// Maximum length of a pointer to a duplicate key, in bytes. A longer one is cut at a segment, so it names an enclosing value.
const MAX_POINTER_BYTES: usize = 512;

/// The segment of a pointer that leads to a container.
enum Segment {
    Key(Range<usize>),
    Index(usize),
}

/// Finds every key that its object already has. Memory grows with the depth and the keys of the open objects, and not with
/// the product of text length and depth.
pub fn duplicate_keys(text: &str) -> DuplicateKeys {
    // One entry for each open container: its segment and the keys so far. The root has no segment.
    let mut open: Vec<(Option<Segment>, HashSet<Cow<'_, str>>)> = Vec::new();
    let mut duplicates = DuplicateKeys::default();
    let mut walk = Walk::new(text);
    walk.visits_all_keys = true;
    walk.run(&mut |step| {
        let segment = match step {
            Step::Root => None,
            Step::Key { parent, span, .. } => {
                // A node is a depth: everything deeper than the parent is closed.
                open.truncate(parent? + 1);
                if !open.last_mut()?.1.insert(decode(&text[span.clone()])) {
                    if duplicates.listed.len() < MAX_DUPLICATES {
                        let pointer = pointer_to(text, open.iter().filter_map(|(segment, _)| segment.as_ref()), &span);
                        duplicates.listed.push(DuplicateKey { pointer, span: span.clone() });
                    } else {
                        duplicates.omitted += 1;
                    }
                }
                Some(Segment::Key(span))
            }
            Step::Element { parent, index } => {
                open.truncate(parent? + 1);
                Some(Segment::Index(index))
            }
            Step::Value { .. } => return None,
        };
        open.push((segment, HashSet::new()));
        Some(open.len() - 1)
    });
    duplicates
}

/// Formats the pointer to `last` below a path, up to the maximum length.
fn pointer_to<'s>(text: &str, path: impl Iterator<Item = &'s Segment>, last: &Range<usize>) -> String {
    let mut pointer = String::new();
    for segment in path.map(Some).chain([None]) {
        let fits = pointer.len();
        match segment {
            Some(Segment::Index(index)) => pointer::push(&mut pointer, &index.to_string()),
            Some(Segment::Key(span)) => pointer::push(&mut pointer, &decode(&text[span.clone()])),
            None => pointer::push(&mut pointer, &decode(&text[last.clone()])),
        }
        if pointer.len() > MAX_POINTER_BYTES {
            pointer.truncate(fits);
            break;
        }
    }
    pointer
}
