//! Finds the first position of each searched word in everything that an agent received, and with it the origin of a value.

use counterproof_artifact::EventBody;
use serde_json::{Map, Value};

use crate::load::LoadedAnswer;
use crate::load::call_status::has_failed;
use crate::load::case_input::{self, CaseInput, Speaker, is_by_agent};
use crate::load::payload::Payload;
use crate::values::meaning::{HashedMap, HashedSet};
use crate::values::stringified;
use crate::values::text_hash;
use crate::values::tokens::is_arithmetic;
use crate::values::tokens::{self, Date, Reader, Token, Word};

/// Whole numbers below this are exempt: they occur everywhere.
pub(super) const SMALL: i128 = 10;

/// Longer texts, in words, are not searched as a whole.
pub(super) const LONG: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The value is too common to need an origin.
    Exempt,
    Input,
    Event(usize),
    /// Nothing that the agent received contains the value.
    Nowhere,
    /// Nothing searchable contains the value, but an earlier payload was too large to search.
    Unknown,
}

impl Origin {
    /// True if the agent received the value before it used it.
    pub(crate) const fn is_grounded(self) -> bool {
        matches!(self, Origin::Input | Origin::Event(_))
    }
}

#[derive(Debug)]
pub(super) enum SearchTerms {
    /// Nothing: the value is too common.
    Nothing,
    Words(std::ops::Range<usize>),
    /// The numbers of an arithmetic expression, which may have different origins.
    Sum(std::ops::Range<usize>),
    /// All of these words, or one of the alternatives: dates, or the id as one word.
    Either(std::ops::Range<usize>, Vec<u64>),
    /// The values of a list or an object that is written as text.
    Each(Vec<SearchTerms>),
}

/// The searched words, and where each first occurs.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The first position of each word, pair of words or date, or `UNSEEN`. The input is position 0, event i is i + 1.
    seen: HashedMap<usize>,
    words: Vec<u64>,
    reader: Reader,
}

/// Ids of fewer characters are not looked for in groups.
const GROUPED_FROM: usize = 6;

/// Greater than every position, so that the maximum over the words of a value is `UNSEEN` if one of them is.
const UNSEEN: usize = usize::MAX;

impl Search {
    /// Adds the words to search for a value.
    pub(super) fn add_terms(&mut self, value: &Value) -> SearchTerms {
        let written = value.as_str().and_then(stringified::scalars);
        match written {
            Some(values) => SearchTerms::Each(values.iter().map(|value| self.add_scalar(value)).collect()),
            None => self.add_scalar(value),
        }
    }

    fn add_scalar(&mut self, value: &Value) -> SearchTerms {
        match value {
            Value::String(_) => {}
            Value::Number(number) if number.as_i128().is_none_or(|whole| whole.abs() >= SMALL) => {}
            _ => return SearchTerms::Nothing,
        }
        let text = value.as_str().unwrap_or_default();
        // `USD 23.60` is 23.60.
        let (words, dates) = match without_currency(text) {
            Some(number) => self.words_of(&Value::from(number)),
            None => self.words_of(value),
        };
        let start = self.words.len();
        // A date takes precedence: with spaces, `27 / 5 / 2024` also matches the grammar of a division.
        let is_sum = dates.iter().all(|date| date.whole.is_none()) && is_arithmetic(text);
        match words.as_slice() {
            // A single character occurs everywhere.
            [] | [Word { length: 1, .. }] => return SearchTerms::Nothing,
            [word] => self.words.push(word.hash),
            // The numbers of a sum may have different origins, and small ones are exempt, as they are alone.
            words if is_sum => {
                self.words.extend(words.iter().filter(|word| word.length > 1).map(|word| word.hash));
            }
            // Prose is written by the agent and needs no origin.
            words if is_prose(words.len(), words.iter().filter(|word| word.has_digit).count()) => {}
            words if words.len() > LONG => {
                let numbers = words.iter().filter(|word| word.has_digit && word.length > 1);
                self.words.extend(numbers.map(|word| word.hash));
            }
            // A name may be assembled from its parts, an e-mail address may not.
            words if words.iter().all(|word| !word.has_digit) && !is_address(text) => {
                // An initial occurs everywhere.
                self.words.extend(words.iter().filter(|word| word.length > 1).map(|word| word.hash));
            }
            words => self.add_adjacent(text, words),
        }
        let range = start..self.words.len();
        if range.is_empty() {
            return SearchTerms::Nothing;
        }
        // Only registered words are looked up while the texts are read, which keeps one pass over them cheap.
        for word in &self.words[range.clone()] {
            self.seen.entry(*word).or_insert(UNSEEN);
        }
        if is_sum {
            return SearchTerms::Sum(range);
        }
        let others = alternatives(text, &words, &dates);
        for other in &others {
            self.seen.entry(*other).or_insert(UNSEEN);
        }
        if others.is_empty() { SearchTerms::Words(range) } else { SearchTerms::Either(range, others) }
    }

