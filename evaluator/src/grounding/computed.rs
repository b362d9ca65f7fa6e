//! Amounts that an agent worked out: sums, differences, products and percentages of numbers that it knew.
//!
//! With many known numbers nearly every amount is the difference of two of them. Operands are therefore taken only from the
//! records that the same call names by their ids, and from what the user said, and a result is accepted only if a random amount
//! of similar size would be accepted at most once in [`ACCEPTED_BY_CHANCE`] times. Two numbers of one tool result belong
//! together, so their sum and their difference need less: once in [`ACCEPTED_OF_ONE_RESULT`] times.

use std::collections::BTreeSet;

use counterproof_artifact::EventBody;
use serde_json::{Map, Value};

use super::search::Origin;
use crate::load::LoadedAnswer;
use crate::load::case_input;
use crate::load::case_input::CaseInput;
use crate::load::payload::Payload;
use crate::values::meaning::HashedSet;
use crate::values::stringified;
use crate::values::tokens::id_hash;

/// One in this many random amounts of similar size may equal a result by chance.
const ACCEPTED_BY_CHANCE: i128 = 50;

/// The same for two numbers of one result: `29 + 4 = 33` has a rival in 25, among 50 whole amounts of similar size.
const ACCEPTED_OF_ONE_RESULT: i128 = 4;

/// Most operands. More would be refused by the limit above, and cost their square.
const OPERANDS: usize = 48;

/// Most numbers taken from what the user said, the last ones.
const SAID: usize = 16;

/// Most JSON values that are visited for one call.
const VISITED: usize = 200_000;

/// Amounts are compared in cents.
const CENTS: f64 = 100.0;

/// Words in the name of an argument that is not an amount, even if its value is a number.
const NOT_AMOUNTS: &str = "id ids number iban account phone zip postal code date year card reference pin";

/// The arguments of a call, and what the agent knew before it.
pub(super) struct Calculation {
    operands: BTreeSet<i128>,
    multipliers: BTreeSet<i128>,
    /// In hundredths of a percent.
    rates: BTreeSet<i128>,
    /// The last event with an operand, or the input.
    origin: Origin,
    /// The amounts of each result that has two or more, with its event.
    results: Vec<(usize, BTreeSet<i128>)>,
}

impl Calculation {
    /// Collects the operands for the arguments of a call: from the events before `limit` and from what the user said.
    pub(super) fn new(
        loaded: &LoadedAnswer,
        asked: &CaseInput<'_>,
        arguments: &Map<String, Value>,
        limit: usize,
    ) -> Self {
        let mut records = Records::new(arguments);
        asked.case_texts(|value| records.said(value));
        let mut origin = Origin::Input;
        let mut results = Vec::new();
        for (index, event) in loaded.answer.events.iter().enumerate().take(limit) {
            // Compared after the event, to know whether it added an operand: the last such event is the origin.
            let known = records.numbers();
            match &event.body {
                EventBody::ToolResult(_) => match loaded.payload(index) {
                    Some(Payload::Object(fields)) => records.object(fields, None),
                    Some(Payload::Other(value)) => records.value(value, None),
                    Some(Payload::Text(text)) => match serde_json::from_str::<Value>(text) {
                        Ok(value @ (Value::Object(_) | Value::Array(_))) => records.value(&value, None),
                        _ => records.percentages(text),
                    },
                    None => {}
                },
                EventBody::Unknown { kind, fields } if case_input::is_user_turn(kind, fields) => {
                    fields.values().for_each(|value| records.said(value));
                }
                _ => {}
            }
            if records.numbers() > known {
                origin = Origin::Event(index);
            }
            if matches!(event.body, EventBody::ToolResult(_)) {
                let amounts = loaded.payload(index).map(amounts_of).unwrap_or_default();
                results.extend((2..=OPERANDS).contains(&amounts.len()).then_some((index, amounts)));
            }
        }
        records.finish(origin, results)
    }

    pub(super) fn is_amount(value: &Value) -> bool {
        amount(value).is_some()
    }

