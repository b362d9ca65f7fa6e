//! The evaluation of nodes, and the count of their steps.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use super::arithmetic::arithmetic;
use crate::node::{Node, Operator};
use crate::value::{Object, Str, Value, compare_numbers};

/// Maximum number of steps of one evaluation: at most a few tenths of a second.
pub const MAX_STEPS: u64 = 1_000_000;

/// Bytes of a string that are read or written in one step.
const BYTES_PER_STEP: usize = 32;

/// Maximum nesting of compared values. The JSON parser allows 128 levels.
const MAX_VALUE_DEPTH: usize = 160;

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The expression is true.
    True,
    /// The expression is false.
    False,
    /// The evaluation failed: a field is missing, types do not match, or the result is not a boolean. Has the message.
    Failed(String),
    /// The evaluation needs more steps than [`MAX_STEPS`].
    TooLong,
}

/// Which logical operator joins two operands.
#[derive(Debug, Clone, Copy)]
enum Junction {
    And,
    Or,
}

/// The reason why an evaluation stops early.
pub(super) enum Stop {
    Failed(String),
    TooLong,
}

pub(super) type Evaluated<'j> = Result<Value<'j>, Stop>;

pub(crate) fn evaluate(root: &Node, variables: &[&Json]) -> Outcome {
    let mut evaluation = Evaluation { variables, locals: Vec::new(), steps_left: MAX_STEPS };
    match evaluation.value(root) {
        Ok(Value::Bool(true)) => Outcome::True,
        Ok(Value::Bool(false)) => Outcome::False,
        Ok(other) => Outcome::Failed(format!("the result is {}; expected a boolean", other.describe())),
        Err(Stop::Failed(message)) => Outcome::Failed(message),
        Err(Stop::TooLong) => Outcome::TooLong,
    }
}

/// One evaluation in progress.
pub(super) struct Evaluation<'j, 'v> {
    variables: &'v [&'j Json],
    pub(super) locals: Vec<Value<'j>>,
    steps_left: u64,
}

pub(super) fn failed<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(message.into()))
}

