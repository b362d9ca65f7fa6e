//! Functions that search a string: `contains`, `startsWith`, `indexOf` and others. Indexes count characters.

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::{Str, Value};

pub(super) fn contains<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text), Value::String(part)] = arguments else { return Err(Stop::WrongTypes) };
    budget.read(text.as_str().len() + part.as_str().len())?;
    Ok(Value::Bool(text.as_str().contains(part.as_str())))
}

pub(super) fn starts_with<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text), Value::String(part)] = arguments else { return Err(Stop::WrongTypes) };
    budget.read(part.as_str().len())?;
    Ok(Value::Bool(text.as_str().starts_with(part.as_str())))
}

pub(super) fn ends_with<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text), Value::String(part)] = arguments else { return Err(Stop::WrongTypes) };
    budget.read(part.as_str().len())?;
    Ok(Value::Bool(text.as_str().ends_with(part.as_str())))
}

/// `text.indexOf(part, from)`
pub(super) fn index_of<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let (text, part, from) = searched(budget, arguments)?;
    let from = match from {
        None => 0,
        Some(from) => offset(text, from)?,
    };
    Ok(position(text, text[from..].find(part).map(|found| from + found)))
}

/// `text.lastIndexOf(part, last)`: the match starts at `last` or before.
pub(super) fn last_index_of<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let (text, part, last) = searched(budget, arguments)?;
    let last = match last {
        None => text.len(),
        Some(last) => offset(text, last)?,
    };
    // A match that starts at `last` ends there. If that is within a character, there is no such match.
    let end = last.saturating_add(part.len()).min(text.len());
    let end = (last..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(last);
    Ok(position(text, text[..end].rfind(part)))
}

fn searched<'a>(budget: &mut Budget, arguments: &'a [Value<'_>]) -> Result<(&'a str, &'a str, Option<i64>), Stop> {
    let (text, part, index) = match arguments {
        [Value::String(text), Value::String(part)] => (text.as_str(), part.as_str(), None),
        [Value::String(text), Value::String(part), Value::Int(index)] => (text.as_str(), part.as_str(), Some(*index)),
        _ => return Err(Stop::WrongTypes),
    };
    // One pass for the search and up to two for the indexes.
    budget.read(3 * text.len() + part.len())?;
    Ok((text, part, index))
}

/// Returns the index of the character at a byte offset, or -1.
fn position<'j>(text: &str, offset: Option<usize>) -> Value<'j> {
    offset.map_or(Value::Int(-1), |offset| Value::count(text[..offset].chars().count()))
}

/// Returns the byte offset of a character. The index after the last character is the length of the text.
fn offset(text: &str, index: i64) -> Result<usize, Stop> {
    let offsets = text.char_indices().map(|(offset, _)| offset).chain([text.len()]);
    let offset = usize::try_from(index).ok().and_then(|index| { offsets }.nth(index));
    match offset {
        Some(offset) => Ok(offset),
        None => failed(format!("index {index} is out of range for a string of {}", text.chars().count())),
    }
}

/// `text.charAt(index)`: the empty string directly after the last character.
pub(super) fn char_at<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text), Value::Int(index)] = arguments else { return Err(Stop::WrongTypes) };
    budget.read(text.as_str().len())?;
    let start = offset(text.as_str(), *index)?;
    let end = start + text.as_str()[start..].chars().next().map_or(0, char::len_utf8);
    slice(budget, text, start, end)
}

/// `text.substring(start, end)`
pub(super) fn substring<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let (text, start, end) = match arguments {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(Stop::WrongTypes),
    };
    budget.read(2 * text.as_str().len())?;
    if let Some(end) = end.filter(|end| *end < start) {
        return failed(format!("the range from {start} to {end} is reversed"));
    }
    let first = offset(text.as_str(), start)?;
    let last = match end {
        None => text.as_str().len(),
        Some(end) => offset(text.as_str(), end)?,
    };
    slice(budget, text, first, last)
}

/// Returns a part of a string, without a copy if the string is part of the JSON.
fn slice<'j>(budget: &mut Budget, text: &Str<'j>, start: usize, end: usize) -> Evaluated<'j> {
    match text {
        Str::Borrowed(text) => Ok(Value::String(Str::Borrowed(&text[start..end]))),
        Str::Owned(text) => {
            budget.create_text(end - start)?;
            Ok(Value::string(&text[start..end]))
        }
    }
}
