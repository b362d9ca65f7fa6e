//! Equality. Values of different types are not equal, except for numbers.

use std::cmp::Ordering;

use crate::budget::{Budget, Stop, failed};
use crate::values::{Key, Object, Value, compare_numbers};

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
