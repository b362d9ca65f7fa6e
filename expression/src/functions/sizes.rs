//! `size`, `type` and `dyn`.

use crate::budget::{Budget, Evaluated, Stop};
use crate::values::Value;

/// Returns the number of characters, bytes, elements or entries.
pub(super) fn size<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::String(text)] => {
            budget.read(text.as_str().len())?;
            Ok(Value::count(text.as_str().chars().count()))
        }
        [Value::Bytes(bytes)] => Ok(Value::count(bytes.len())),
        [Value::List(list)] => Ok(Value::count(list.len())),
        [Value::Map(map)] => Ok(Value::count(map.len())),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn type_of<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [value] => Ok(Value::Type(value.type_of())),
        _ => Err(Stop::WrongTypes),
    }
}

/// Returns its argument: types are checked while the expression is evaluated.
pub(super) fn dyn_value<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [value] => Ok(value.clone()),
        _ => Err(Stop::WrongTypes),
    }
}
