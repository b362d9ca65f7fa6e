//! `math.least` and `math.greatest`.

use std::cmp::Ordering;

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::{Value, compare_numbers};

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
            Some(found) if compare_numbers(number, found) != Some(wanted) => Some(found),
            _ => Some(number),
        };
    }
    extreme.map(Value::from).ok_or(Stop::WrongTypes)
}