    /// Returns the origin of an amount, if it is the result of one operation on the operands.
    pub(super) fn origin_of(&self, key: &str, value: &Value) -> Option<Origin> {
        // A number in `account` or `zip` is an id, and a sum that equals it does so by chance.
        let amount = amount(value).filter(|_| is_amount_name(key))?;
        let mut results = BTreeSet::new();
        // Results of similar size only: a random amount would be of the same magnitude.
        let (least, most) = (amount / 2, amount * 2);
        let mut add = |result: i128| {
            if (least..=most).contains(&result) {
                results.insert(result);
            }
        };
        let known: Vec<_> = self.operands.iter().copied().collect();
        for (index, &a) in known.iter().enumerate() {
            for &b in &known[..index] {
                add(a + b);
                add((a - b).abs());
            }
            self.multipliers.iter().for_each(|times| add(a * times));
            for rate in &self.rates {
                add(percent(a, *rate));
                // Both ways to round: the share, or what is left of it.
                add(a - percent(a, *rate));
                add(percent(a, 10_000 - rate));
                add(a + percent(a, *rate));
            }
        }
        if is_accepted(amount, &results, ACCEPTED_BY_CHANCE) {
            return Some(self.origin);
        }
        self.results.iter().find(|(_, amounts)| is_sum_of_two(amount, amounts)).map(|(event, _)| Origin::Event(*event))
    }
}

/// Whether an amount is one of the results, and a random amount of similar size would be one at most once in `chance` times.
fn is_accepted(amount: i128, results: &BTreeSet<i128>, chance: i128) -> bool {
    // A whole amount competes with whole results only.
    let unit = if amount % 100 == 0 { 100 } else { 1 };
    let rivals = results.iter().filter(|result| *result % unit == 0).count() as i128;
    let possible = (amount * 2 - amount / 2) / unit;
    results.contains(&amount) && rivals * chance <= possible
}

/// Whether an amount is the sum or the difference of two amounts of one result.
fn is_sum_of_two(amount: i128, amounts: &BTreeSet<i128>) -> bool {
    let known: Vec<_> = amounts.iter().copied().collect();
    let pairs = known.iter().enumerate().flat_map(|(index, a)| known[..=index].iter().map(move |b| (a, b)));
    let results = pairs.flat_map(|(a, b)| [a + b, a - b]);
    let is_similar = |result: &i128| (amount / 2..=amount * 2).contains(result);
    is_accepted(amount, &results.filter(is_similar).collect(), ACCEPTED_OF_ONE_RESULT)
}

/// The amounts of a result: its numbers, except those that are ids or dates by their name.
fn amounts_of(payload: Payload<'_>) -> BTreeSet<i128> {
    fn collect(value: &Value, key: &str, found: &mut BTreeSet<i128>, visits_left: &mut usize) {
        *visits_left = visits_left.saturating_sub(1);
        match value {
            _ if *visits_left == 0 => {}
            Value::Object(fields) => fields.iter().for_each(|(key, value)| collect(value, key, found, visits_left)),
            Value::Array(items) => items.iter().for_each(|item| collect(item, key, found, visits_left)),
            value => found.extend(amount(value).filter(|_| is_amount_name(key))),
        }
    }
    let mut found = BTreeSet::new();
    let mut visits_left = VISITED;
    match payload {
        Payload::Object(fields) => {
            fields.iter().for_each(|(key, value)| collect(value, key, &mut found, &mut visits_left));
        }
        Payload::Other(value) => collect(value, "", &mut found, &mut visits_left),
        Payload::Text(text) => match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => collect(&value, "", &mut found, &mut visits_left),
            _ => found.extend(amounts_in(text)),
        },
    }
    found
}

/// The numbers of a sentence.
fn amounts_in(text: &str) -> impl Iterator<Item = i128> + '_ {
    let words = text.split(|c: char| c.is_whitespace() || "()!?;:".contains(c));
    words.filter_map(|word| amount(&Value::from(word.trim_matches(['.', ',', '"', '\'']))))
}

/// `rate` hundredths of a percent of an amount, rounded half up to the cent.
const fn percent(amount: i128, rate: i128) -> i128 {
    (amount * rate + 5_000).div_euclid(10_000)
}

