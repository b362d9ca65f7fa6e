//! All parts of an answer with their place, in which `*` is any element of a list.

use counterproof_artifact::pointer;
use serde_json::Value;

/// The deepest part that is looked at.
const MAX_DEPTH: usize = 8;

/// At most this many elements of a list are looked at.
const MAX_ELEMENTS: usize = 200;

/// A part of an answer.
#[derive(Debug, Clone, Copy)]
struct Step<'v> {
    value: &'v Value,
    depth: usize,
}

/// A part of an answer, and its path.
#[derive(Debug, Clone)]
pub(super) struct Node<'v> {
    pub(super) at: String,
    pub(super) value: &'v Value,
}

/// Returns all parts, the outer ones first.
pub(super) fn nodes(answer: &Value) -> Vec<Node<'_>> {
    let mut level = vec![(String::new(), Step { value: answer, depth: 0 })];
    let mut nodes = Vec::new();
    while !level.is_empty() {
        let mut next = Vec::new();
        for (at, Step { value, depth }) in level {
            if depth < MAX_DEPTH {
                let depth = depth + 1;
                match value {
                    Value::Object(fields) => {
                        next.extend(
                            fields.iter().map(|(key, value)| (pointer::child(&at, key), Step { value, depth })),
                        );
                    }
                    Value::Array(items) => next.extend(
                        items.iter().take(MAX_ELEMENTS).map(|value| (format!("{at}/*"), Step { value, depth })),
                    ),
                    _ => {}
                }
            }
            nodes.push(Node { at, value });
        }
        level = next;
    }
    nodes
}

/// Returns the last segment of a path.
pub(super) fn key_of(at: &str) -> &str {
    at.rsplit('/').next().unwrap_or_default()
}

/// Returns a path without `*` as a CEL expression that starts at `root`.
pub(super) fn cel(root: &str, at: &str) -> String {
    at.split('/').skip(1).fold(root.to_owned(), |text, segment| {
        let key = segment.replace("~1", "/").replace("~0", "~");
        let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name { format!("{text}.{key}") } else { format!("{text}[{}]", Value::from(key)) }
    })
}
