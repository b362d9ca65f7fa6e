//! Evaluation: a tree and JSON values in, true or false out, after a number of steps that is known beforehand.
//!
//! Steps stand for work, not for time: one for each part that is looked at, and more where a part goes over a long text or
//! list. What is made on the way is paid for too, so memory is bounded by the same number.

mod arithmetic;
mod functions;
mod macros;

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use arithmetic::arithmetic;

use crate::node::{Node, Operator};
use crate::value::{Object, Text, Value, compare_numbers};

/// Steps that one evaluation may take; a few tenths of a second at most.
pub const STEPS: u64 = 1_000_000;

/// Bytes of a text that are read or written in one step.
const BYTES_A_STEP: usize = 32;

/// How deep two values may be nested that are held against each other; JSON from outside is never deeper.
const NESTED_UP_TO: usize = 160;

/// What an expression says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It says neither: a field is not there, types do not fit, or the value is none of the two. In words.
    Failed(String),
    /// It would take more than [`STEPS`].
    TooLong,
}

/// Why an evaluation goes no further.
enum Stop {
    Failed(String),
    TooLong,
}

type Evaluated<'j> = Result<Value<'j>, Stop>;

pub(crate) fn evaluate(root: &Node, variables: &[&Json]) -> Outcome {
    let mut evaluation = Evaluation { variables, locals: Vec::new(), steps: STEPS };
    match evaluation.value(root) {
        Ok(Value::Bool(true)) => Outcome::True,
        Ok(Value::Bool(false)) => Outcome::False,
        Ok(other) => Outcome::Failed(format!("it gives {}, and not true or false", other.kind())),
        Err(Stop::Failed(message)) => Outcome::Failed(message),
        Err(Stop::TooLong) => Outcome::TooLong,
    }
}

struct Evaluation<'j, 'v> {
    variables: &'v [&'j Json],
    locals: Vec<Value<'j>>,
    steps: u64,
}

fn failed<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(message.into()))
}

