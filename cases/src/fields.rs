//! The fields of an object, taken one by one: a field of the wrong type becomes a problem that says where and why.

use counterproof_artifact::pointer;
use serde_json::{Map, Value};

use crate::document::{Document, Part};
use crate::expect::{self, Expect, Wrong};
use crate::json_schema;
use crate::problem::{Marked, Problem};

/// Where the problems of one case are gathered.
#[derive(Debug)]
pub(crate) struct Log<'d> {
    document: &'d Document,
    case_id: Option<String>,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

impl<'d> Log<'d> {
    pub(crate) fn new(document: &'d Document, case_id: Option<String>) -> Self {
        Self { document, case_id, errors: Vec::new(), warnings: Vec::new() }
    }

    pub(crate) fn error(&mut self, pointer: &str, message: impl Into<String>, remedy: impl Into<String>) {
        let problem = self.problem(pointer, Part::Value, message.into(), remedy.into());
        self.errors.push(problem);
    }

    /// What is wrong with an expression.
    fn wrong_expression(&mut self, pointer: &str, name: &str, wrong: Wrong) {
        let mut problem = self.problem(pointer, Part::Value, format!("`{name}` {}", wrong.message), wrong.remedy);
        if let Some((text, span)) = wrong.marked {
            problem.position = self.document.position_within(pointer, &text, span.start);
            problem.marked = Some(Marked { text, span });
        }
        self.errors.push(problem);
    }

    /// A warning about the name of a field.
    pub(crate) fn warn(&mut self, pointer: &str, message: impl Into<String>, remedy: impl Into<String>) {
        let problem = self.problem(pointer, Part::Key, message.into(), remedy.into());
        self.warnings.push(problem);
    }

    fn problem(&self, pointer: &str, part: Part, message: String, remedy: String) -> Problem {
        Problem {
            file: self.document.file().to_owned(),
            position: self.document.position(pointer, part),
            pointer: pointer.to_owned(),
            case_id: self.case_id.clone(),
            message,
            remedy,
            marked: None,
        }
    }
}

/// The fields of an object that nobody has taken yet.
pub(crate) struct Fields<'l, 'd> {
    map: Map<String, Value>,
    pointer: String,
    /// How messages name the object: empty for the case itself, `input.` for its input.
    prefix: String,
    log: &'l mut Log<'d>,
}

impl<'l, 'd> Fields<'l, 'd> {
    pub(crate) fn of_case(map: Map<String, Value>, pointer: String, log: &'l mut Log<'d>) -> Self {
        Self { map, pointer, prefix: String::new(), log }
    }

