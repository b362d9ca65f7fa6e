//! Operators of two values: equality, order and arithmetic, within the budget.

use std::cmp::Ordering;

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::{Duration, Key, List, Number, Object, Timestamp, Value, compare_numbers};

/// Applies `+`, `-`, `*`, `/` or `%`.
pub(crate) fn arithmetic<'j>(
    budget: &mut Budget,
    operator: Operator,
    left: &Value<'j>,
    right: &Value<'j>,
) -> Evaluated<'j> {
    // Numbers first: they are most operands.
    if let (Some(left), Some(right)) = (left.number(), right.number()) {
        return numbers(operator, left, right);
    }
    match (operator, left, right) {
        (Operator::Add, Value::String(left), Value::String(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            budget.create_text(left.len() + right.len())?;
            Ok(Value::string([left, right].concat()))
        }
        (Operator::Add, Value::Bytes(left), Value::Bytes(right)) => {
            budget.create_text(left.len() + right.len())?;
            Ok(Value::Bytes([&**left, &**right].concat().into()))
        }
        (Operator::Add, Value::List(left), Value::List(right)) => concatenated(budget, left, right),
        (_, Value::Timestamp(_) | Value::Duration(_), _) => times(operator, left, right),
        _ => Err(Stop::WrongTypes),
    }
}

fn concatenated<'j>(budget: &mut Budget, left: &List<'j>, right: &List<'j>) -> Evaluated<'j> {
    // The lists share their elements with the operands, so only the new list is charged.
    budget.create_list(left.len() + right.len())?;
    Ok(Value::list(left.iter().chain(right.iter()).collect()))
}

/// Applies an operator to two numbers. If one is a double, the other is converted.
fn numbers<'j>(operator: Operator, left: Number, right: Number) -> Evaluated<'j> {
    match (left, right) {
        (Number::Double(_), _) | (_, Number::Double(_)) => doubles(operator, left.to_double(), right.to_double()),
        (left, right) => integers(operator, left, right),
    }
}

fn doubles<'j>(operator: Operator, left: f64, right: f64) -> Evaluated<'j> {
    Ok(Value::Double(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        // CEL has no remainder of doubles.
        _ => return failed("`%` takes integers"),
    }))
}

fn integers<'j>(operator: Operator, left: Number, right: Number) -> Evaluated<'j> {
    let (Some(first), Some(second)) = (left.to_whole(), right.to_whole()) else { return Err(Stop::WrongTypes) };
    // Only integers: a double divided by zero is an infinity, as CEL specifies.
    if second == 0 && matches!(operator, Operator::Divide | Operator::Modulo) {
        return failed(format!("division by zero in `{}`", operator.as_str()));
    }
    // Both operands have at most 64 bits, so 128 bits hold every result.
    let result = match operator {
        Operator::Add => first + second,
        Operator::Subtract => first - second,
        Operator::Multiply => first * second,
        Operator::Divide => first / second,
        // The one case where the division overflows is an error for both operators.
        _ if (first, second) == (i64::MIN.into(), -1) => i128::MAX,
        _ => first % second,
    };
    let value = match (left, right) {
        (Number::Uint(_), Number::Uint(_)) => u64::try_from(result).map(Value::Uint).ok(),
        (Number::Int(_), Number::Int(_)) => i64::try_from(result).map(Value::Int).ok(),
        // An integer above 2^63 in JSON is unsigned, and its author does not see that.
        _ => i64::try_from(result).map(Value::Int).or_else(|_| u64::try_from(result).map(Value::Uint)).ok(),
    };
    match value {
        Some(value) => Ok(value),
        None => failed(format!("integer overflow in `{}`", operator.as_str())),
    }
}

fn times<'j>(operator: Operator, left: &Value<'j>, right: &Value<'j>) -> Evaluated<'j> {
    let timestamp = |time: Option<Timestamp>| time.map(Value::Timestamp);
    let duration = |nanos: Option<i64>| nanos.map(|nanos| Value::Duration(Duration(nanos)));
    let value = match (operator, left, right) {
        (Operator::Add, Value::Timestamp(time), Value::Duration(by))
        | (Operator::Add, Value::Duration(by), Value::Timestamp(time)) => timestamp(time.checked_add(*by)),
        (Operator::Add, Value::Duration(left), Value::Duration(right)) => duration(left.0.checked_add(right.0)),
        (Operator::Subtract, Value::Timestamp(left), Value::Timestamp(right)) => {
            left.checked_sub(*right).map(Value::Duration)
        }
        (Operator::Subtract, Value::Timestamp(time), Value::Duration(by)) => {
            // The smallest duration has no negative, so that the sign is checked too.
            timestamp(by.0.checked_neg().and_then(|nanos| time.checked_add(Duration(nanos))))
        }
        (Operator::Subtract, Value::Duration(left), Value::Duration(right)) => duration(left.0.checked_sub(right.0)),
        _ => return Err(Stop::WrongTypes),
    };
    match value {
        Some(value) => Ok(value),
        None => failed(format!("the result of `{}` is out of range", operator.as_str())),
    }
}

