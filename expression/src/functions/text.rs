//! Functions of strings: search, and changed strings such as `replace`, `split`, `join` and `trim`.

use crate::budget::{Budget, Evaluated, Stop, failed};
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
        // A part of the input needs no memory.
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
            // Twice: the reversed text, and its shared copy.
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
    // A negative limit does not fit, and becomes no limit.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut built = TextBuilder::default();
    let mut copied = 0;
    for (start, matched) in text.match_indices(from).take(limit) {
        built.push(budget, &text[copied..start])?;
        built.push(budget, to)?;
        // An empty match takes no bytes, and must still cost something.
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
        // The last piece within the limit has the rest of the text.
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
        // For each element, since empty strings take no bytes.
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

/// Builds a string. Every piece is charged before it is added.
#[derive(Debug, Default)]
pub(super) struct TextBuilder {
    text: String,
}

impl TextBuilder {
    pub(super) fn push(&mut self, budget: &mut Budget, piece: &str) -> Result<(), Stop> {
        budget.create(piece.len())?;
        self.text.push_str(piece);
        Ok(())
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn finish<'j>(self, budget: &mut Budget) -> Result<Value<'j>, Stop> {
        // The shared string is a copy.
        budget.create_text(self.text.len())?;
        Ok(Value::string(self.text))
    }
}

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
    // Before the offsets: a reversed range is an error even if both indexes are out of range.
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
