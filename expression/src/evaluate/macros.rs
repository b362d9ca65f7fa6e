//! Macros, which iterate over the elements of a list or the keys of a map.

use super::evaluation::{Evaluated, Evaluation, Stop, failed};
use crate::node::{Macro, Node};
use crate::value::Value;

impl<'j> Evaluation<'j, '_> {
    /// Returns the elements of a list, or the keys of a map.
    fn range(&mut self, node: &Node) -> Result<Vec<Value<'j>>, Stop> {
        match self.value(node)? {
            Value::List(list) => {
                self.charge(list.len() as u64)?;
                Ok((0..list.len()).filter_map(|index| list.get(index)).collect())
            }
            Value::Map(map) => {
                self.charge(map.len() as u64)?;
                Ok(map.keys().into_iter().map(Value::String).collect())
            }
            other => failed(format!("cannot iterate over {}", other.describe())),
        }
    }

    fn evaluate_with(&mut self, element: Value<'j>, body: &Node) -> Evaluated<'j> {
        self.locals.push(element);
        let value = self.value(body);
        self.locals.pop();
        value
    }

    fn condition_with(&mut self, element: Value<'j>, body: &Node, kind: Macro) -> Result<bool, Stop> {
        match self.evaluate_with(element, body)? {
            Value::Bool(value) => Ok(value),
            other => failed(format!("`{}` takes a boolean, not {}", kind.as_str(), other.describe())),
        }
    }

    pub(super) fn macro_call(&mut self, kind: Macro, range: &Node, body: &Node) -> Evaluated<'j> {
        let range = self.range(range)?;
        match kind {
            Macro::All | Macro::Exists => {
                // As with `&&` and `||`, one deciding element is enough, even if others fail.
                let decides = kind == Macro::Exists;
                let mut failure = None;
                for element in range {
                    match self.condition_with(element, body, kind) {
                        Ok(value) if value == decides => return Ok(Value::Bool(decides)),
                        Ok(_) => {}
                        Err(Stop::TooLong) => return Err(Stop::TooLong),
                        Err(stop) => failure = failure.or(Some(stop)),
                    }
                }
                failure.map_or(Ok(Value::Bool(!decides)), Err)
            }
            Macro::ExistsOne => {
                let mut count = 0;
                for element in range {
                    count += usize::from(self.condition_with(element, body, kind)?);
                }
                Ok(Value::Bool(count == 1))
            }
            Macro::Filter => {
                let mut selected = Vec::new();
                for element in range {
                    if self.condition_with(element.clone(), body, kind)? {
                        selected.push(element);
                    }
                }
                Ok(Value::list(selected))
            }
            Macro::Map => {
                let mapped: Result<Vec<_>, _> =
                    range.into_iter().map(|element| self.evaluate_with(element, body)).collect();
                Ok(Value::list(mapped?))
            }
        }
    }

    pub(super) fn map_where(&mut self, range: &Node, condition: &Node, body: &Node) -> Evaluated<'j> {
        let mut mapped = Vec::new();
        for element in self.range(range)? {
            if self.condition_with(element.clone(), condition, Macro::Map)? {
                mapped.push(self.evaluate_with(element, body)?);
            }
        }
        Ok(Value::list(mapped))
    }
}
