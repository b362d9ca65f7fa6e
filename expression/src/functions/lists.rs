//! Functions of lists: `sort`, `distinct`, `slice`, `flatten` and `lists.range`.

use std::cmp::Ordering;

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::operations::{MAX_VALUE_DEPTH, equal};
use crate::values::{List, Value, compare_numbers};

/// Returns how often a sort compares each element, at most.
pub(super) fn sort_rounds(elements: usize) -> usize {
    elements.checked_ilog2().unwrap_or(0) as usize + 1
}

/// Sorts a list of values of one type. All numbers are one type.
pub(super) fn sort<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::List(list)] = arguments else { return Err(Stop::WrongTypes) };
    budget.create_list(list.len())?;
    let mut sorted: Vec<_> = list.iter().collect();
    let bytes = |value: &Value<'_>| match value {
        Value::String(text) => text.as_str().len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    // One more round compares all elements with the first.
    let rounds = sort_rounds(sorted.len()) + 1;
    budget.charge((sorted.len() * rounds) as u64)?;
    budget.read(sorted.iter().map(bytes).sum::<usize>().saturating_mul(rounds))?;
    // Checked before sorting, since an order with incomparable values depends on the algorithm.
    if let Some(first) = sorted.first()
        && let Some(other) = sorted.iter().find(|value| compare(first, value).is_none())
    {
        return failed(format!("`sort` cannot order {} and {}", first.describe(), other.describe()));
    }
    // All pairs compare: every element compares with the first, and the types of such elements are one.
    sorted.sort_by(|left, right| compare(left, right).unwrap_or(Ordering::Equal));
    Ok(Value::list(sorted))
}

/// Compares two values of one type. Returns `None` for other values and for NaN, also compared with itself.
fn compare(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.as_str().cmp(right.as_str())),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (left, right) => compare_numbers(left.number()?, right.number()?),
    }
}

/// Returns the first of all equal elements, in order.
pub(super) fn distinct<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::List(list)] = arguments else { return Err(Stop::WrongTypes) };
    budget.create_list(list.len())?;
    let mut kept: Vec<Value<'j>> = Vec::new();
    'elements: for element in list.iter() {
        // Quadratic, but every comparison is charged. A set would need a hash of every value.
        for other in &kept {
            if equal(budget, other, &element)? {
                continue 'elements;
            }
        }
        kept.push(element);
    }
    Ok(Value::list(kept))
}

/// `list.slice(start, end)`: the elements from `start` to the one before `end`.
pub(super) fn slice<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = arguments else { return Err(Stop::WrongTypes) };
    let range = usize::try_from(*start).ok().zip(usize::try_from(*end).ok()).map(|(start, end)| start..end);
    let Some(range) = range.filter(|range| range.start <= range.end && range.end <= list.len()) else {
        return failed(format!("the range from {start} to {end} is out of range for a list of {}", list.len()));
    };
    // A part of the input is borrowed, so it takes no memory.
    if let List::Borrowed(items) = list {
        return Ok(Value::List(List::Borrowed(&items[range])));
    }
    budget.create_list(range.len())?;
    Ok(Value::list(range.filter_map(|index| list.get(index)).collect()))
}

/// `list.flatten(depth)`: replaces lists in the list by their elements, one level deep without a depth.
pub(super) fn flatten<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let (list, depth) = match arguments {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        _ => return Err(Stop::WrongTypes),
    };
    let Ok(depth) = usize::try_from(depth) else { return failed(format!("lists have no depth of {depth}")) };
    let mut flat = Vec::new();
    // Bounded, because the depth of the recursion comes from the expression.
    flatten_into(budget, &mut flat, list, depth.min(MAX_VALUE_DEPTH))?;
    Ok(Value::list(flat))
}

fn flatten_into<'j>(budget: &mut Budget, flat: &mut Vec<Value<'j>>, list: &List<'j>, depth: usize) -> Result<(), Stop> {
    budget.create_list(list.len())?;
    for element in list.iter() {
        match element {
            Value::List(inner) if depth > 0 => flatten_into(budget, flat, &inner, depth - 1)?,
            other => flat.push(other),
        }
    }
    Ok(())
}

/// `lists.range(n)`: the integers from 0 to the one before `n`.
pub(super) fn range<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::Int(end)] = arguments else { return Err(Stop::WrongTypes) };
    let Ok(count) = usize::try_from(*end) else { return failed(format!("a list cannot have {end} elements")) };
    budget.create_list(count)?;
    Ok(Value::list((0..*end).map(Value::Int).collect()))
}
