//! JSON Pointer → where in the text. One pass over the bytes for any number of pointers, without recursion, so that depth
//! costs no stack; used only where there is something to show. The text has been parsed before: here it is not judged.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use counterproof_artifact::pointer;

/// A place in a text, counted from 1; columns are counted in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// The byte ranges of the values that the pointers name, in the pointers' order; `None` where there is no such value.
///
/// Where an object has a key twice, its last value is meant, as in the parsed document.
pub fn spans(text: &str, pointers: &[&str]) -> Vec<Option<Range<usize>>> {
    let mut wanted = Wanted::default();
    let nodes: Vec<usize> = pointers.iter().map(|pointer| wanted.insert(pointer)).collect();
    let mut found = vec![None; wanted.children.len()];
    Walk::new(text).run(&mut |step| match step {
        Step::Root => Some(ROOT),
        Step::Key { parent, key, .. } => wanted.child(parent?, key),
        Step::Element { parent, index } => wanted.child(parent?, decimal(&mut [0; 20], index)),
        Step::Value { node, span } => {
            if let Some(node) = node {
                found[node] = Some(span);
            }
            None
        }
    });
    nodes.into_iter().map(|node| found[node].clone()).collect()
}

/// A key that an object has more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The JSON Pointer of the key's value.
    pub pointer: String,
    /// The bytes of the later key, quotes included.
    pub span: Range<usize>,
}

/// The keys that stand in their objects a second time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DuplicateKeys {
    /// The first of them, in the order of the text.
    pub listed: Vec<DuplicateKey>,
    /// How many more there are.
    pub omitted: usize,
}

/// Duplicate keys that are listed; nobody reads more of them.
const MAX_DUPLICATES: usize = 1000;

/// Longest pointer of a duplicate key in bytes; a longer one names the object, or the nearest value around it that fits.
const MAX_POINTER_BYTES: usize = 512;

/// How a container is named by the one around it.
enum Segment {
    Key(Range<usize>),
    Index(usize),
}

