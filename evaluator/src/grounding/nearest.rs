//! The known value that is nearest to a value without an origin: often an id with one wrong digit. It explains a finding to a
//! person, and decides nothing.

use counterproof_artifact::EventBody;
use serde_json::{Map, Value};

use super::computed::Calculation;
use super::search::Origin;
use crate::load::LoadedAnswer;
use crate::load::case_input::{CaseInput, is_by_agent};
use crate::load::payload::Payload;

/// Longer values are prose, for which no other text is near.
const LONGEST: usize = 100;

/// One in this many characters may differ; in a shorter value, one.
const CHARACTERS_OFF: usize = 4;

/// Most texts that one value is compared with by character.
const COMPARED: usize = 20_000;

/// A known value, and how it differs from the searched one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Nearest {
    pub(crate) value: String,
    pub(crate) origin: Origin,
    pub(crate) gap: Gap,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Gap {
    /// One digit is another one.
    Digit,
    /// The number of characters that differ, are missing or are in excess. Two that changed places count as one.
    Characters(usize),
    /// Much differs: the value is a field of the same name.
    SameName,
    /// Another amount.
    Amount,
}

/// A value without an origin.
#[derive(Debug)]
pub(super) struct Wanted {
    text: String,
    /// The last name of its argument.
    name: String,
    amount: Option<f64>,
    /// The number of events before it.
    limit: usize,
    comparisons_left: usize,
    /// The nearest value so far, and its rank and distance: the smallest is nearest.
    best: Option<((u8, f64), Nearest)>,
}

impl Wanted {
    pub(super) fn new(value: &Value, name: &str, limit: usize) -> Self {
        let amount = Some(value).filter(|value| Calculation::is_amount(value)).and_then(number);
        Self { text: plain(value), name: name.to_owned(), amount, limit, comparisons_left: COMPARED, best: None }
    }

    pub(super) fn into_nearest(self) -> Option<Nearest> {
        self.best.map(|(_, nearest)| nearest)
    }

    /// Takes a value as the nearest if it is nearer than those before it.
    fn offer(&mut self, known: &str, name: Option<&str>, origin: Origin) {
        // Nothing is nearer than a value with one error.
        if self.best.as_ref().is_some_and(|(best, _)| *best <= (0, 1.0)) {
            return;
        }
        let (length, other) = (self.text.chars().count(), known.chars().count());
        if other == 0 || other > LONGEST || length > LONGEST || self.comparisons_left == 0 {
            return;
        }
        let most = (length / CHARACTERS_OFF).max(1);
        let is_named = name.is_some_and(|name| name == self.name);
        // The length is the cheapest bound: most texts are far too long or too short.
        if length.abs_diff(other) > most && !is_named && self.amount.is_none() {
            return;
        }
        // The bound counts comparisons and not time, so that the result is the same on every machine.
        self.comparisons_left -= 1;
        let near = if length.abs_diff(other) <= most { distance(&self.text, known) } else { usize::MAX };
        // Two numbers of two digits are no typing error of each other; nor are words that only share letters.
        let found = match near {
            // The value itself has no origin here: it comes later, or from the call's own refusal.
            0 => return,
            near if near <= most && length > 2 => Some((0, near as f64, gap(&self.text, known, near))),
            _ if is_named && self.amount.is_none() => Some((1, distance(&self.text, known) as f64, Gap::SameName)),
            _ => None,
        };
        let by_amount = || {
            let other = number(&Value::from(known)).filter(|_| Calculation::is_amount(&Value::from(known)))?;
            Some((1, (other - self.amount?).abs(), Gap::Amount))
        };
        let Some((rank, distance, gap)) = found.or_else(by_amount) else { return };
        // The first of equally near values, in the order in which the agent received them.
        if self.best.as_ref().is_none_or(|(best, _)| (rank, distance) < *best) {
            self.best = Some(((rank, distance), Nearest { value: known.to_owned(), origin, gap }));
        }
    }
}

/// Optimal string alignment, by characters and without regard to their case.
fn distance(one: &str, other: &str) -> usize {
    strsim::osa_distance(&one.to_lowercase(), &other.to_lowercase())
}

fn gap(wanted: &str, known: &str, distance: usize) -> Gap {
    let mut differing = wanted.chars().zip(known.chars()).filter(|(one, other)| one != other);
    let is_one_digit = wanted.chars().count() == known.chars().count()
        && differing.next().is_some_and(|(one, other)| one.is_ascii_digit() && other.is_ascii_digit())
        && differing.next().is_none();
    if is_one_digit { Gap::Digit } else { Gap::Characters(distance) }
}

