//! A walk over the tokens of a JSON text, without recursion and without building values.

use std::borrow::Cow;
use std::ops::Range;

/// A step of a walk. The visitor returns a node for each key and element, and gets it back as the parent of its children.
pub(super) enum Step<'a> {
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

/// An open container.
struct Frame {
    start: usize,
    node: Option<usize>,
    /// The index of the next element of an array; `None` in an object.
    index: Option<usize>,
}

pub(super) struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// Visits keys and elements below values without a node too. Off, such values are skipped without decoding their keys.
    pub(super) visits_all_keys: bool,
}

impl<'a> Walk<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, visits_all_keys: false }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips space and separators. The text is valid JSON, so separators carry no information.
    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')) {
            self.at += 1;
        }
    }

    /// Skips a string and returns its byte range with the quotes.
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
        // An escape at the end of an invalid text steps beyond it.
        self.at = self.at.min(self.text.len());
        start..self.at
    }

    /// Skips a number, `true`, `false` or `null`.
    fn scalar(&mut self) {
        self.at += 1;
        while !matches!(self.byte(), None | Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b']' | b'}')) {
            self.at += 1;
        }
    }

    /// Visits the whole text. The stack of open containers is on the heap.
    pub(super) fn run(mut self, visit: &mut dyn FnMut(Step<'_>) -> Option<usize>) {
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
                let is_skipped = parent.is_none() && !self.visits_all_keys;
                if let Some(index) = &mut frame.index {
                    node = if is_skipped { None } else { visit(Step::Element { parent, index: *index }) };
                    *index += 1;
                } else if byte == b'"' {
                    let span = self.string();
                    let key = if is_skipped { None } else { Some(decode(&self.text[span.clone()])) };
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

/// Decodes the escapes of a quoted key.
pub(crate) fn decode(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.trim_matches('"');
    if quoted.contains('\\') {
        return serde_json::from_str::<String>(quoted).map_or(inner.into(), Into::into);
    }
    inner.into()
}
