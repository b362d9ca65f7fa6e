//! Functions of numbers: the least and the greatest, rounding, sign, square root, and tests for infinity and NaN.

use std::cmp::Ordering;

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::{Number, Value, compare_numbers};

/// Rounds a double with `round`. An integer is a whole number already.
fn rounded<'j>(arguments: &[Value<'j>], round: fn(f64) -> f64) -> Evaluated<'j> {
    match arguments {
        [Value::Double(value)] => Ok(Value::Double(round(*value))),
        [value @ (Value::Int(_) | Value::Uint(_))] => Ok(value.clone()),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn ceil<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    rounded(arguments, f64::ceil)
}

pub(super) fn floor<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    rounded(arguments, f64::floor)
}

/// Rounds to the nearest whole number, and halves away from zero.
pub(super) fn round<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    rounded(arguments, f64::round)
}

pub(super) fn trunc<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    rounded(arguments, f64::trunc)
}

pub(super) fn abs<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Double(value)] => Ok(Value::Double(value.abs())),
        // The smallest integer has no positive counterpart.
        [Value::Int(value)] => match value.checked_abs() {
            Some(value) => Ok(Value::Int(value)),
            None => failed("integer overflow in `math.abs`"),
        },
        [value @ Value::Uint(_)] => Ok(value.clone()),
        _ => Err(Stop::WrongTypes),
    }
}

/// Returns -1, 0 or 1, in the type of the argument.
pub(super) fn sign<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        // Not `f64::signum`, which is 1 for zero.
        [Value::Double(value)] => Ok(Value::Double(match value.partial_cmp(&0.0) {
            Some(Ordering::Less) => -1.0,
            Some(Ordering::Equal) => 0.0,
            Some(Ordering::Greater) => 1.0,
            None => f64::NAN,
        })),
        [Value::Int(value)] => Ok(Value::Int(value.signum())),
        [Value::Uint(value)] => Ok(Value::Uint((*value).min(1))),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn sqrt<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    double(arguments).map(|value| Value::Double(value.sqrt()))
}

pub(super) fn is_nan<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    double(arguments).map(|value| Value::Bool(value.is_nan()))
}

pub(super) fn is_inf<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    double(arguments).map(|value| Value::Bool(value.is_infinite()))
}

pub(super) fn is_finite<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    double(arguments).map(|value| Value::Bool(value.is_finite()))
}

/// Returns the argument as a double: JSON does not distinguish `5` from `5.0`.
fn double(arguments: &[Value<'_>]) -> Result<f64, Stop> {
    match arguments {
        [value] => value.number().map(Number::to_double).ok_or(Stop::WrongTypes),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn least<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    extreme(budget, arguments, Ordering::Less)
}

pub(super) fn greatest<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    extreme(budget, arguments, Ordering::Greater)
}

/// Returns the first of the arguments, or of the elements of a list, that no other precedes in this order.
fn extreme<'j>(budget: &mut Budget, arguments: &[Value<'j>], wanted: Ordering) -> Evaluated<'j> {
    match arguments {
        [Value::List(list)] if list.len() == 0 => failed("an empty list has neither a least nor a greatest number"),
        [Value::List(list)] => first_extreme(budget, list.iter(), wanted),
        several => first_extreme(budget, several.iter().cloned(), wanted),
    }
}

fn first_extreme<'j>(budget: &mut Budget, values: impl Iterator<Item = Value<'j>>, wanted: Ordering) -> Evaluated<'j> {
    let mut extreme = None;
    for value in values {
        budget.charge(1)?;
        let number = value.number().ok_or(Stop::WrongTypes)?;
        extreme = match extreme {
            // NaN has no order, so the earlier value stays.
            Some(found) if compare_numbers(number, found) != Some(wanted) => Some(found),
            _ => Some(number),
        };
    }
    extreme.map(Value::from).ok_or(Stop::WrongTypes)
}
