//! Numbers and amounts of money in texts, and the numbers that an agent received.

use std::collections::{BTreeSet, HashMap};

use counterproof_artifact::EventBody;
use serde_json::{Map, Value};

use crate::load::LoadedAnswer;
use crate::load::case_input::{self, CaseInput};
use crate::load::payload::Payload;

/// The text without the spaces that group the digits of a number by three.
pub(super) fn without_group_spaces(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_digit = |at: Option<&char>| at.is_some_and(char::is_ascii_digit);
    let is_group = |at: usize| {
        let follows = (1..=3).all(|step| is_digit(chars.get(at + step))) && !is_digit(chars.get(at + 4));
        at > 0 && is_digit(chars.get(at - 1)) && follows
    };
    let is_space = |c: char| matches!(c, ' ' | '\u{a0}' | '\u{202f}');
    chars.iter().enumerate().filter(|(at, c)| !(is_space(**c) && is_group(*at))).map(|(_, c)| *c).collect()
}

pub(super) fn is_sum_or_difference(known: &BTreeSet<u64>, cents: u64) -> bool {
    let by_two =
        |one: &u64| cents.checked_sub(*one).is_some_and(|rest| known.contains(&rest)) || known.contains(&(cents + one));
    known.iter().any(by_two)
}

/// All numbers that the agent received, in cents.
pub(super) fn received_numbers(loaded: &LoadedAnswer, input: &CaseInput<'_>) -> BTreeSet<u64> {
    let mut known = BTreeSet::new();
    input.case_texts(|value| add_numbers(&mut known, value));
    input.request().into_iter().for_each(|value| add_numbers(&mut known, value));
    for (index, event) in loaded.answer.events.iter().enumerate() {
        match &event.body {
            EventBody::ToolResult(_) | EventBody::Retrieval(_) => match loaded.payload(index) {
                Some(Payload::Text(text)) => known.extend(numbers(text).map(|number| number.cents)),
                Some(Payload::Object(fields)) => add_all(&mut known, fields),
                Some(Payload::Other(value)) => add_numbers(&mut known, value),
                None => {}
            },
            // What the agent wrote itself is no source.
            EventBody::Unknown { kind, fields } if !case_input::is_by_agent(kind, fields) => {
                add_all(&mut known, fields);
            }
            _ => {}
        }
    }
    known
}

fn add_all(known: &mut BTreeSet<u64>, fields: &Map<String, Value>) {
    fields.values().for_each(|value| add_numbers(known, value));
}

fn add_numbers(known: &mut BTreeSet<u64>, value: &Value) {
    match value {
        Value::Number(number) => known.extend(numbers(&number.to_string()).map(|number| number.cents)),
        Value::String(text) => known.extend(numbers(text).map(|number| number.cents)),
        Value::Array(items) => items.iter().for_each(|item| add_numbers(known, item)),
        Value::Object(fields) => add_all(known, fields),
        Value::Bool(_) | Value::Null => {}
    }
}

/// A number in a text.
pub(super) struct Number<'t> {
    /// Rounded to the cent.
    pub(super) cents: u64,
    has_cents: bool,
    before: &'t str,
    pub(super) written: &'t str,
    after: &'t str,
}

/// Words after a number that make it a promise and not a count.
const TERMS: [&str; 6] = ["minute", "hour", "day", "week", "month", "year"];

impl Number<'_> {
    /// Whether the number needs a source. Small whole numbers count things, unless they state a time or a rate.
    pub(super) fn is_particular(&self) -> bool {
        let is_count = self.cents < 1000 && self.cents.is_multiple_of(100);
        !is_count || self.is_term()
    }

    /// The word after the number, in small letters: `left` in `4 left`.
    pub(super) fn next_word(&self) -> Option<String> {
        let word = self.after.strip_prefix(' ')?.split(|c: char| !c.is_alphabetic()).next()?;
        (word.len() > 2).then(|| word.to_lowercase())
    }

    /// Whether another text has another number before the same word: `4 are left` instead of `7 are left`. `others` has the numbers of
    /// that text by the word after them.
    pub(super) fn is_instead_of(&self, others: &HashMap<String, BTreeSet<u64>>) -> bool {
        let others = self.next_word().and_then(|word| others.get(&word));
        others.is_some_and(|others| others.iter().any(|cents| *cents != self.cents))
    }

    /// Whether the number states a time or a rate: `5 days`, `14 working days`, `3-year`, `15 %`.
    pub(super) fn is_term(&self) -> bool {
        let after = self.after.trim_start_matches(|c: char| c.is_whitespace() || c == '-');
        let words = after.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphabetic()));
        let is_time = |word: &str| TERMS.contains(&word.trim_end_matches('s').to_lowercase().as_str());
        after.starts_with('%') || words.take(2).any(is_time)
    }
}

