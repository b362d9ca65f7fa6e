//! Lists.

use std::rc::Rc;

use serde_json::Value as Json;

use super::value::Value;

/// A list that is cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum List<'j> {
    Borrowed(&'j [Json]),
    Owned(Rc<Vec<Value<'j>>>),
}

impl<'j> List<'j> {
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Borrowed(items) => items.len(),
            List::Owned(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'j>> {
        match self {
            List::Borrowed(items) => items.get(index).map(Value::from_json),
            List::Owned(items) => items.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Value<'j>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}
