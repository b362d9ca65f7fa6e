//! Fields and elements: `x.name`, `x[at]` and `has(x.name)`.

use super::evaluation::Evaluation;
use crate::budget::{Evaluated, failed};
use crate::node::Node;
use crate::values::{Key, Number, Object, Value, shortened};

impl<'j> Evaluation<'j> {
    pub(super) fn field(&mut self, of: &'j Node, name: &'j str) -> Evaluated<'j> {
        match self.value(of)? {
            Value::Map(map) => {
                self.budget.read(name.len())?;
                map.field(name).map_or_else(|| failed(format!("missing field `{name}`")), Ok)
            }
            other => failed(format!("cannot read field `{name}` of {}", other.describe())),
        }
    }

    /// A value that is not an object has no fields, which is not an error.
    pub(super) fn has(&mut self, of: &'j Node, name: &'j str) -> Evaluated<'j> {
        self.budget.read(name.len())?;
        let value = self.value(of)?;
        Ok(Value::Bool(matches!(value, Value::Map(map) if map.field(name).is_some())))
    }

    pub(super) fn item(&mut self, of: &'j Node, at: &'j Node) -> Evaluated<'j> {
        let of = self.value(of)?;
        let at = self.value(at)?;
        match of {
            Value::List(list) => {
                let Some(index) = at.number().and_then(Number::to_whole) else {
                    return failed(format!("{} cannot be an index of a list", describe_index(&at)));
                };
                let found = usize::try_from(index).ok().and_then(|index| list.get(index));
                found.map_or_else(|| failed(format!("index {index} is out of range for a list of {}", list.len())), Ok)
            }
            Value::Map(map) => self.get_key(&map, &at),
            other => failed(format!("{} cannot be an index of {}", at.describe(), other.describe())),
        }
    }

    fn get_key(&mut self, map: &Object<'j>, at: &Value<'j>) -> Evaluated<'j> {
        let name = match at {
            Value::String(text) => {
                self.budget.read(text.as_str().len())?;
                shortened(text.as_str())
            }
            Value::Bool(value) => value.to_string(),
            other => match other.number() {
                Some(number) => number.to_double().to_string(),
                None => return failed(format!("{} cannot be an index of an object", other.describe())),
            },
        };
        let found = Key::of(at).and_then(|key| map.get(&key));
        found.map_or_else(|| failed(format!("missing field `{name}`")), Ok)
    }
}

fn describe_index(at: &Value<'_>) -> &'static str {
    if at.number().is_some() { "a number with a fraction" } else { at.describe() }
}
