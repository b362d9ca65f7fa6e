//! Lists and maps that the expression writes out.

use super::evaluation::Evaluation;
use crate::budget::{Evaluated, Stop, failed};
use crate::node::Node;
use crate::values::{Entries, Key, Value, shortened};

impl<'j> Evaluation<'j> {
    pub(super) fn list(&mut self, elements: &'j [Node]) -> Evaluated<'j> {
        self.budget.create_list(elements.len())?;
        let mut list = Vec::with_capacity(elements.len());
        for element in elements {
            list.push(self.value(element)?);
        }
        Ok(Value::list(list))
    }

    pub(super) fn map(&mut self, entries: &'j [(Node, Node)]) -> Evaluated<'j> {
        let mut made = Entries::default();
        for (key, value) in entries {
            let (key, value) = (self.value(key)?, self.value(value)?);
            self.insert(&mut made, key, value)?;
        }
        self.budget.create_map(0)?;
        Ok(Value::map(made))
    }

    /// Adds an entry to a map that is being computed.
    pub(super) fn insert(&mut self, map: &mut Entries<'j>, key: Value<'j>, value: Value<'j>) -> Result<(), Stop> {
        self.budget.create_map(1)?;
        if let Value::String(text) = &key {
            self.budget.read(text.as_str().len())?;
        }
        let normalized = match &key {
            Value::Double(_) => None,
            key => Key::of(key),
        };
        let Some(normalized) = normalized else {
            return failed(format!("a key is a string, an integer or a boolean, not {}", key.describe()));
        };
        let name = match &normalized {
            Key::String(text) => shortened(text.as_str()),
            Key::Bool(value) => value.to_string(),
            Key::Int(value) => value.to_string(),
            Key::Uint(value) => value.to_string(),
        };
        if map.insert(key, normalized, value) { Ok(()) } else { failed(format!("duplicate key `{name}`")) }
    }
}
