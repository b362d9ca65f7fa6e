//! Strings, lists and objects, which are borrowed from the variables or computed.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::number::Key;
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

/// An object that is cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Object<'j> {
    Borrowed(&'j Map<String, Json>),
    Owned(Rc<Entries<'j>>),
}

/// The entries of a computed object, in the order of their insertion.
#[derive(Debug, Default)]
pub(crate) struct Entries<'j> {
    entries: Vec<(Value<'j>, Value<'j>)>,
    index: HashMap<Key<'j>, usize>,
}

impl<'j> Entries<'j> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an entry. Returns false, and adds nothing, if the key exists.
    pub(crate) fn insert(&mut self, key: Value<'j>, normalized: Key<'j>, value: Value<'j>) -> bool {
        let position = self.entries.len();
        if self.index.contains_key(&normalized) {
            return false;
        }
        self.index.insert(normalized, position);
        self.entries.push((key, value));
        true
    }

    fn get(&self, key: &Key<'_>) -> Option<Value<'j>> {
        let position = *self.index.get(key)?;
        self.entries.get(position).map(|(_, value)| value.clone())
    }
}

impl<'j> Object<'j> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Object::Borrowed(map) => map.len(),
            Object::Owned(entries) => entries.len(),
        }
    }

    pub(crate) fn get(&self, key: &Key<'_>) -> Option<Value<'j>> {
        match (self, key) {
            (Object::Borrowed(map), Key::String(name)) => map.get(name.as_str()).map(Value::from_json),
            // All keys of a JSON object are strings.
            (Object::Borrowed(_), _) => None,
            (Object::Owned(entries), key) => entries.get(key),
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<Value<'j>> {
        match self {
            Object::Borrowed(map) => map.get(name).map(Value::from_json),
            Object::Owned(entries) => entries.get(&Key::String(Str::Borrowed(name))),
        }
    }

    /// Returns the entries in document order.
    pub(crate) fn iter(&self) -> ObjectIter<'j> {
        match self {
            Object::Borrowed(map) => ObjectIter::Borrowed(map.iter()),
            Object::Owned(entries) => ObjectIter::Owned(Rc::clone(entries), 0),
        }
    }
}

/// The entries of an object.
pub(crate) enum ObjectIter<'j> {
    Borrowed(serde_json::map::Iter<'j>),
    Owned(Rc<Entries<'j>>, usize),
}

impl<'j> Iterator for ObjectIter<'j> {
    type Item = (Value<'j>, Value<'j>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            ObjectIter::Borrowed(entries) => {
                let (key, value) = entries.next()?;
                Some((Value::String(Str::Borrowed(key)), Value::from_json(value)))
            }
            ObjectIter::Owned(entries, position) => {
                let entry = entries.entries.get(*position)?.clone();
                *position += 1;
                Some(entry)
            }
        }
    }
}

/// A string that is cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Str<'j> {
    Borrowed(&'j str),
    Owned(Rc<str>),
}

impl Str<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Str::Borrowed(text) => text,
            Str::Owned(text) => text,
        }
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Str<'_> {}

impl Hash for Str<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// Truncates a string for a message.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