/// A value without the signs that people write in front of ids and amounts.
fn plain(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    trimmed(&text).to_owned()
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "#$€£.!?".contains(c))
}

fn number(value: &Value) -> Option<f64> {
    plain(value).replace(',', "").parse().ok()
}

/// Finds the nearest known value of each, in one pass over what the agent received.
pub(super) fn find(loaded: &LoadedAnswer, asked: &CaseInput<'_>, wanted: &mut [Wanted]) {
    if wanted.is_empty() {
        return;
    }
    let mut input = Known { wanted, origin: Origin::Input, position: 0 };
    asked.case_texts(|value| input.value(value, None));
    if let Some(request) = asked.request() {
        input.value(request, None);
    }
    let last = input.wanted.iter().map(|wanted| wanted.limit).max().unwrap_or(0);
    for (index, event) in loaded.answer.events.iter().enumerate().take(last) {
        let mut known = Known { wanted, origin: Origin::Event(index), position: index };
        match &event.body {
            EventBody::ToolResult(result) => {
                known.payload(loaded.payload(index));
                known.fields(&result.extra);
            }
            EventBody::Retrieval(found) => {
                found.doc_ids.iter().for_each(|id| known.text(id, None));
                known.payload(loaded.payload(index));
            }
            EventBody::Unknown { kind, fields } if !is_by_agent(kind, fields) => known.fields(fields),
            EventBody::Unknown { .. } | EventBody::ToolCall(_) | EventBody::FinalOutput(_) => {}
        }
    }
}

/// A text that the agent received, while it is read.
struct Known<'w> {
    wanted: &'w mut [Wanted],
    origin: Origin,
    position: usize,
}

impl Known<'_> {
    fn payload(&mut self, payload: Option<Payload<'_>>) {
        match payload {
            Some(Payload::Object(fields)) => self.fields(fields),
            Some(Payload::Other(value)) => self.value(value, None),
            Some(Payload::Text(text)) => match serde_json::from_str::<Value>(text) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => self.value(&value, None),
                _ => self.text(text, None),
            },
            None => {}
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>) {
        for (name, value) in fields {
            // Ids are often keys: `{"items": {"8098621301": {…}}}`.
            self.offer(name, None);
            self.value(value, Some(name));
        }
    }

    fn value(&mut self, value: &Value, name: Option<&str>) {
        match value {
            Value::Object(fields) => self.fields(fields),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, name)),
            Value::String(text) => self.text(text, name),
            Value::Number(number) => self.offer(&number.to_string(), name),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn text(&mut self, text: &str, name: Option<&str>) {
        self.offer(text, name);
        if text.contains(char::is_whitespace) {
            let words = text.split(|c: char| c.is_whitespace() || "\"'[]{}()<>,;:=`".contains(c));
            words.for_each(|word| self.offer(word, None));
        }
    }

    fn offer(&mut self, text: &str, name: Option<&str>) {
        let text = trimmed(text);
        for wanted in
            self.wanted.iter_mut().filter(|wanted| self.position < wanted.limit || self.origin == Origin::Input)
        {
            wanted.offer(text, name, self.origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nearest(value: &Value, known: &[(&str, &str)]) -> Option<(String, Gap)> {
        let mut wanted = Wanted::new(value, "order_id", 1);
        for (name, text) in known {
            wanted.offer(text, Some(name), Origin::Event(0));
        }
        wanted.into_nearest().map(|nearest| (nearest.value, nearest.gap))
    }

    #[test]
    fn a_typing_error_is_nearer_than_another_value_of_the_same_name() {
        let known = [("order_id", "1111111111"), ("item_id", "8098621301"), ("item_id", "8098621399")];
        assert_eq!(nearest(&json!("8098621303"), &known), Some(("8098621301".to_owned(), Gap::Digit)));
        assert_eq!(nearest(&json!(8_098_621_310_i64), &known), Some(("8098621301".to_owned(), Gap::Characters(1))));
        assert_eq!(nearest(&json!("809862130"), &known), Some(("8098621301".to_owned(), Gap::Characters(1))));
        assert_eq!(nearest(&json!("W99"), &known[..1]), Some(("1111111111".to_owned(), Gap::SameName)));
        assert_eq!(nearest(&json!("W99"), &known[1..]), None);
    }

    #[test]
    fn an_amount_is_compared_by_its_size() {
        let known = [("price", "54.85"), ("shipping", "12.5"), ("note", "fragile")];
        assert_eq!(nearest(&json!(60), &known), Some(("54.85".to_owned(), Gap::Amount)));
    }
}
