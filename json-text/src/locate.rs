//! Locates parts of a JSON text: values by JSON Pointer, duplicate keys, and byte offsets as lines and columns.
//!
//! Used only when something is reported. The text is already parsed: these functions do not validate it, and of a text that is not
//! JSON they read the part before the first error. They make one pass over the bytes for any number of pointers, without recursion,
//! so deep nesting cannot overflow the stack.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::strings::decode;
use crate::tokenizer::{Kind, Token, Tokenizer};

/// A line and a column in a text, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Returns the positions of byte offsets, in the order of the offsets. The text is read once for all offsets.
pub fn positions(text: &[u8], offsets: &[usize]) -> Vec<Position> {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    // In the order of the text, so that one pass finds all of them.
    order.sort_unstable_by_key(|&index| offsets[index]);
    let mut positions = vec![Position { line: 1, column: 1 }; offsets.len()];
    let (mut at, mut here) = (0, Position { line: 1, column: 1 });
    for index in order {
        let offset = offsets[index].min(text.len());
        for &byte in &text[at..offset] {
            if byte == b'\n' {
                here = Position { line: here.line + 1, column: 1 };
            } else if byte & 0b1100_0000 != 0b1000_0000 {
                // Every byte of UTF-8 but a continuation starts a character.
                here.column += 1;
            }
        }
        at = offset;
        positions[index] = here;
    }
    positions
}

/// Returns the byte offset of a position. A position after the end of its line or of the text is moved there.
pub fn offset(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 1..position.line {
        let Some(end) = text[start..].find('\n') else { return text.len() };
        start += end + 1;
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    start + line.char_indices().nth(position.column.saturating_sub(1)).map_or(line.len(), |(at, _)| at)
}

const ROOT: usize = 0;

/// Returns the byte ranges of the values that the pointers name, in the order of the pointers; `None` for a missing value.
///
/// Of a duplicate key, the last value is located, as in the parsed document.
pub fn spans(text: &str, pointers: &[&str]) -> Vec<Option<Range<usize>>> {
    let mut tree = PointerTree::default();
    let nodes: Vec<usize> = pointers.iter().map(|pointer| tree.insert(pointer)).collect();
    let mut found = vec![None; tree.children.len()];
    walk(text, Keys::BelowNodes, &mut |step| match step {
        Step::Root => Some(ROOT),
        Step::Key { parent, key, .. } => tree.child(parent?, key),
        Step::Element { parent, index } => tree.child(parent?, decimal(&mut [0; 20], index)),
        Step::Value { node, span } => {
            if let Some(node) = node {
                // Overwrites the value of an earlier duplicate key.
                found[node] = Some(span);
            }
            None
        }
    });
    nodes.into_iter().map(|node| found[node].clone()).collect()
}

/// The requested pointers as a tree of segments. A node is an index into `children`.
#[derive(Debug)]
struct PointerTree {
    children: Vec<HashMap<String, usize>>,
}

impl Default for PointerTree {
    fn default() -> Self {
        Self { children: vec![HashMap::new()] }
    }
}

impl PointerTree {
    fn insert(&mut self, pointer: &str) -> usize {
        let mut node = ROOT;
        for segment in pointer.split('/').skip(1) {
            let next = self.children.len();
            // In this order (RFC 6901, section 4): `~01` means `~1` and not `/`.
            let key = segment.replace("~1", "/").replace("~0", "~");
            node = *self.children[node].entry(key).or_insert(next);
            if node == next {
                self.children.push(HashMap::new());
            }
        }
        node
    }

    fn child(&self, node: usize, segment: &str) -> Option<usize> {
        self.children[node].get(segment).copied()
    }
}

/// Formats a number into a buffer. Avoids an allocation for each element of each array.
fn decimal(buffer: &mut [u8; 20], mut number: usize) -> &str {
    // No `usize` has more than 20 digits.
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return std::str::from_utf8(&buffer[start..]).unwrap_or_default();
        }
    }
}

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
pub(crate) const MAX_DUPLICATES: usize = 1000;

/// Maximum length of a pointer to a duplicate key, in bytes.
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
    walk(text, Keys::All, &mut |step| {
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
            Some(Segment::Index(index)) => push_segment(&mut pointer, &index.to_string()),
            Some(Segment::Key(span)) => push_segment(&mut pointer, &decode(&text[span.clone()])),
            None => push_segment(&mut pointer, &decode(&text[last.clone()])),
        }
        if pointer.len() > MAX_POINTER_BYTES {
            // Cut at a segment, so that it names an enclosing value.
            pointer.truncate(fits);
            break;
        }
    }
    pointer
}

fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    // `~` first: the tilde of `~1` must not be escaped again.
    pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
}

/// A step of a walk. The visitor returns a node for each key and element, and gets it back as the parent of its children.
enum Step<'a> {
    Root,
    Key {
        parent: Option<usize>,
        key: &'a str,
        span: Range<usize>,
    },
    Element {
        parent: Option<usize>,
        index: usize,
    },
    /// A value, after its last byte.
    Value {
        node: Option<usize>,
        span: Range<usize>,
    },
}

/// The keys and elements that a walk visits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    All,
    /// Values without a node are skipped without decoding their keys.
    BelowNodes,
}

/// An open container.
struct Frame {
    start: usize,
    node: Option<usize>,
    /// The index of the next element of an array; `None` in an object.
    index: Option<usize>,
}

/// Visits the values of a text.
fn walk(text: &str, keys: Keys, visit: &mut dyn FnMut(Step<'_>) -> Option<usize>) {
    let bytes = text.as_bytes();
    // No limit, since the stack of open containers is on the heap.
    let mut tokenizer = Tokenizer::with_max_depth(usize::MAX);
    let mut open: Vec<Frame> = Vec::new();
    let mut node = visit(Step::Root);
    let (mut at, mut start, mut is_in_scalar) = (0, 0, false);
    while let Some((token, length)) = tokenizer.read(&bytes[at..]) {
        let end = at + length;
        match token {
            Token::Begin(kind) => {
                if let Some(Frame { index: Some(index), node: parent, .. }) = open.last_mut() {
                    let is_skipped = parent.is_none() && keys == Keys::BelowNodes;
                    node = if is_skipped { None } else { visit(Step::Element { parent: *parent, index: *index }) };
                    *index += 1;
                }
                match kind {
                    Kind::Object => open.push(Frame { start: at, node, index: None }),
                    Kind::Array => open.push(Frame { start: at, node, index: Some(0) }),
                    Kind::Key | Kind::String | Kind::Scalar => start = at,
                }
                is_in_scalar = kind == Kind::Scalar;
            }
            Token::End(Kind::Key) => {
                let parent = open.last().and_then(|frame| frame.node);
                let is_skipped = parent.is_none() && keys == Keys::BelowNodes;
                let span = start..end;
                node = if is_skipped {
                    None
                } else {
                    visit(Step::Key { parent, key: &decode(&text[span.clone()]), span })
                };
            }
            Token::End(Kind::Object | Kind::Array) => {
                if let Some(frame) = open.pop() {
                    visit(Step::Value { node: frame.node, span: frame.start..end });
                }
            }
            Token::End(Kind::String | Kind::Scalar) => {
                visit(Step::Value { node, span: start..end });
                is_in_scalar = false;
            }
            Token::Gap | Token::Content => {}
        }
        at = end;
    }
    // Nothing after it ends a number at the top.
    if is_in_scalar && open.is_empty() {
        visit(Step::Value { node, span: start..at });
    }
}
