//! The macros, which go over the elements of a list or the keys of a map.

use super::{Evaluated, Evaluation, Stop, failed};
use crate::node::{Each, Node};
use crate::value::Value;

impl<'j> Evaluation<'j, '_> {
    /// The elements of a list, or the keys of a map.
    fn range(&mut self, node: &Node) -> Result<Vec<Value<'j>>, Stop> {
        match self.value(node)? {
            Value::List(list) => {
                self.pay(list.len() as u64)?;
                Ok((0..list.len()).filter_map(|index| list.get(index)).collect())
            }
            Value::Map(map) => {
                self.pay(map.len() as u64)?;
                Ok(map.keys().into_iter().map(Value::Text).collect())
            }
            other => failed(format!("there is nothing to go over in {}", other.kind())),
        }
    }

    fn within(&mut self, element: Value<'j>, body: &Node) -> Evaluated<'j> {
        self.locals.push(element);
        let value = self.value(body);
        self.locals.pop();
        value
    }

    fn holds_within(&mut self, element: Value<'j>, body: &Node, what: Each) -> Result<bool, Stop> {
        match self.within(element, body)? {
            Value::Bool(value) => Ok(value),
            other => failed(format!("`{}` takes true or false, and not {}", what.as_str(), other.kind())),
        }
    }

    pub(super) fn each(&mut self, what: Each, range: &Node, body: &Node) -> Evaluated<'j> {
        let range = self.range(range)?;
        match what {
            Each::All | Each::Exists => {
                // As with `&&` and `||`, one element that decides is enough, whatever the others are.
                let decides = what == Each::Exists;
                let mut problem = None;
                for element in range {
                    match self.holds_within(element, body, what) {
                        Ok(value) if value == decides => return Ok(Value::Bool(decides)),
                        Ok(_) => {}
                        Err(Stop::TooLong) => return Err(Stop::TooLong),
                        Err(stop) => problem = problem.or(Some(stop)),
                    }
                }
                problem.map_or(Ok(Value::Bool(!decides)), Err)
            }
            Each::ExistsOne => {
                let mut count = 0;
                for element in range {
                    count += usize::from(self.holds_within(element, body, what)?);
                }
                Ok(Value::Bool(count == 1))
            }
            Each::Filter => {
                let mut kept = Vec::new();
                for element in range {
                    if self.holds_within(element.clone(), body, what)? {
                        kept.push(element);
                    }
                }
                Ok(Value::list(kept))
            }
            Each::Map => {
                let made: Result<Vec<_>, _> = range.into_iter().map(|element| self.within(element, body)).collect();
                Ok(Value::list(made?))
            }
        }
    }

    pub(super) fn map_where(&mut self, range: &Node, condition: &Node, body: &Node) -> Evaluated<'j> {
        let mut made = Vec::new();
        for element in self.range(range)? {
            if self.holds_within(element.clone(), condition, Each::Map)? {
                made.push(self.within(element, body)?);
            }
        }
        Ok(Value::list(made))
    }
}