    fn words_of(&mut self, value: &Value) -> (Vec<Word>, Vec<Date>) {
        let (mut words, mut dates) = (Vec::new(), Vec::new());
        self.reader.restart();
        self.reader.leaf(value, &mut |token| match token {
            Token::Word(word) => words.push(word),
            Token::Date(date) => dates.push(date),
            Token::Joined(_) => {}
        });
        (words, dates)
    }

    /// Adds pairs of adjacent words: an id such as `order 17` must not be assembled from unrelated parts.
    fn add_adjacent(&mut self, text: &str, words: &[Word]) {
        // An exception: a postal address may be assembled from its parts, which commas separate.
        let parts: Vec<_> = text.split(", ").flat_map(|part| part.split([';', '\n'])).collect();
        if parts.len() < 2 {
            self.words.extend(words.windows(2).map(|two| tokens::pair(two[0].hash, two[1].hash)));
            return;
        }
        for part in parts {
            match self.words_of(&Value::from(part)).0.as_slice() {
                [] => {}
                [word] if word.length > 1 => self.words.push(word.hash),
                words if words.iter().all(|word| !word.has_digit) => {
                    self.words.extend(words.iter().map(|word| word.hash));
                }
                words => self.words.extend(words.windows(2).map(|two| tokens::pair(two[0].hash, two[1].hash))),
            }
        }
    }

    /// From now on, also finds ids that the sources write in groups.
    pub(super) fn join_groups(&mut self) {
        self.reader.join_groups();
    }

    /// Reads the input from the cases file.
    pub(super) fn read_input(&mut self, asked: &CaseInput<'_>) {
        let mut input = Source { position: 0, search: self, own: &HashedSet::default() };
        // Position 0, before every event: the input can be the origin of any value.
        asked.case_texts(|value| input.read(value));
    }

    /// Reads what the user said in the conversation.
    pub(super) fn read_user(&mut self, loaded: &LoadedAnswer) {
        let mut source = Source { position: 0, search: self, own: &HashedSet::default() };
        for event in &loaded.answer.events {
            if let EventBody::Unknown { fields, .. } = &event.body
                && case_input::speaker(event) == Some(Speaker::User)
            {
                source.read_fields(fields);
            }
        }
    }

    /// Reads everything that the agent received in events. Returns the position of the first payload that was too large.
    pub(super) fn read_events(&mut self, loaded: &LoadedAnswer) -> usize {
        // Shared by all events except failed results, so that most events allocate nothing.
        let nothing = HashedSet::default();
        for (index, event) in loaded.answer.events.iter().enumerate() {
            let own = match &event.body {
                EventBody::ToolResult(result) if has_failed(loaded, index) => {
                    let call = loaded.index.call(&loaded.answer.events, &result.call_id);
                    call.map(|call| self.own_words(&call.args)).unwrap_or_default()
                }
                _ => HashedSet::default(),
            };
            let own = if own.is_empty() { &nothing } else { &own };
            let mut source = Source { position: index + 1, search: self, own };
            match &event.body {
                EventBody::ToolResult(result) => {
                    source.read_payload(loaded.payload(index));
                    source.read_fields(&result.extra);
                }
                EventBody::Retrieval(found) => {
                    found.doc_ids.iter().for_each(|id| source.read_text(id));
                    source.read_payload(loaded.payload(index));
                    source.read_fields(&found.extra);
                }
                // What the agent wrote is not an origin.
                EventBody::Unknown { kind, fields } if is_by_agent(kind, fields) => {}
                EventBody::Unknown { fields, .. } => source.read_fields(fields),
                EventBody::ToolCall(_) | EventBody::FinalOutput(_) => {}
            }
        }
        loaded.payloads.first_unread().map_or(UNSEEN, |index| index + 1)
    }