    /// The fields of an object in a field, which looks like the example: all absent where the field is.
    pub(crate) fn object(&mut self, key: &str, example: &str) -> Option<Fields<'_, 'd>> {
        let map = match self.map.shift_remove(key)? {
            Value::Object(map) => map,
            Value::Null => return self.mistyped(key, &Value::Null, "an object"),
            other => {
                let message = mismatch(&format!("{}{key}", self.prefix), &other, "an object");
                self.wrong(key, message, format!("write an object, such as {example}"));
                return None;
            }
        };
        let (pointer, prefix) = (pointer::child(&self.pointer, key), format!("{}{key}.", self.prefix));
        Some(Fields { map, pointer, prefix, log: self.log })
    }

    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        match self.map.shift_remove(key)? {
            Value::String(text) => Some(text),
            other => self.mistyped(key, &other, "a text"),
        }
    }

    pub(crate) fn boolean(&mut self, key: &str) -> Option<bool> {
        match self.map.shift_remove(key)? {
            Value::Bool(boolean) => Some(boolean),
            other => self.mistyped(key, &other, "true or false"),
        }
    }

    pub(crate) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        let items = match self.map.shift_remove(key)? {
            Value::Array(items) => items,
            other => return self.mistyped(key, &other, "a list of texts"),
        };
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text),
                other => {
                    let pointer = format!("{}/{index}", pointer::child(&self.pointer, key));
                    let message = mismatch(&format!("{}{key}[{index}]", self.prefix), &other, "a text");
                    self.log.error(&pointer, message, remedy(&other, "a text"));
                }
            }
        }
        Some(texts)
    }

    /// A list of expressions, each alone or with a name.
    pub(crate) fn expressions(&mut self, key: &str) -> Option<Vec<Expect>> {
        let items = match self.map.shift_remove(key)? {
            Value::Array(items) => items,
            other => return self.mistyped(key, &other, "a list of expressions"),
        };
        let mut expressions = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match expect::expect(item) {
                Ok(expression) => expressions.push(expression),
                Err(wrong) => {
                    let mut pointer = format!("{}/{index}", pointer::child(&self.pointer, key));
                    let mut name = format!("{}{key}[{index}]", self.prefix);
                    if let Some(field) = wrong.field {
                        pointer = pointer::child(&pointer, field);
                        name = format!("{name}.{field}");
                    }
                    self.log.wrong_expression(&pointer, &name, wrong);
                }
            }
        }
        Some(expressions)
    }

    /// A JSON Schema: an object, or true or false.
    pub(crate) fn schema(&mut self, key: &str) -> Option<Value> {
        match self.map.shift_remove(key)? {
            schema @ (Value::Object(_) | Value::Bool(_)) => match json_schema::validator(&schema) {
                Ok(_) => Some(fitted(schema)),
                Err(error) => {
                    let pointer = format!("{}{}", pointer::child(&self.pointer, key), error.pointer);
                    let message = format!("`{}{key}`: {error}", self.prefix);
                    self.log.error(&pointer, message, "correct it there");
                    None
                }
            },
            other => self.mistyped(key, &other, "a JSON Schema"),
        }
    }

    /// Whatever stands there, null included.
    pub(crate) fn any(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key).map(fitted)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Notes that a field is not there which has to be.
    pub(crate) fn missing(&mut self, key: &str, remedy: &str) {
        self.log.error(&self.pointer, format!("`{}{key}` is missing", self.prefix), remedy);
    }

    /// Notes what is wrong with the value of a field, which may be taken already.
    pub(crate) fn wrong(&mut self, key: &str, message: impl Into<String>, remedy: impl Into<String>) {
        self.log.error(&pointer::child(&self.pointer, key), message, remedy);
    }

    /// The fields that are left.
    pub(crate) fn rest(self) -> Map<String, Value> {
        fitted_map(self.map)
    }

    /// The fields that are left, each with a warning that it is not judged.
    pub(crate) fn rest_unknown(self, what: &str, known: &[&str]) -> Map<String, Value> {
        for key in self.map.keys() {
            let remedy = match nearest(key, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.join(", ")),
            };
            let message = format!("`{}{key}` is no {what} that this version knows; it is not judged", self.prefix);
            self.log.warn(&pointer::child(&self.pointer, key), message, remedy);
        }
        self.rest()
    }

    /// The fields that are left, with a warning for those that look misspelt.
    pub(crate) fn rest_misspelt(self, known: &[&str]) -> Map<String, Value> {
        for key in self.map.keys() {
            if let Some(near) = nearest(key, known) {
                let message = format!("`{}{key}` is kept, but has no meaning to this version", self.prefix);
                self.log.warn(&pointer::child(&self.pointer, key), message, format!("did you mean `{near}`?"));
            }
        }
        self.rest()
    }

    fn mistyped<T>(&mut self, key: &str, found: &Value, expected: &str) -> Option<T> {
        let message = mismatch(&format!("{}{key}", self.prefix), found, expected);
        self.log.error(&pointer::child(&self.pointer, key), message, remedy(found, expected));
        None
    }
}

/// The same value with no room to grow: parsers leave some in every list and object, and a suite stays in memory whole.
fn fitted(value: Value) -> Value {
    match value {
        // Collected anew, each gets as much room as it needs.
        Value::Array(items) => Value::Array(items.into_iter().map(fitted).collect::<Box<[_]>>().into_vec()),
        Value::Object(fields) => Value::Object(fitted_map(fields)),
        other => other,
    }
}

fn fitted_map(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name, fitted(value))).collect()
}

fn mismatch(name: &str, found: &Value, expected: &str) -> String {
    format!("`{name}` is {}; expected {expected}", kind(found))
}

/// What a value is, in words.
pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(boolean) => format!("the boolean {boolean}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn remedy(found: &Value, expected: &str) -> String {
    match (found, expected) {
        (Value::Null, _) => "give it a value, or leave the field out".to_owned(),
        (Value::Bool(_) | Value::Number(_), "a text") => format!("put it in quotes: \"{found}\""),
        (Value::String(_), "a list of texts" | "a list of expressions") => format!("write it as a list: [{found}]"),
        _ => format!("write {expected}"),
    }
}

/// The known word that a word may be a slip of the pen for.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let distance = |other: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &other.to_lowercase());
    let (steps, near) = known.iter().map(|candidate| (distance(candidate), *candidate)).min()?;
    (steps <= 1 + near.len() / 5).then_some(near)
}