impl<'j> Evaluation<'j, '_> {
    fn pay(&mut self, steps: u64) -> Result<(), Stop> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Stop::TooLong),
        }
    }

    fn pay_for_bytes(&mut self, bytes: usize, a_step: usize) -> Result<(), Stop> {
        self.pay((bytes / a_step) as u64)
    }

    fn value(&mut self, node: &Node) -> Evaluated<'j> {
        self.pay(1)?;
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::Double(value) => Value::Double(*value),
            Node::Text(text) => {
                self.pay_for_bytes(text.len(), BYTES_A_STEP)?;
                Value::made(text.as_str())
            }
            Node::List(elements) => {
                let elements: Result<Vec<_>, _> = elements.iter().map(|element| self.value(element)).collect();
                Value::list(elements?)
            }
            Node::Map(entries) => self.map(entries)?,
            Node::Variable(index) => self.variables.get(*index).map_or(Value::Null, |json| Value::of(json)),
            Node::Local(index) => self.locals.get(*index).cloned().unwrap_or(Value::Null),
            Node::Field { of, name } => match self.value(of)? {
                Value::Map(map) => match self.get(&map, name)? {
                    Some(value) => value,
                    None => return failed(format!("there is no field `{name}`")),
                },
                other => return failed(format!("there is no field `{name}` in {}", other.kind())),
            },
            Node::Has { of, name } => Value::Bool(match self.value(of)? {
                Value::Map(map) => self.get(&map, name)?.is_some(),
                _ => false,
            }),
            Node::Item { of, at } => self.item(of, at)?,
            Node::And(left, right) => self.both(left, right, false)?,
            Node::Or(left, right) => self.both(left, right, true)?,
            Node::Not(operand) => Value::Bool(!self.truth(operand, "`!`")?),
            Node::Negate(operand) => match self.value(operand)? {
                Value::Int(value) => match value.checked_neg() {
                    Some(value) => Value::Int(value),
                    None => return failed("a number is too large to be negated"),
                },
                Value::Double(value) => Value::Double(-value),
                other => return failed(format!("`-` takes a number, and not {}", other.kind())),
            },
            Node::If { condition, then, otherwise } => {
                if self.truth(condition, "`?`")? {
                    self.value(then)?
                } else {
                    self.value(otherwise)?
                }
            }
            Node::Binary { operator, left, right } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(*operator, &left, &right)?
            }
            Node::Call { function, arguments } => self.call(*function, arguments)?,
            Node::Matches { text, pattern } => self.matches(text, pattern)?,
            Node::Each { what, range, body } => self.each(*what, range, body)?,
            Node::MapWhere { range, condition, body } => self.map_where(range, condition, body)?,
        })
    }

    /// A field of an object; one that the expression made is searched key by key.
    fn get(&mut self, map: &Object<'j>, name: &str) -> Result<Option<Value<'j>>, Stop> {
        self.pay(if matches!(map, Object::Made(_)) { map.len() as u64 } else { 0 })?;
        Ok(map.get(name))
    }

    fn truth(&mut self, node: &Node, what: &str) -> Result<bool, Stop> {
        match self.value(node)? {
            Value::Bool(value) => Ok(value),
            other => failed(format!("{what} takes true or false, and not {}", other.kind())),
        }
    }

    /// `&&`, decided by `false`, and `||`, decided by `true`: one operand that decides is enough, whatever the other is.
    fn both(&mut self, left: &Node, right: &Node, decides: bool) -> Evaluated<'j> {
        let what = if decides { "`||`" } else { "`&&`" };
        let first = match self.truth(left, what) {
            Ok(value) if value == decides => return Ok(Value::Bool(decides)),
            Err(Stop::TooLong) => return Err(Stop::TooLong),
            other => other,
        };
        let second = self.truth(right, what)?;
        if second == decides { Ok(Value::Bool(decides)) } else { first.map(Value::Bool) }
    }

    fn map(&mut self, entries: &[(Node, Node)]) -> Evaluated<'j> {
        let mut made: Vec<(Text<'j>, Value<'j>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = match self.value(key)? {
                Value::Text(key) => key,
                other => return failed(format!("the keys of an object are texts, and not {}", other.kind())),
            };
            self.pay(made.len() as u64)?;
            if made.iter().any(|(other, _)| other.as_str() == key.as_str()) {
                return failed(format!("the key `{}` is there twice", key.as_str()));
            }
            made.push((key, self.value(value)?));
        }
        Ok(Value::Map(Object::Made(Rc::new(made))))
    }

    fn item(&mut self, of: &Node, at: &Node) -> Evaluated<'j> {
        let (of, at) = (self.value(of)?, self.value(at)?);
        match (&of, &at) {
            (Value::List(list), Value::Int(index)) => {
                match usize::try_from(*index).ok().and_then(|index| list.get(index)) {
                    Some(value) => Ok(value),
                    None => failed(format!("there is no element {index} in a list of {}", list.len())),
                }
            }
            (Value::Map(map), Value::Text(name)) => match self.get(map, name.as_str())? {
                Some(value) => Ok(value),
                None => failed(format!("there is no field `{}`", short(name.as_str()))),
            },
            _ => failed(format!("{} cannot be looked up in {}", at.kind(), of.kind())),
        }
    }

    fn binary(&mut self, operator: Operator, left: &Value<'j>, right: &Value<'j>) -> Evaluated<'j> {
        match operator {
            Operator::Equal => self.equal(left, right, 0).map(Value::Bool),
            Operator::NotEqual => self.equal(left, right, 0).map(|equal| Value::Bool(!equal)),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                let order = self.order(operator, left, right)?;
                Ok(Value::Bool(order.is_some_and(|order| match operator {
                    Operator::Less => order.is_lt(),
                    Operator::LessOrEqual => order.is_le(),
                    Operator::Greater => order.is_gt(),
                    _ => order.is_ge(),
                })))
            }
            Operator::In => self.is_in(left, right),
            Operator::Add => match (left, right) {
                (Value::Text(left), Value::Text(right)) => {
                    let (left, right) = (left.as_str(), right.as_str());
                    self.pay_for_bytes(left.len() + right.len(), BYTES_A_STEP)?;
                    Ok(Value::made([left, right].concat()))
                }
                (Value::List(left), Value::List(right)) => {
                    self.pay((left.len() + right.len()) as u64)?;
                    let both = (0..left.len()).filter_map(|index| left.get(index));
                    Ok(Value::list(both.chain((0..right.len()).filter_map(|index| right.get(index))).collect()))
                }
                _ => arithmetic(operator, left, right),
            },
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo => {
                arithmetic(operator, left, right)
            }
        }
    }

    fn order(&mut self, operator: Operator, left: &Value<'j>, right: &Value<'j>) -> Result<Option<Ordering>, Stop> {
        match (left, right) {
            (Value::Int(_) | Value::Double(_), Value::Int(_) | Value::Double(_)) => Ok(compare_numbers(left, right)),
            (Value::Text(left), Value::Text(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                self.pay_for_bytes(left.len().min(right.len()), BYTES_A_STEP)?;
                Ok(Some(left.cmp(right)))
            }
            (Value::Bool(left), Value::Bool(right)) => Ok(Some(left.cmp(right))),
            _ => failed(unfit(operator, left, right)),
        }
    }

    fn equal(&mut self, left: &Value<'j>, right: &Value<'j>, depth: usize) -> Result<bool, Stop> {
        if depth > NESTED_UP_TO {
            return Err(Stop::TooLong);
        }
        self.pay(1)?;
        match (left, right) {
            (Value::Null, Value::Null) => Ok(true),
            (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
            (Value::Int(_) | Value::Double(_), Value::Int(_) | Value::Double(_)) => {
                Ok(compare_numbers(left, right) == Some(Ordering::Equal))
            }
            (Value::Text(left), Value::Text(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                if left.len() != right.len() {
                    return Ok(false);
                }
                self.pay_for_bytes(left.len(), BYTES_A_STEP)?;
                Ok(left == right)
            }
            (Value::List(left), Value::List(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in (0..left.len()).filter_map(|index| Some((left.get(index)?, right.get(index)?))) {
                    if !self.equal(&left, &right, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Map(left), Value::Map(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                self.pay(left.len() as u64)?;
                for key in left.keys() {
                    let (Some(left), Some(right)) = (self.get(left, key.as_str())?, self.get(right, key.as_str())?)
                    else {
                        return Ok(false);
                    };
                    if !self.equal(&left, &right, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn is_in(&mut self, wanted: &Value<'j>, range: &Value<'j>) -> Evaluated<'j> {
        match range {
            Value::List(list) => {
                for index in 0..list.len() {
                    let Some(element) = list.get(index) else { break };
                    if self.equal(wanted, &element, 0)? {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            }
            Value::Map(map) => {
                let Value::Text(key) = wanted else { return Ok(Value::Bool(false)) };
                Ok(Value::Bool(self.get(map, key.as_str())?.is_some()))
            }
            _ => failed(unfit(Operator::In, wanted, range)),
        }
    }
}

fn unfit(operator: Operator, left: &Value<'_>, right: &Value<'_>) -> String {
    format!("`{}` does not take {} and {}", operator.as_str(), left.kind(), right.kind())
}

/// A text in a message.
fn short(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