    /// Returns the searched words of a failed call's arguments.
    fn own_words(&mut self, args: &Map<String, Value>) -> HashedSet {
        // Errors often repeat the arguments, and a repetition is not an origin.
        let start = self.words.len();
        let mut others = Vec::new();
        each_leaf(args, 0, &mut |_, value| {
            let mut take = |terms: SearchTerms| {
                if let SearchTerms::Either(_, more) = terms {
                    others.extend(more);
                }
            };
            match self.add_terms(value) {
                SearchTerms::Each(terms) => terms.into_iter().for_each(take),
                terms => take(terms),
            }
        });
        // These words are removed again; they stay registered in `seen`, which does no harm.
        self.words.drain(start..).chain(others).collect()
    }

    pub(super) fn origin(&self, terms: &SearchTerms, limit: usize, opaque: usize) -> Origin {
        let position = |word: &u64| self.seen.get(word).copied().unwrap_or(UNSEEN);
        let all =
            |range: &std::ops::Range<usize>| self.words[range.clone()].iter().map(position).max().unwrap_or(UNSEEN);
        // All words must have been received, so the last of them decides. A date needs only one of its notations.
        let first = match terms {
            SearchTerms::Nothing => return Origin::Exempt,
            SearchTerms::Words(range) | SearchTerms::Sum(range) => all(range),
            SearchTerms::Either(range, ways) => ways.iter().map(position).min().unwrap_or(UNSEEN).min(all(range)),
            SearchTerms::Each(values) => return self.origin_of_all(values, limit, opaque),
        };
        match first {
            0 => Origin::Input,
            // Event i has position i + 1, so this holds for the events before the one with the index `limit`.
            position if position <= limit => Origin::Event(position - 1),
            _ if opaque <= limit => Origin::Unknown,
            _ => Origin::Nowhere,
        }
    }

    /// Returns the indexes of the values without an origin in a list or an object that is written as text.
    pub(super) fn missing_elements(&self, terms: &SearchTerms, limit: usize, opaque: usize) -> Option<Vec<usize>> {
        let SearchTerms::Each(values) = terms else { return None };
        let is_missing = |terms: &SearchTerms| self.origin(terms, limit, opaque) == Origin::Nowhere;
        Some((0..values.len()).filter(|index| is_missing(&values[*index])).collect())
    }

    /// The origin of several values together: the worst of theirs, else the last.
    fn origin_of_all(&self, values: &[SearchTerms], limit: usize, opaque: usize) -> Origin {
        let rank = |origin: &Origin| match origin {
            Origin::Exempt => (0, 0),
            Origin::Input => (1, 0),
            Origin::Event(index) => (2, *index),
            Origin::Unknown => (3, 0),
            Origin::Nowhere => (4, 0),
        };
        // A list is as well grounded as its worst element.
        let origins = values.iter().map(|terms| self.origin(terms, limit, opaque));
        origins.max_by_key(rank).unwrap_or(Origin::Exempt)
    }
}

/// True for a long text with few numbers, which agents write themselves instead of copying it.
pub(super) const fn is_prose(words: usize, numbers: usize) -> bool {
    words > LONG && numbers * 2 < words
}

/// Calls `take` for each leaf of an object with the hash of its argument.
pub(super) fn each_leaf<'a>(fields: &'a Map<String, Value>, parent: u64, take: &mut impl FnMut(u64, &'a Value)) {
    for (key, value) in fields {
        each_below(value, tokens::pair(parent, text_hash(key)), take);
    }
}

pub(super) fn each_below<'a>(value: &'a Value, argument: u64, take: &mut impl FnMut(u64, &'a Value)) {
    match value {
        Value::Object(fields) => each_leaf(fields, argument, take),
        Value::Array(items) => items.iter().for_each(|item| each_below(item, argument, take)),
        // Array indexes are not part of the argument: the elements of a list have one argument.
        leaf => take(argument, leaf),
    }
}

/// The other notations of a value: its dates, or its groups as one word.
fn alternatives(text: &str, words: &[Word], dates: &[Date]) -> Vec<u64> {
    if !dates.is_empty() && tokens::is_date(text) {
        return dates
            .iter()
            .flat_map(|date| match date.whole {
                Some(whole) => [whole, date.day],
                // A date without a year is known from one that has a year as well.
                None => [date.day, date.day_of_some_year()],
            })
            .collect();
    }
    let length: usize = words.iter().map(|word| word.length).sum();
    let is_grouped =
        (2..=LONG).contains(&words.len()) && words.iter().any(|word| word.has_digit) && length >= GROUPED_FROM;
    if is_grouped { vec![tokens::id_hash(text)] } else { Vec::new() }
}

