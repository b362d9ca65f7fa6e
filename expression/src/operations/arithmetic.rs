//! Arithmetic. Integers stay integers, and an overflow is an error.

use super::operator::Operator;
use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::{Duration, List, Number, Timestamp, Value};

/// Applies `+`, `-`, `*`, `/` or `%`.
pub(crate) fn arithmetic<'j>(
    budget: &mut Budget,
    operator: Operator,
    left: &Value<'j>,
    right: &Value<'j>,
) -> Evaluated<'j> {
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
        _ => return failed("`%` takes integers"),
    }))
}

fn integers<'j>(operator: Operator, left: Number, right: Number) -> Evaluated<'j> {
    let (Some(first), Some(second)) = (left.to_whole(), right.to_whole()) else { return Err(Stop::WrongTypes) };
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