/// Every key that stands in its object a second time. What is kept grows with the depth and with the keys of the open
/// objects, not with the text times its depth.
pub fn duplicate_keys(text: &str) -> DuplicateKeys {
    // One entry for each open container: its segment, and the keys that it has so far. The root has no segment.
    let mut open: Vec<(Option<Segment>, HashSet<Cow<'_, str>>)> = Vec::new();
    let mut duplicates = DuplicateKeys::default();
    let mut walk = Walk::new(text);
    walk.nodes_are_depths = true;
    walk.run(&mut |step| {
        let segment = match step {
            Step::Root => None,
            Step::Key { parent, span, .. } => {
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

/// The positions of byte offsets, in the offsets' order. Each line is counted once, however many offsets it holds.
pub fn positions(text: &[u8], offsets: &[usize]) -> Vec<Position> {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
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

const ROOT: usize = 0;

/// The wanted pointers as a tree of their segments.
#[derive(Debug)]
struct Wanted {
    children: Vec<HashMap<String, usize>>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { children: vec![HashMap::new()] }
    }
}

impl Wanted {
    fn insert(&mut self, pointer: &str) -> usize {
        let mut node = ROOT;
        for segment in pointer.split('/').skip(1) {
            let next = self.children.len();
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

/// A count in decimal, without an allocation for each element of each array.
fn decimal(buffer: &mut [u8; 20], mut number: usize) -> &str {
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

/// What a walk comes by. The visitor gives each key and element a node of its choice, and meets it again as a parent.
enum Step<'a> {
    /// The walk begins.
    Root,
    /// A key of an object.
    Key { parent: Option<usize>, key: &'a str, span: Range<usize> },
    /// An element of an array.
    Element { parent: Option<usize>, index: usize },
    /// The whole of a value.
    Value { node: Option<usize>, span: Range<usize> },
}

/// A container that is still open.
struct Frame {
    start: usize,
    node: Option<usize>,
    /// The next element's index in an array, `None` in an object.
    index: Option<usize>,
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// The visitor wants every key, also below values that it gave no node.
    nodes_are_depths: bool,
}

impl<'a> Walk<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, at: 0, nodes_are_depths: false }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')) {
            self.at += 1;
        }
    }

    /// Passes a string and gives its bytes, quotes included.
    fn string(&mut self) -> Range<usize> {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.byte() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        self.at = self.at.min(self.text.len());
        start..self.at
    }

    /// Passes a number or a word.
    fn scalar(&mut self) {
        self.at += 1;
        while !matches!(self.byte(), None | Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b']' | b'}')) {
            self.at += 1;
        }
    }

    fn run(mut self, visit: &mut dyn FnMut(Step<'_>) -> Option<usize>) {
        let mut open: Vec<Frame> = Vec::new();
        let mut node = visit(Step::Root);
        loop {
            self.skip_space();
            let Some(byte) = self.byte() else { return };
            if matches!(byte, b']' | b'}') {
                let Some(frame) = open.pop() else { return };
                self.at += 1;
                visit(Step::Value { node: frame.node, span: frame.start..self.at });
                continue;
            }
            if let Some(frame) = open.last_mut() {
                let parent = frame.node;
                let blind = parent.is_none() && !self.nodes_are_depths;
                if let Some(index) = &mut frame.index {
                    node = if blind { None } else { visit(Step::Element { parent, index: *index }) };
                    *index += 1;
                } else if byte == b'"' {
                    let span = self.string();
                    let key = if blind { None } else { Some(decode(&self.text[span.clone()])) };
                    node = key.and_then(|key| visit(Step::Key { parent, key: &key, span }));
                    self.skip_space();
                }
            }
            let start = self.at;
            match self.byte() {
                None => return,
                Some(b'{') => open.push(Frame { start, node, index: None }),
                Some(b'[') => open.push(Frame { start, node, index: Some(0) }),
                Some(b'"') => {
                    let span = self.string();
                    visit(Step::Value { node, span });
                    continue;
                }
                Some(_) => {
                    self.scalar();
                    visit(Step::Value { node, span: start..self.at });
                    continue;
                }
            }
            self.at += 1;
        }
    }
}

/// A key as its document means it.
pub(crate) fn decode(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.trim_matches('"');
    if quoted.contains('\\') {
        return serde_json::from_str::<String>(quoted).map_or(inner.into(), Into::into);
    }
    inner.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn texts<'a>(text: &'a str, pointers: &[&str]) -> Vec<Option<&'a str>> {
        spans(text, pointers).into_iter().map(|span| span.map(|span| &text[span])).collect()
    }

    #[test]
    fn pointers_lead_to_their_values() {
        let text = r#" {"a": [1, {"b/c": "x\"y"}, [ ]], "d~e": {"\u0066": -1.5e3}, "a2": null} "#;
        let pointers = ["", "/a", "/a/0", "/a/1/b~1c", "/a/2", "/d~0e/f", "/a2", "/a/3", "/none", "/a2/x"];
        let expected = [
            Some(text.trim()),
            Some(r#"[1, {"b/c": "x\"y"}, [ ]]"#),
            Some("1"),
            Some(r#""x\"y""#),
            Some("[ ]"),
            Some("-1.5e3"),
            Some("null"),
            None,
            None,
            None,
        ];
        assert_eq!(texts(text, &pointers), expected);
    }

    #[test]
    fn the_last_of_two_equal_keys_is_meant() {
        assert_eq!(texts(r#"{"a": 1, "a": 2}"#, &["/a"]), [Some("2")]);
    }

    #[test]
    fn keys_that_stand_twice_are_found_at_any_depth_and_in_any_spelling() {
        let text = r#"{"a": 1, "b": [{"x": {}, "y": 0, "x": 2}, {"x": 1}], "\u0061": {"a": 3}}"#;
        let found: Vec<_> = duplicate_keys(text).listed.into_iter().map(|key| (key.pointer, &text[key.span])).collect();
        assert_eq!(found, [("/b/0/x".to_owned(), "\"x\""), ("/a".to_owned(), "\"\\u0061\"")]);
    }

    #[test]
    fn many_duplicates_below_a_long_key_cost_no_more_than_the_text() {
        let text = format!("{{\"{}\": {{{}\"a\": 0}}}}", "k".repeat(100_000), "\"a\": 0, ".repeat(20_000));
        let found = duplicate_keys(&text);
        assert_eq!((found.listed.len(), found.omitted), (MAX_DUPLICATES, 20_000 - MAX_DUPLICATES));
        assert!(found.listed.iter().all(|key| key.pointer.is_empty() && &text[key.span.clone()] == "\"a\""));
    }

    #[test]
    fn columns_count_characters_and_positions_keep_the_order_of_the_offsets() {
        let text = "aé\n退款x\n";
        let end = text.len();
        let place = |line, column| Position { line, column };
        assert_eq!(
            positions(text.as_bytes(), &[end, 0, 3, text.find('x').unwrap(), 1]),
            [place(3, 1), place(1, 1), place(1, 3), place(2, 3), place(1, 2)]
        );
    }

    #[test]
    fn depth_costs_no_stack() {
        let depth = 1_000_000;
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(spans(&text, &["/0/0"]), [Some(2..2 * depth - 2)]);
    }

    /// Every pointer of a document with the value it names.
    fn pointers(value: &Value) -> Vec<(String, &Value)> {
        let mut all = vec![(String::new(), value)];
        let mut next = 0;
        while let Some((path, value)) = all.get(next).cloned() {
            match value {
                Value::Array(items) => all.extend(items.iter().enumerate().map(|(i, v)| (format!("{path}/{i}"), v))),
                Value::Object(map) => all.extend(map.iter().map(|(k, v)| (pointer::child(&path, k), v))),
                _ => {}
            }
            next += 1;
        }
        all
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), ".{0,6}".prop_map(Value::from)];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((".{0,4}", inner), 0..5).prop_map(|pairs| pairs.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_span_holds_its_value(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let all = pointers(&value);
            let names: Vec<&str> = all.iter().map(|(pointer, _)| pointer.as_str()).collect();
            for (span, (pointer, value)) in spans(&text, &names).into_iter().zip(&all) {
                let span = span.unwrap_or_else(|| panic!("{pointer} in {text}"));
                prop_assert_eq!(&serde_json::from_str::<Value>(&text[span]).unwrap(), *value);
            }
            prop_assert_eq!(duplicate_keys(&text), DuplicateKeys::default());
        }

        #[test]
        fn any_text_is_passed_without_panic(text in ".{0,60}", json in "[\\[\\]{}\",:\\\\a1 é]{0,60}") {
            for text in [&text, &json] {
                let _ = spans(text, &["", "/0", "/a"]);
                let _ = duplicate_keys(text);
            }
        }
    }
}
