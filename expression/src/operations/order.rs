//! Order of values of one type. All numbers are one type.

use std::cmp::Ordering;

use crate::budget::{Budget, Stop};
use crate::values::{Value, compare_numbers};

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
