//! Arithmetic. Integers stay integers, and an overflow is an error.

use super::evaluation::{Evaluated, failed, type_mismatch};
use crate::node::Operator;
use crate::value::Value;

/// Applies an operator to two numbers. If one is a double, the other is converted.
pub(super) fn arithmetic<'j>(operator: Operator, left: &Value<'j>, right: &Value<'j>) -> Evaluated<'j> {
    let (left, right) = match (left, right) {
        (Value::Int(left), Value::Int(right)) => return integers(operator, *left, *right),
        (Value::Int(left), Value::Double(right)) => (*left as f64, *right),
        (Value::Double(left), Value::Int(right)) => (*left, *right as f64),
        (Value::Double(left), Value::Double(right)) => (*left, *right),
        _ => return failed(type_mismatch(operator, left, right)),
    };
    Ok(Value::Double(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        _ => return failed("`%` takes integers"),
    }))
}

fn integers<'j>(operator: Operator, left: i64, right: i64) -> Evaluated<'j> {
    if right == 0 && matches!(operator, Operator::Divide | Operator::Modulo) {
        return failed(format!("division by zero in `{}`", operator.as_str()));
    }
    let result = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    match result {
        Some(value) => Ok(Value::Int(value)),
        None => failed(format!("integer overflow in `{}`", operator.as_str())),
    }
}
