//! The byte ranges of the values that JSON Pointers name.

use std::collections::HashMap;
use std::ops::Range;

use super::walk::{Step, Walk};

const ROOT: usize = 0;

/// Returns the byte ranges of the values that the pointers name, in the order of the pointers; `None` where there is no value.
///
/// Of a duplicate key, the last value is located, as in the parsed document.
pub fn spans(text: &str, pointers: &[&str]) -> Vec<Option<Range<usize>>> {
    let mut tree = PointerTree::default();
    let nodes: Vec<usize> = pointers.iter().map(|pointer| tree.insert(pointer)).collect();
    let mut found = vec![None; tree.children.len()];
    Walk::new(text).run(&mut |step| match step {
        Step::Root => Some(ROOT),
        Step::Key { parent, key, .. } => tree.child(parent?, key),
        Step::Element { parent, index } => tree.child(parent?, decimal(&mut [0; 20], index)),
        Step::Value { node, span } => {
            if let Some(node) = node {
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
