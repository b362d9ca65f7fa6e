//! Finds the first position of each searched word in everything that an agent received.

use counterproof_artifact::{EventBody, ToolStatus};
use serde_json::{Map, Value};

use super::arithmetic::is_arithmetic;
use super::origins::{LONG, Origin, SMALL, each_leaf, is_prose};
use super::tokens::{self, Reader, Token, Word};
use crate::load::LoadedAnswer;
use crate::load::case_input::CaseInput;
use crate::load::payload::Payload;
use crate::values::hashed::{HashedMap, HashedSet};

/// The words to search for a value.
#[derive(Debug)]
pub(super) enum SearchTerms {
    /// Nothing: the value is too common.
    Nothing,
    /// All of these words.
    Words(std::ops::Range<usize>),
    /// The numbers of an arithmetic expression, which may have different origins.
    Sum(std::ops::Range<usize>),
    /// All of these words, or the date with or without its year.
    Date(std::ops::Range<usize>, [u64; 2]),
}

/// The searched words, and where each first occurs.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The first position of each word, pair of words or date, or `UNSEEN`. The input is position 0, event i is i + 1.
    seen: HashedMap<usize>,
    words: Vec<u64>,
    reader: Reader,
}

/// Greater than every position, so that the maximum over the words of a value is `UNSEEN` if one of them is.
const UNSEEN: usize = usize::MAX;

impl Search {
    /// Adds the words to search for a value.
    pub(super) fn add_terms(&mut self, value: &Value) -> SearchTerms {
        match value {
            Value::String(_) => {}
            Value::Number(number) if number.as_i128().is_none_or(|whole| whole.abs() >= SMALL) => {}
            _ => return SearchTerms::Nothing,
        }
        let (mut words, mut is_date) = (Vec::<Word>::new(), false);
        self.reader.restart();
        self.reader.leaf(value, &mut |token| match token {
            Token::Word(word) => words.push(word),
            Token::Date { whole, .. } => is_date |= whole,
        });
        let start = self.words.len();
        // A date takes precedence: with spaces, `27 / 5 / 2024` also matches the grammar of a division.
        let is_sum = !is_date && value.as_str().is_some_and(is_arithmetic);
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
            // A name may be assembled from its parts. Words with numbers must be adjacent in their origin.
            words if words.iter().all(|word| !word.has_digit) => {
                self.words.extend(words.iter().map(|word| word.hash));
            }
            // Pairs of adjacent words: an id such as `order 17` must not be assembled from unrelated parts.
            words => self.words.extend(words.windows(2).map(|two| tokens::pair(two[0].hash, two[1].hash))),
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
        match value.as_str().and_then(tokens::whole_date) {
            Some(date) => {
                for way in date {
                    self.seen.entry(way).or_insert(UNSEEN);
                }
                SearchTerms::Date(range, date)
            }
            None => SearchTerms::Words(range),
        }
    }

    /// Reads the input from the cases file.
    pub(super) fn read_input(&mut self, asked: &CaseInput<'_>) {
        let mut input = Source { position: 0, search: self, own: &HashedSet::default() };
        asked.case_texts(|value| input.read(value));
    }

    /// Reads everything that the agent received in events. Returns the position of the first payload that was too large.
    pub(super) fn read_events(&mut self, loaded: &LoadedAnswer) -> usize {
        // Shared by all events but failed results, so that most events allocate nothing.
        let nothing = HashedSet::default();
        for (index, event) in loaded.answer.events.iter().enumerate() {
            let own = match &event.body {
                EventBody::ToolResult(result) if result.status == ToolStatus::Error => {
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
                EventBody::Unknown { fields, .. } => source.read_fields(fields),
                EventBody::ToolCall(_) | EventBody::FinalOutput(_) => {}
            }
        }
        loaded.payloads.first_unread().map_or(UNSEEN, |index| index + 1)
    }

    /// Returns the searched words of a failed call's arguments. Errors often repeat them, which is no origin.
    fn own_words(&mut self, args: &Map<String, Value>) -> HashedSet {
        let start = self.words.len();
        let mut dates = Vec::new();
        each_leaf(args, 0, &mut |_, value| {
            if let SearchTerms::Date(_, ways) = self.add_terms(value) {
                dates.extend(ways);
            }
        });
        // These words are removed again; they stay registered in `seen`, which does no harm.
        self.words.drain(start..).chain(dates).collect()
    }

    pub(super) fn origin(&self, terms: &SearchTerms, limit: usize, opaque: usize) -> Origin {
        let position = |word: &u64| self.seen.get(word).copied().unwrap_or(UNSEEN);
        let all =
            |range: &std::ops::Range<usize>| self.words[range.clone()].iter().map(position).max().unwrap_or(UNSEEN);
        // All words must have been received, so the last of them decides. A date needs only one of its notations.
        let first = match terms {
            SearchTerms::Nothing => return Origin::Exempt,
            SearchTerms::Words(range) | SearchTerms::Sum(range) => all(range),
            SearchTerms::Date(range, ways) => ways.iter().map(position).min().unwrap_or(UNSEEN).min(all(range)),
        };
        match first {
            0 => Origin::Input,
            // Event i has position i + 1, so this holds for the events before the one with the index `limit`.
            position if position <= limit => Origin::Event(position - 1),
            _ if opaque <= limit => Origin::Unknown,
            _ => Origin::Nowhere,
        }
    }
}

/// A text that the agent received, while it is read.
pub(super) struct Source<'s> {
    pub(super) position: usize,
    pub(super) search: &'s mut Search,
    /// Words that do not count here.
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
        // A text of its own: a key and the value next to it are no adjacent words.
        self.text(key, &mut None);
        self.keys(value);
    }

    fn text(&mut self, text: &str, last: &mut Option<u64>) {
        let mut reader = std::mem::take(&mut self.search.reader);
        reader.restart();
        reader.text(text, &mut |token| self.saw(token, last));
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
            Token::Date { hash, .. } => note(hash),
        }
    }
}