/// Returns the number of an amount with the name of its currency, such as `USD 23.60` or `20 euros`.
fn without_currency(text: &str) -> Option<&str> {
    const CURRENCIES: [&str; 16] = [
        "usd", "eur", "gbp", "chf", "jpy", "sek", "nok", "dkk", "pln", "cad", "aud", "inr", "euro", "euros", "dollars",
        "pounds",
    ];
    let is_currency = |word: &str| CURRENCIES.iter().any(|currency| currency.eq_ignore_ascii_case(word));
    let (first, second) = text.trim().split_once(' ')?;
    let number = if is_currency(first) { second } else { first };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || b".,".contains(&byte));
    (is_number && (is_currency(first) || is_currency(second))).then_some(number)
}

fn is_address(text: &str) -> bool {
    text.contains('@') && !text.contains(char::is_whitespace)
}

/// A text that the agent received, while it is read.
pub(super) struct Source<'s> {
    pub(super) position: usize,
    pub(super) search: &'s mut Search,
    pub(super) own: &'s HashedSet,
}

impl Source<'_> {
    /// Reads a value: all leaves as one text, so that values assembled from several leaves are found, and each key alone.
    pub(super) fn read(&mut self, value: &Value) {
        self.leaves(value, &mut None);
        self.keys(value);
    }

    fn read_payload(&mut self, payload: Option<Payload<'_>>) {
        match payload {
            Some(Payload::Text(text)) => self.read_text(text),
            Some(Payload::Object(fields)) => self.read_fields(fields),
            Some(Payload::Other(value)) => self.read(value),
            None => {}
        }
    }

    fn read_fields(&mut self, fields: &Map<String, Value>) {
        let mut last = None;
        fields.values().for_each(|value| self.leaves(value, &mut last));
        fields.iter().for_each(|(key, value)| self.key(key, value));
    }

    fn read_text(&mut self, text: &str) {
        self.text(text, &mut None);
    }

    fn leaves(&mut self, value: &Value, last: &mut Option<u64>) {
        match value {
            // `last` continues across leaves, so that the last word of one and the first of the next are a pair.
            Value::Object(fields) => fields.values().for_each(|value| self.leaves(value, last)),
            Value::Array(items) => items.iter().for_each(|item| self.leaves(item, last)),
            Value::String(text) => self.text(text, last),
            Value::Number(_) => {
                // The reader is taken out because `saw` borrows the whole search; its buffer is reused.
                let mut reader = std::mem::take(&mut self.search.reader);
                reader.leaf(value, &mut |token| self.saw(token, last));
                self.search.reader = reader;
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn keys(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.key(key, value)),
            Value::Array(items) => items.iter().for_each(|item| self.keys(item)),
            _ => {}
        }
    }

    fn key(&mut self, key: &str, value: &Value) {
        // A separate text: a key and the value next to it are not adjacent words.
        self.text(key, &mut None);
        self.keys(value);
    }

    fn text(&mut self, text: &str, last: &mut Option<u64>) {
        let mut reader = std::mem::take(&mut self.search.reader);
        reader.restart();
        let text = unescaped(text);
        reader.text(&text, &mut |token| self.saw(token, last));
        self.search.reader = reader;
    }

    fn saw(&mut self, token: Token, last: &mut Option<u64>) {
        let mut note = |word: u64| {
            // The minimum, because sources are not read in order: the stored request has position 0 and comes last.
            if let Some(first) = self.search.seen.get_mut(&word)
                && !self.own.contains(&word)
            {
                *first = self.position.min(*first);
            }
        };
        match token {
            Token::Word(Word { hash, .. }) => {
                note(hash);
                if let Some(last) = last.replace(hash) {
                    note(tokens::pair(last, hash));
                }
            }
            Token::Date(Date { whole: None, day }) => note(day),
            Token::Date(date @ Date { whole: Some(whole), .. }) => {
                note(whole);
                note(date.day_of_some_year());
            }
            Token::Joined(hash) => note(hash),
        }
    }
}

/// Replaces escapes such as `\\u00fc` of JSON within a text by their characters.
fn unescaped(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains("\\u") {
        return text.into();
    }
    let mut parts = text.split("\\u");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        if let Some(character) = code {
            plain.push(character);
            plain.push_str(&part[4..]);
        } else {
            plain.push_str("\\u");
            plain.push_str(part);
        }
    }
    plain.into()
}
