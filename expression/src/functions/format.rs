//! `format`: the clauses `%s`, `%d`, `%f` and `%%`.

use super::text::TextBuilder;
use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::functions::lists::sort_rounds;
use crate::operations::MAX_VALUE_DEPTH;
use crate::values::{Number, Value, double_text};

/// Digits after the point of `%f` without a precision.
const DEFAULT_PRECISION: usize = 6;

/// Maximum precision. A double has no more digits than about 1,100.
const MAX_PRECISION: usize = 1_000;

/// Longest text of a number: the largest double, and its digits after the point.
const MAX_NUMBER_BYTES: usize = 310 + MAX_PRECISION;

pub(super) fn format<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(template), Value::List(values)] = arguments else { return Err(Stop::WrongTypes) };
    budget.read(template.as_str().len())?;
    let mut built = TextBuilder::default();
    let mut rest = template.as_str();
    let mut next = 0;
    while let Some((text, clause)) = rest.split_once('%') {
        built.push(budget, text)?;
        budget.charge(1)?;
        if let Some(after) = clause.strip_prefix('%') {
            built.push(budget, "%")?;
            rest = after;
            continue;
        }
        let (precision, after) = precision(clause)?;
        let mut characters = after.chars();
        let Some(kind) = characters.next() else { return failed("a format clause is not complete: write %% for %") };
        rest = characters.as_str();
        let Some(value) = values.get(next) else {
            return failed(format!("the format has more clauses than the {} values of the list", values.len()));
        };
        next += 1;
        write_clause(budget, &mut built, kind, precision, &value)?;
    }
    built.push(budget, rest)?;
    built.finish(budget)
}

/// Parses `.3` at the start of a clause.
fn precision(clause: &str) -> Result<(Option<usize>, &str), Stop> {
    let Some(rest) = clause.strip_prefix('.') else { return Ok((None, clause)) };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match rest[..digits].parse() {
        Ok(precision) if precision <= MAX_PRECISION => Ok((Some(precision), &rest[digits..])),
        _ => failed(format!("the precision of a format clause is a number up to {MAX_PRECISION}")),
    }
}

fn write_clause(
    budget: &mut Budget,
    built: &mut TextBuilder,
    kind: char,
    precision: Option<usize>,
    value: &Value<'_>,
) -> Result<(), Stop> {
    let precision = precision.unwrap_or(DEFAULT_PRECISION);
    let text = match (kind, value) {
        ('s', value) => return write_value(budget, built, value, 0),
        ('d' | 'f', Value::Double(double)) if !double.is_finite() => Some(double_text(*double)),
        ('d', value) => value.number().and_then(Number::to_whole).map(|whole| whole.to_string()),
        ('f', value) => double(budget, value)?.map(|double| format!("{double:.precision$}")),
        (other, _) => return failed(format!("`%{other}` is not a format clause")),
    };
    match text {
        Some(text) => built.push(budget, &text),
        None => failed(format!("`%{kind}` does not take {}", value.describe())),
    }
}

/// Returns a number as a double, and charges for its longest text.
fn double(budget: &mut Budget, value: &Value<'_>) -> Result<Option<f64>, Stop> {
    // The length is known only after the text was made, so the longest one is charged.
    budget.create(MAX_NUMBER_BYTES)?;
    Ok(value.number().map(Number::to_double))
}

/// Writes a value as `%s` does: strings without quotes, and the entries of objects in the order of their texts.
fn write_value(budget: &mut Budget, built: &mut TextBuilder, value: &Value<'_>, depth: usize) -> Result<(), Stop> {
    // A computed value can be nested deeper than the stack allows.
    if depth > MAX_VALUE_DEPTH {
        return failed(format!("the value is nested deeper than {MAX_VALUE_DEPTH} levels"));
    }
    budget.charge(1)?;
    let text = match value {
        Value::String(text) => return built.push(budget, text.as_str()),
        Value::Bytes(bytes) => {
            // An invalid byte becomes a character of three bytes.
            budget.create(3 * bytes.len())?;
            String::from_utf8_lossy(bytes).into_owned()
        }
        Value::List(list) => {
            built.push(budget, "[")?;
            for (index, element) in list.iter().enumerate() {
                built.push(budget, if index > 0 { ", " } else { "" })?;
                write_value(budget, built, &element, depth + 1)?;
            }
            return built.push(budget, "]");
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            budget.create_map(map.len())?;
            for (key, value) in map.iter() {
                let mut name = TextBuilder::default();
                write_value(budget, &mut name, &key, depth + 1)?;
                entries.push((name.into_text(), value));
            }
            let bytes: usize = entries.iter().map(|(name, _)| name.len()).sum();
            budget.read(bytes.saturating_mul(sort_rounds(entries.len())))?;
            entries.sort_by(|(left, _), (right, _)| left.cmp(right));
            built.push(budget, "{")?;
            for (index, (name, value)) in entries.iter().enumerate() {
                built.push(budget, if index > 0 { ", " } else { "" })?;
                built.push(budget, name)?;
                built.push(budget, ": ")?;
                write_value(budget, built, value, depth + 1)?;
            }
            return built.push(budget, "}");
        }
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => double_text(*value),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(duration) => duration.to_string(),
        Value::Type(kind) => kind.as_str().to_owned(),
    };
    built.push(budget, &text)
}