/// Returns an amount in cents: a number, or a text of one number with an optional currency.
fn amount(value: &Value) -> Option<i128> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => {
            let plain = text.trim().trim_start_matches(['$', '€', '£', '+', '-', ' ']);
            let plain = plain.trim_end_matches(|c: char| c.is_alphabetic() || " $€£".contains(c)).replace(',', "");
            let has_leading_zero = plain.len() > 1 && plain.starts_with('0') && !plain.starts_with("0.");
            plain.parse().ok().filter(|_| !has_leading_zero && plain.starts_with(|c: char| c.is_ascii_digit()))?
        }
        _ => return None,
    };
    let cents = (number.abs() * CENTS).round();
    // Seven digits before the point may be an id. More than two digits after it are not an amount.
    let is_exact = (number.abs() * CENTS - cents).abs() < 1e-6;
    (is_exact && cents > 0.0 && number.abs() < 1e6).then(|| whole(cents))
}

/// Rounds to a whole number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a number beyond the range becomes its end, which no amount equals"
)]
fn whole(number: f64) -> i128 {
    number.round() as i128
}

fn is_amount_name(key: &str) -> bool {
    let key = key.to_lowercase();
    !key.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| NOT_AMOUNTS.split(' ').any(|known| known == word))
}

struct Records<'a> {
    /// The ids among the arguments, by the argument that they are in.
    named: Vec<(&'a str, HashedSet)>,
    operands: BTreeSet<i128>,
    said: Vec<i128>,
    multipliers: BTreeSet<i128>,
    rates: BTreeSet<i128>,
    /// For each argument and each field, the sum over the records that the argument names.
    sums: std::collections::BTreeMap<(&'a str, String), (i128, BTreeSet<u64>)>,
    visits_left: usize,
}

impl<'a> Records<'a> {
    fn new(arguments: &'a Map<String, Value>) -> Self {
        let mut multipliers = BTreeSet::new();
        let named = arguments
            .iter()
            .map(|(key, value)| {
                let mut ids = HashedSet::default();
                collect_ids(value, &mut ids, &mut multipliers);
                (key.as_str(), ids)
            })
            .filter(|(_, ids)| !ids.is_empty())
            .collect();
        Self {
            named,
            operands: BTreeSet::new(),
            said: Vec::new(),
            multipliers,
            rates: BTreeSet::new(),
            sums: std::collections::BTreeMap::new(),
            visits_left: VISITED,
        }
    }

    fn numbers(&self) -> usize {
        self.operands.len() + self.said.len()
    }

    fn value(&mut self, value: &Value, key: Option<&str>) {
        match value {
            Value::Object(fields) => self.object(fields, key),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, None)),
            Value::String(text) => self.percentages(text),
            _ => {}
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, key: Option<&str>) {
        if self.visits_left == 0 {
            return;
        }
        // The bound counts visited values and not time, so that the result is the same on every machine.
        self.visits_left = self.visits_left.saturating_sub(fields.len() + 1);
        // The object is a named record if one of its fields, or the key that it is stored under, is among the
        // arguments.
        let own = fields.values().filter_map(Value::as_str).chain(key).map(id_hash);
        let own: Vec<u64> = own.collect();
        let naming: Vec<(usize, u64)> = self
            .named
            .iter()
            .enumerate()
            .filter_map(|(index, (_, ids))| own.iter().find(|id| ids.contains(id)).map(|id| (index, *id)))
            .collect();
        if !naming.is_empty() {
            self.record(fields, &naming, 0);
        }
        for (key, value) in fields {
            self.value(value, Some(key));
        }
    }

    /// Takes the numbers of a named record, and the sums of its lists field by field.
    fn record(&mut self, fields: &Map<String, Value>, naming: &[(usize, u64)], depth: usize) {
        for (key, value) in fields {
            match value {
                Value::Number(number) => self.number(key, number, naming),
                Value::Object(inner) if depth < 1 => self.record(inner, &[], depth + 1),
                Value::Array(items) => self.totals(items),
                _ => {}
            }
        }
    }

    fn number(&mut self, key: &str, number: &serde_json::Number, naming: &[(usize, u64)]) {
        let Some(value) = number.as_f64() else { return };
        // A fraction such as 0.15 is a rate in most records.
        if value > 0.0 && value < 1.0 {
            self.rates.insert(whole(value * 10_000.0));
        }
        if ["percent", "pct", "rate", "discount", "tax"].iter().any(|word| key.to_lowercase().contains(word)) {
            self.rates.insert(whole(value.abs() * 100.0));
        }
        // Small whole numbers are quantities. 0 and 1 change nothing, and larger ones would make any amount reachable.
        if value.fract() == 0.0 && (2.0..10.0).contains(&value) {
            self.multipliers.insert(whole(value));
        }
        let Some(cents) = amount(&Value::Number(number.clone())).filter(|_| is_amount_name(key)) else { return };
        self.operands.insert(cents);
        for (index, id) in naming {
            let sum = self.sums.entry((self.named[*index].0, key.to_owned())).or_default();
            // A record that several results repeat counts once.
            if sum.1.insert(*id) {
                sum.0 += cents;
            }
        }
    }

    fn totals(&mut self, items: &[Value]) {
        let mut totals = std::collections::BTreeMap::<&str, i128>::new();
        self.visits_left = self.visits_left.saturating_sub(items.len());
        for fields in items.iter().filter_map(Value::as_object) {
            for (key, value) in fields.iter().filter(|(key, _)| is_amount_name(key)) {
                if let Some(cents) = amount(value).filter(|_| value.is_number()) {
                    *totals.entry(key).or_default() += cents;
                }
            }
        }
        self.operands.extend(totals.into_values());
    }

    /// Takes the numbers of what the user said.
    fn said(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.percentages(text);
                self.said.extend(amounts_in(text));
            }
            Value::Number(_) => self.said.extend(amount(value)),
            Value::Array(items) => items.iter().for_each(|item| self.said(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.said(field)),
            _ => {}
        }
    }

    /// Takes the percentages of a text, such as `15 %`.
    fn percentages(&mut self, text: &str) {
        for (at, _) in text.match_indices('%').take(SAID) {
            let before = text[..at].trim_end();
            let start = before.rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |at| at + 1);
            // The character before the number may be longer than one byte.
            let Some(number) = before.get(start..).and_then(|number| number.parse::<f64>().ok()) else { continue };
            if number > 0.0 && number <= 100.0 {
                self.rates.insert(whole(number * 100.0));
            }
        }
    }

    fn finish(mut self, origin: Origin, results: Vec<(usize, BTreeSet<i128>)>) -> Calculation {
        let said = self.said.len().saturating_sub(SAID);
        self.operands.extend(&self.said[said..]);
        self.operands.extend(self.sums.values().map(|(sum, _)| *sum));
        // With too many operands, none: which of them would be left out is arbitrary.
        if self.operands.len() > OPERANDS {
            self.operands.clear();
        }
        // A sum over records is a result itself: 0 makes `a + 0` one of the results.
        self.operands.insert(0);
        Calculation { operands: self.operands, multipliers: self.multipliers, rates: self.rates, origin, results }
    }
}

/// Collects the ids among arguments, which are texts with a digit and at least three characters, and the multipliers,
/// which are small numbers and the lengths of lists.
fn collect_ids(value: &Value, ids: &mut HashedSet, multipliers: &mut BTreeSet<i128>) {
    match value {
        Value::String(text) => match stringified::scalars(text) {
            Some(values) => values.iter().for_each(|value| collect_ids(value, ids, multipliers)),
            None if text.len() >= 3 && text.bytes().any(|byte| byte.is_ascii_digit()) => {
                ids.insert(id_hash(text));
            }
            None => {}
        },
        Value::Array(items) => {
            multipliers.extend((2..10).contains(&items.len()).then_some(items.len() as i128));
            for item in items {
                collect_ids(item, ids, multipliers);
            }
        }
        Value::Object(fields) => fields.values().for_each(|field| collect_ids(field, ids, multipliers)),
        Value::Number(number) => {
            multipliers.extend(number.as_i64().filter(|number| (2..10).contains(number)).map(i128::from));
        }
        _ => {}
    }
}
