//! Functions that return changed strings: `replace`, `split`, `join`, `trim` and others.

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::functions::text_builder::TextBuilder;
use crate::values::{Str, Value};

pub(super) fn lower_ascii<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text)] = arguments else { return Err(Stop::WrongTypes) };
    budget.create_text(text.as_str().len())?;
    Ok(Value::string(text.as_str().to_ascii_lowercase()))
}

pub(super) fn upper_ascii<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text)] = arguments else { return Err(Stop::WrongTypes) };
    budget.create_text(text.as_str().len())?;
    Ok(Value::string(text.as_str().to_ascii_uppercase()))
}

/// Removes white space of Unicode at both ends.
pub(super) fn trim<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text)] = arguments else { return Err(Stop::WrongTypes) };
    budget.read(text.as_str().len())?;
    match text {
        Str::Borrowed(text) => Ok(Value::String(Str::Borrowed(text.trim()))),
        Str::Owned(text) => {
            budget.create_text(text.trim().len())?;
            Ok(Value::string(text.trim()))
        }
    }
}

/// Reverses the characters of a string, or the elements of a list.
pub(super) fn reverse<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::String(text)] => {
            budget.create_text(2 * text.as_str().len())?;
            Ok(Value::string(text.as_str().chars().rev().collect::<String>()))
        }
        [Value::List(list)] => {
            budget.create_list(list.len())?;
            Ok(Value::list(list.iter().rev().collect()))
        }
        _ => Err(Stop::WrongTypes),
    }
}

/// `text.replace(from, to, limit)`. A negative limit is none.
pub(super) fn replace<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let (text, from, to, limit) = match arguments {
        [Value::String(text), Value::String(from), Value::String(to)] => (text, from, to, -1),
        [Value::String(text), Value::String(from), Value::String(to), Value::Int(limit)] => (text, from, to, *limit),
        _ => return Err(Stop::WrongTypes),
    };
    let (text, from, to) = (text.as_str(), from.as_str(), to.as_str());
    budget.read(text.len() + from.len())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut built = TextBuilder::default();
    let mut copied = 0;
    for (start, matched) in text.match_indices(from).take(limit) {
        built.push(budget, &text[copied..start])?;
        built.push(budget, to)?;
        budget.charge(1)?;
        copied = start + matched.len();
    }
    built.push(budget, &text[copied..])?;
    built.finish(budget)
}

/// `text.split(separator, limit)`. The last part has the rest of the text. A negative limit is none.
pub(super) fn split<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let (text, separator, limit) = match arguments {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(Stop::WrongTypes),
    };
    budget.read(text.as_str().len() + separator.as_str().len())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    for part in pieces(text.as_str(), separator.as_str(), limit) {
        budget.create_text(part.len())?;
        budget.create_element()?;
        parts.push(Value::string(part));
    }
    Ok(Value::list(parts))
}

/// Splits a text. An empty separator splits it into characters. An empty text is one empty part.
fn pieces<'t>(text: &'t str, separator: &'t str, limit: usize) -> Box<dyn Iterator<Item = &'t str> + 't> {
    if text.is_empty() {
        return Box::new(std::iter::once(text).take(limit));
    }
    if !separator.is_empty() {
        return Box::new(text.splitn(limit, separator));
    }
    let mut rest = text;
    let mut left = limit;
    Box::new(std::iter::from_fn(move || {
        let first = rest.chars().next().filter(|_| left > 0)?;
        let end = if left == 1 { rest.len() } else { first.len_utf8() };
        let (piece, after) = rest.split_at(end);
        (rest, left) = (after, left - 1);
        Some(piece)
    }))
}

/// `list.join(separator)`
pub(super) fn join<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let (list, separator) = match arguments {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, separator.as_str()),
        _ => return Err(Stop::WrongTypes),
    };
    let mut built = TextBuilder::default();
    for (index, element) in list.iter().enumerate() {
        budget.charge(1)?;
        let Value::String(text) = element else {
            return failed(format!("`join` takes a list of strings, not of {}", element.describe()));
        };
        if index > 0 {
            built.push(budget, separator)?;
        }
        built.push(budget, text.as_str())?;
    }
    built.finish(budget)
}