impl<'j> Evaluation<'j, '_> {
    pub(super) fn charge(&mut self, steps: u64) -> Result<(), Stop> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => Err(Stop::TooLong),
        }
    }

    pub(super) fn charge_bytes(&mut self, bytes: usize) -> Result<(), Stop> {
        self.charge((bytes / BYTES_PER_STEP) as u64)
    }

    pub(super) fn value(&mut self, node: &Node) -> Evaluated<'j> {
        self.charge(1)?;
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::Double(value) => Value::Double(*value),
            Node::String(text) => {
                self.charge_bytes(text.len())?;
                Value::string(text.as_str())
            }
            Node::List(elements) => {
                let elements: Result<Vec<_>, _> = elements.iter().map(|element| self.value(element)).collect();
                Value::list(elements?)
            }
            Node::Map(entries) => self.map(entries)?,
            Node::Variable(index) => self.variables.get(*index).map_or(Value::Null, |json| Value::from_json(json)),
            Node::Local(index) => self.locals.get(*index).cloned().unwrap_or(Value::Null),
            Node::Field { of, name } => match self.value(of)? {
                Value::Map(map) => match self.get(&map, name)? {
                    Some(value) => value,
                    None => return failed(format!("missing field `{name}`")),
                },
                other => return failed(format!("cannot read field `{name}` of {}", other.describe())),
            },
            Node::Has { of, name } => Value::Bool(match self.value(of)? {
                Value::Map(map) => self.get(&map, name)?.is_some(),
                _ => false,
            }),
            Node::Item { of, at } => self.item(of, at)?,
            Node::And(left, right) => self.logical(left, right, Junction::And)?,
            Node::Or(left, right) => self.logical(left, right, Junction::Or)?,
            Node::Not(operand) => Value::Bool(!self.boolean(operand, "`!`")?),
            Node::Negate(operand) => match self.value(operand)? {
                Value::Int(value) => match value.checked_neg() {
                    Some(value) => Value::Int(value),
                    None => return failed("integer overflow in `-`"),
                },
                Value::Double(value) => Value::Double(-value),
                other => return failed(format!("`-` takes a number, not {}", other.describe())),
            },
            Node::If { condition, then, otherwise } => {
                if self.boolean(condition, "`?`")? {
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
            Node::Macro { kind, range, body } => self.macro_call(*kind, range, body)?,
            Node::MapWhere { range, condition, body } => self.map_where(range, condition, body)?,
        })
    }

    /// Returns a field of an object. A computed object is searched key by key, and charged for it.
    fn get(&mut self, map: &Object<'j>, name: &str) -> Result<Option<Value<'j>>, Stop> {
        self.charge(if matches!(map, Object::Owned(_)) { map.len() as u64 } else { 0 })?;
        Ok(map.get(name))
    }

    fn boolean(&mut self, node: &Node, what: &str) -> Result<bool, Stop> {
        match self.value(node)? {
            Value::Bool(value) => Ok(value),
            other => failed(format!("{what} takes a boolean, not {}", other.describe())),
        }
    }

    /// Evaluates `&&` and `||`. One deciding operand is enough, even if the other one fails, as CEL specifies.
    fn logical(&mut self, left: &Node, right: &Node, junction: Junction) -> Evaluated<'j> {
        let (what, decides) = match junction {
            Junction::And => ("`&&`", false),
            Junction::Or => ("`||`", true),
        };
        let first = match self.boolean(left, what) {
            Ok(value) if value == decides => return Ok(Value::Bool(decides)),
            // The limit on work ends the whole expression: the right operand must not rescue it.
            Err(Stop::TooLong) => return Err(Stop::TooLong),
            other => other,
        };
        let second = self.boolean(right, what)?;
        if second == decides { Ok(Value::Bool(decides)) } else { first.map(Value::Bool) }
    }

    fn map(&mut self, entries: &[(Node, Node)]) -> Evaluated<'j> {
        let mut made: Vec<(Str<'j>, Value<'j>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = match self.value(key)? {
                Value::String(key) => key,
                other => return failed(format!("the keys of a map are strings, not {}", other.describe())),
            };
            self.charge(made.len() as u64)?;
            if made.iter().any(|(other, _)| other.as_str() == key.as_str()) {
                return failed(format!("duplicate key `{}`", key.as_str()));
            }
            made.push((key, self.value(value)?));
        }
        Ok(Value::Map(Object::Owned(Rc::new(made))))
    }

    fn item(&mut self, of: &Node, at: &Node) -> Evaluated<'j> {
        let (of, at) = (self.value(of)?, self.value(at)?);
        match (&of, &at) {
            (Value::List(list), Value::Int(index)) => {
                match usize::try_from(*index).ok().and_then(|index| list.get(index)) {
                    Some(value) => Ok(value),
                    None => failed(format!("index {index} is out of range for a list of {}", list.len())),
                }
            }
            (Value::Map(map), Value::String(name)) => match self.get(map, name.as_str())? {
                Some(value) => Ok(value),
                None => failed(format!("missing field `{}`", shortened(name.as_str()))),
            },
            _ => failed(format!("{} cannot be an index of {}", at.describe(), of.describe())),
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
                (Value::String(left), Value::String(right)) => {
                    let (left, right) = (left.as_str(), right.as_str());
                    self.charge_bytes(left.len() + right.len())?;
                    Ok(Value::string([left, right].concat()))
                }
                (Value::List(left), Value::List(right)) => {
                    self.charge((left.len() + right.len()) as u64)?;
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
            (Value::String(left), Value::String(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                self.charge_bytes(left.len().min(right.len()))?;
                Ok(Some(left.cmp(right)))
            }
            (Value::Bool(left), Value::Bool(right)) => Ok(Some(left.cmp(right))),
            _ => failed(type_mismatch(operator, left, right)),
        }
    }

    fn equal(&mut self, left: &Value<'j>, right: &Value<'j>, depth: usize) -> Result<bool, Stop> {
        if depth > MAX_VALUE_DEPTH {
            return Err(Stop::TooLong);
        }
        self.charge(1)?;
        match (left, right) {
            (Value::Null, Value::Null) => Ok(true),
            (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
            (Value::Int(_) | Value::Double(_), Value::Int(_) | Value::Double(_)) => {
                Ok(compare_numbers(left, right) == Some(Ordering::Equal))
            }
            (Value::String(left), Value::String(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                if left.len() != right.len() {
                    return Ok(false);
                }
                self.charge_bytes(left.len())?;
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
                self.charge(left.len() as u64)?;
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
                let Value::String(key) = wanted else { return Ok(Value::Bool(false)) };
                Ok(Value::Bool(self.get(map, key.as_str())?.is_some()))
            }
            _ => failed(type_mismatch(Operator::In, wanted, range)),
        }
    }
}

pub(super) fn type_mismatch(operator: Operator, left: &Value<'_>, right: &Value<'_>) -> String {
    format!("`{}` does not take {} and {}", operator.as_str(), left.describe(), right.describe())
}

/// Truncates a string for a message.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