/// Applies the sign `-`.
pub(crate) fn negate<'j>(value: &Value<'j>) -> Evaluated<'j> {
    match value {
        Value::Int(value) => match value.checked_neg() {
            Some(value) => Ok(Value::Int(value)),
            None => failed("integer overflow in `-`"),
        },
        Value::Double(value) => Ok(Value::Double(-value)),
        _ => Err(Stop::WrongTypes),
    }
}

/// Maximum nesting of values that are compared or converted. The JSON parser allows 128 levels.
pub(crate) const MAX_VALUE_DEPTH: usize = 160;

/// Returns whether two values are equal.
pub(crate) fn equal(budget: &mut Budget, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Stop> {
    equal_at(budget, left, right, 0)
}

fn equal_at(budget: &mut Budget, left: &Value<'_>, right: &Value<'_>, depth: usize) -> Result<bool, Stop> {
    if depth > MAX_VALUE_DEPTH {
        return failed(format!("the values are nested deeper than {MAX_VALUE_DEPTH} levels"));
    }
    budget.charge(1)?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            same_bytes(budget, left.as_bytes(), right.as_bytes())?
        }
        (Value::Bytes(left), Value::Bytes(right)) => same_bytes(budget, left, right)?,
        (Value::List(left), Value::List(right)) => {
            // Without reading an element: the lengths are known.
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal_at(budget, &left, &right, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(left), Value::Map(right)) => equal_objects(budget, left, right, depth)?,
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Type(left), Value::Type(right)) => left == right,
        (left, right) => match (left.number(), right.number()) {
            (Some(left), Some(right)) => compare_numbers(left, right) == Some(Ordering::Equal),
            _ => false,
        },
    })
}

fn same_bytes(budget: &mut Budget, left: &[u8], right: &[u8]) -> Result<bool, Stop> {
    // Texts of different lengths are not read, so they take no steps.
    if left.len() != right.len() {
        return Ok(false);
    }
    budget.read(left.len())?;
    Ok(left == right)
}

fn equal_objects(budget: &mut Budget, left: &Object<'_>, right: &Object<'_>, depth: usize) -> Result<bool, Stop> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (name, left) in left.iter() {
        budget.charge(1)?;
        // The keys are looked up, since computed maps and JSON have them in different orders.
        let Some(right) = lookup(budget, right, &name)? else { return Ok(false) };
        if !equal_at(budget, &left, &right, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lookup<'j>(budget: &mut Budget, map: &Object<'j>, key: &Value<'_>) -> Result<Option<Value<'j>>, Stop> {
    if let Value::String(text) = key {
        budget.read(text.as_str().len())?;
    }
    Ok(Key::of(key).and_then(|key| map.get(&key)))
}

/// Returns whether a list has an element, or an object a key.
pub(crate) fn is_in(budget: &mut Budget, wanted: &Value<'_>, range: &Value<'_>) -> Result<bool, Stop> {
    match range {
        Value::List(list) => {
            for element in list.iter() {
                // Each comparison charges for itself, so a long list cannot be searched for nothing.
                if equal(budget, wanted, &element)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) if wanted.can_be_key() => Ok(lookup(budget, map, wanted)?.is_some()),
        _ => Err(Stop::WrongTypes),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Operator {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Modulo => "%",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::In => "in",
        }
    }

    /// True for the operators whose value is a boolean.
    pub(crate) const fn is_comparison(self) -> bool {
        !matches!(self, Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo)
    }
}

/// Compares two values. Returns `None` for NaN, which is neither less nor greater.
pub(crate) fn order(budget: &mut Budget, left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>, Stop> {
    Ok(match (left, right) {
        (Value::String(left), Value::String(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            budget.read(left.len().min(right.len()))?;
            Some(left.cmp(right))
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.read(left.len().min(right.len()))?;
            Some(left.cmp(right))
        }
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (left, right) => match (left.number(), right.number()) {
            (Some(left), Some(right)) => compare_numbers(left, right),
            _ => return Err(Stop::WrongTypes),
        },
    })
}
