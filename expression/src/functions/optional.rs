//! Optional values.

use std::rc::Rc;

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::{Duration, Value};

pub(super) fn none<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    if arguments.is_empty() { Ok(Value::Optional(None)) } else { Err(Stop::WrongTypes) }
}

pub(super) fn of<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [value] = arguments else { return Err(Stop::WrongTypes) };
    budget.create_list(1)?;
    Ok(Value::some(value.clone()))
}

/// Returns an optional value without a value for null, false, zero, and everything empty.
pub(super) fn of_non_zero_value<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [value] = arguments else { return Err(Stop::WrongTypes) };
    let zero = match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Optional(None) => true,
        Value::Duration(Duration(nanos)) => *nanos == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.as_str().is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        _ => false,
    };
    if zero { Ok(Value::Optional(None)) } else { of(budget, arguments) }
}

pub(super) fn has_value<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::Optional(optional)] = arguments else { return Err(Stop::WrongTypes) };
    Ok(Value::Bool(optional.is_some()))
}

pub(super) fn value<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Optional(Some(value))] => Ok(Rc::unwrap_or_clone(Rc::clone(value))),
        [Value::Optional(None)] => failed("the optional value has no value"),
        _ => Err(Stop::WrongTypes),
    }
}
