//! Fields and elements: `x.name`, `x[at]`, `x.?name`, `x[?at]` and `has(x.name)`.

use super::evaluation::Evaluation;
use crate::budget::{Evaluated, Stop, failed};
use crate::node::Node;
use crate::values::{Key, Number, Object, Value, shortened};

impl<'j> Evaluation<'j> {
    pub(super) fn field(&mut self, of: &'j Node, name: &'j str, optional: bool) -> Evaluated<'j> {
        match self.value(of)? {
            // A field of an optional value is optional.
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => {
                let found = self.get_field(&inner, name)?;
                self.optional(found)
            }
            value => {
                let found = self.get_field(&value, name)?;
                match found {
                    found if optional => self.optional(found),
                    Some(found) => Ok(found),
                    None => failed(format!("missing field `{name}`")),
                }
            }
        }
    }

    /// Returns a field of an object, which may be missing.
    fn get_field(&mut self, of: &Value<'j>, name: &str) -> Result<Option<Value<'j>>, Stop> {
        match of {
            Value::Map(map) => {
                self.budget.read(name.len())?;
                Ok(map.field(name))
            }
            other => failed(format!("cannot read field `{name}` of {}", other.describe())),
        }
    }

    fn optional(&mut self, found: Option<Value<'j>>) -> Evaluated<'j> {
        self.budget.create_list(1)?;
        Ok(found.map_or(Value::Optional(None), Value::some))
    }

    /// A value that is not an object has no fields, which is not an error.
    pub(super) fn has(&mut self, of: &'j Node, name: &'j str) -> Evaluated<'j> {
        self.budget.read(name.len())?;
        let value = self.value(of)?;
        let value = match &value {
            Value::Optional(Some(inner)) => inner,
            value => value,
        };
        Ok(Value::Bool(matches!(value, Value::Map(map) if map.field(name).is_some())))
    }

    pub(super) fn item(&mut self, of: &'j Node, at: &'j Node, optional: bool) -> Evaluated<'j> {
        let of = self.value(of)?;
        let at = self.value(at)?;
        match of {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => {
                let found = self.get_item(&inner, &at)?;
                self.optional(found.ok())
            }
            value => match self.get_item(&value, &at)? {
                found if optional => self.optional(found.ok()),
                Ok(found) => Ok(found),
                Err(message) => failed(message),
            },
        }
    }

    /// Returns an element or a value of an object. If it is missing, the inner error says so.
    fn get_item(&mut self, of: &Value<'j>, at: &Value<'j>) -> Result<Result<Value<'j>, String>, Stop> {
        match of {
            Value::List(list) => {
                let Some(index) = at.number().and_then(Number::to_whole) else {
                    return failed(format!("{} cannot be an index of a list", describe_index(at)));
                };
                let found = usize::try_from(index).ok().and_then(|index| list.get(index));
                Ok(found.ok_or_else(|| format!("index {index} is out of range for a list of {}", list.len())))
            }
            Value::Map(map) => self.get_key(map, at),
            other => failed(format!("{} cannot be an index of {}", at.describe(), other.describe())),
        }
    }

    fn get_key(&mut self, map: &Object<'j>, at: &Value<'j>) -> Result<Result<Value<'j>, String>, Stop> {
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
        Ok(found.ok_or_else(|| format!("missing field `{name}`")))
    }
}

fn describe_index(at: &Value<'_>) -> &'static str {
    if at.number().is_some() { "a number with a fraction" } else { at.describe() }
}
