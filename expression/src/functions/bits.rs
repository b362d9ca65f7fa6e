//! Bit operations on integers of the same type.

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::Value;

pub(super) fn and<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Int(left), Value::Int(right)] => Ok(Value::Int(left & right)),
        [Value::Uint(left), Value::Uint(right)] => Ok(Value::Uint(left & right)),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn or<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Int(left), Value::Int(right)] => Ok(Value::Int(left | right)),
        [Value::Uint(left), Value::Uint(right)] => Ok(Value::Uint(left | right)),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn xor<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Int(left), Value::Int(right)] => Ok(Value::Int(left ^ right)),
        [Value::Uint(left), Value::Uint(right)] => Ok(Value::Uint(left ^ right)),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn not<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Int(value)] => Ok(Value::Int(!value)),
        [Value::Uint(value)] => Ok(Value::Uint(!value)),
        _ => Err(Stop::WrongTypes),
    }
}

/// Shifts to the left. By 64 or more, the result is 0.
pub(super) fn shift_left<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    shifted(arguments, |bits, by| bits.checked_shl(by).unwrap_or(0))
}

/// Shifts to the right and inserts zeros, also for a negative integer.
pub(super) fn shift_right<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    shifted(arguments, |bits, by| bits.checked_shr(by).unwrap_or(0))
}

fn shifted<'j>(arguments: &[Value<'j>], shift: fn(u64, u32) -> u64) -> Evaluated<'j> {
    let (value, by) = match arguments {
        [value, Value::Int(by)] => (value, *by),
        _ => return Err(Stop::WrongTypes),
    };
    if by < 0 {
        return failed(format!("bits cannot be shifted by {by}"));
    }
    // Every number above 64 has the same effect.
    let by = u32::try_from(by).unwrap_or(u32::MAX);
    match value {
        Value::Int(value) => Ok(Value::Int(shift(value.cast_unsigned(), by).cast_signed())),
        Value::Uint(value) => Ok(Value::Uint(shift(*value, by))),
        _ => Err(Stop::WrongTypes),
    }
}