/// The numbers of a text: `1,250.00`, `1.250,00`, `1250`.
pub(super) fn numbers(text: &str) -> impl Iterator<Item = Number<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find(|c: char| c.is_ascii_digit())?;
            let length =
                text[start..].find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len() - start);
            let written = text[start..start + length].trim_end_matches(['.', ',']);
            at = start + length;
            if let Some((cents, has_cents)) = cents(written) {
                let after = &text[start + written.len()..];
                return Some(Number { cents, has_cents, before: &text[..start], written, after });
            }
        }
    })
}

/// The value of a written number in cents, and whether it is written with two decimals.
fn cents(written: &str) -> Option<(u64, bool)> {
    // The last separator is the decimal one, unless three digits or more separators of its kind show that it groups.
    let point = written.rfind(['.', ',']).filter(|at| {
        let separator = &written[*at..=*at];
        let decimals = written.len() - at - 1;
        written.matches(separator).count() == 1 && (decimals != 3 || separator == ".")
    });
    let (whole, decimals) = point.map_or((written, ""), |at| (&written[..at], &written[at + 1..]));
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    let amount: f64 = format!("{whole}.{decimals}0").parse().ok()?;
    // Beyond this, an id.
    let is_amount = whole.len() <= 9;
    is_amount.then(|| (rounded_cents(amount), decimals.len() == 2))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most nine digits before the point, and no sign"
)]
fn rounded_cents(amount: f64) -> u64 {
    (amount * 100.0).round() as u64
}

/// The amounts of money in a text, in cents and as written: numbers with a currency, or with two decimals.
pub(super) fn stated_amounts(text: &str) -> impl Iterator<Item = (u64, String)> {
    amounts(text).map(|(number, shown)| (number.cents, shown))
}

/// Where the amounts of money start in a text, in bytes.
pub(crate) fn amount_starts(text: &str) -> impl Iterator<Item = usize> {
    amounts(text).map(|(number, _)| number.before.len())
}

fn amounts(text: &str) -> impl Iterator<Item = (Number<'_>, String)> {
    const SIGNS: [char; 4] = ['$', '€', '£', '¥'];
    const CODES: [&str; 9] = ["usd", "eur", "gbp", "dollar", "dollars", "euro", "euros", "pound", "pounds"];
    numbers(text).filter_map(|number| {
        let (before, after) = (number.before.trim_end(), number.after.trim_start());
        let sign_before = before.chars().next_back().filter(|c| SIGNS.contains(c));
        let sign_after = after.chars().next().filter(|c| SIGNS.contains(c));
        let word = after.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
        let has_currency = sign_before.is_some() || sign_after.is_some() || CODES.contains(&word.as_str());
        // Part of an id, a version, a date, a time or a percentage.
        let is_within = number.before.ends_with(|c: char| c.is_alphanumeric() || "#-_/:.,".contains(c))
            || number.after.starts_with(|c: char| c.is_alphanumeric() || "-_/:%".contains(c))
            || after.starts_with('%');
        let is_amount = has_currency || number.has_cents && !is_within;
        let shown = match (sign_before, sign_after) {
            (Some(sign), _) => format!("{sign}{}", number.written),
            (None, Some(sign)) => format!("{} {sign}", number.written),
            (None, None) => number.written.to_owned(),
        };
        is_amount.then_some((number, shown))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_a_currency_or_two_decimals() {
        let amounts = |text: &str| stated_amounts(text).map(|(cents, _)| cents).collect::<Vec<_>>();
        assert_eq!(amounts("You get $1,250 back, not 1250,50 € or 12.50."), [125_000, 125_050, 1250]);
        assert_eq!(amounts("1.250,00 EUR and 30 dollars"), [125_000, 3000]);
        for text in [
            "in 5 days",
            "order #4.50-1",
            "version 1.2.50",
            "12.50 %",
            "at 10:30",
            "W1234567",
            "2024-05-20",
            "12 items",
        ] {
            assert_eq!(amounts(text), Vec::<u64>::new(), "{text}");
        }
    }
}
