//! Typed access to the fields of an object. A field of the wrong type becomes a [`Problem`] with its position.

use counterproof_artifact::pointer;
use counterproof_expression::Expression;
use counterproof_validation::json_schema::JsonSchema;
use counterproof_validation::nearest;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::document::{Document, Part};
use crate::load::{Marked, Problem};

/// Collects the problems of one case.
#[derive(Debug)]
pub(crate) struct ProblemLog<'d> {
    document: &'d Document,
    case_id: Option<String>,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

impl<'d> ProblemLog<'d> {
    pub(crate) fn new(document: &'d Document, case_id: Option<String>) -> Self {
        Self { document, case_id, errors: Vec::new(), warnings: Vec::new() }
    }

    pub(crate) fn error(&mut self, pointer: &str, message: impl Into<String>, remedy: impl Into<String>) {
        let problem = self.problem(pointer, Part::Value, message.into(), remedy.into());
        self.errors.push(problem);
    }

    fn invalid_expect(&mut self, pointer: &str, name: &str, invalid: InvalidExpect) {
        let mut problem = self.problem(pointer, Part::Value, format!("`{name}` {}", invalid.message), invalid.remedy);
        if let Some((text, span)) = invalid.marked {
            problem.position = self.document.position_within(pointer, &text, span.start);
            problem.marked = Some(Marked { text, span });
        }
        self.errors.push(problem);
    }

    /// Adds a warning that points at the key of a field.
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

/// The fields of an object that are not read yet. Each read removes its field.
pub(crate) struct Fields<'l, 'd> {
    map: Map<String, Value>,
    pointer: String,
    /// Prefix of field names in messages: empty for the case itself, `input.` for its input.
    prefix: String,
    log: &'l mut ProblemLog<'d>,
}

impl<'l, 'd> Fields<'l, 'd> {
    pub(crate) fn new(map: Map<String, Value>, pointer: String, log: &'l mut ProblemLog<'d>) -> Self {
        Self { map, pointer, prefix: String::new(), log }
    }

    /// Reads an object. `example` completes the remedy for a value of another type.
    pub(crate) fn object(&mut self, key: &str, example: &str) -> Option<Fields<'_, 'd>> {
        // Not `swap_remove`: the remaining fields keep the order of the file, in the request as well.
        let map = match self.map.shift_remove(key)? {
            Value::Object(map) => map,
            // The remedy for null is to remove the field, not to write an object.
            Value::Null => return self.type_mismatch(key, &Value::Null, "an object"),
            other => {
                let message = mismatch(&format!("{}{key}", self.prefix), &other, "an object");
                self.invalid(key, message, format!("write an object, such as {example}"));
                return None;
            }
        };
        let (pointer, prefix) = (pointer::child(&self.pointer, key), format!("{}{key}.", self.prefix));
        Some(Fields { map, pointer, prefix, log: self.log })
    }

    /// Reads a list of objects that is not empty. `example` completes the remedy for a value of another type.
    pub(crate) fn objects<T>(
        &mut self,
        key: &str,
        example: &str,
        mut read: impl FnMut(Fields<'_, 'd>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = match self.map.shift_remove(key)? {
            Value::Array(items) if !items.is_empty() => items,
            other => {
                let message = match &other {
                    Value::Array(_) => format!("`{}{key}` is an empty list", self.prefix),
                    other => mismatch(&format!("{}{key}", self.prefix), other, "a list of objects"),
                };
                self.invalid(key, message, format!("write a list, such as {example}"));
                return None;
            }
        };
        let mut found = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let pointer = format!("{}/{index}", pointer::child(&self.pointer, key));
            let prefix = format!("{}{key}[{index}].", self.prefix);
            match item {
                Value::Object(map) => found.extend(read(Fields { map, pointer, prefix, log: self.log })),
                other => {
                    let message = mismatch(prefix.trim_end_matches('.'), &other, "an object");
                    self.log.error(&pointer, message, format!("write a list, such as {example}"));
                }
            }
        }
        Some(found)
    }

    /// Adds a warning about a field, which may already be read.
    pub(crate) fn warn(&mut self, key: &str, message: &str, remedy: &str) {
        self.log.warn(&pointer::child(&self.pointer, key), message, remedy);
    }

    pub(crate) fn string(&mut self, key: &str) -> Option<String> {
        match self.map.shift_remove(key)? {
            Value::String(text) => Some(text),
            other => self.type_mismatch(key, &other, "a string"),
        }
    }

    pub(crate) fn boolean(&mut self, key: &str) -> Option<bool> {
        match self.map.shift_remove(key)? {
            Value::Bool(boolean) => Some(boolean),
            other => self.type_mismatch(key, &other, "true or false"),
        }
    }

    /// Reads a number of zero or more.
    pub(crate) fn number(&mut self, key: &str) -> Option<f64> {
        let value = self.map.shift_remove(key)?;
        match value.as_f64().filter(|number| *number >= 0.0) {
            Some(number) => Some(number),
            None => self.type_mismatch(key, &value, "a number of zero or more"),
        }
    }

    /// Reads a whole number of zero or more.
    pub(crate) fn count(&mut self, key: &str) -> Option<u64> {
        let value = self.map.shift_remove(key)?;
        match value.as_u64() {
            Some(count) => Some(count),
            None => self.type_mismatch(key, &value, "a whole number of zero or more"),
        }
    }

    pub(crate) fn strings(&mut self, key: &str) -> Option<Vec<String>> {
        let items = match self.map.shift_remove(key)? {
            Value::Array(items) => items,
            other => return self.type_mismatch(key, &other, "a list of strings"),
        };
        // The loop goes on after an error, so that all problems are reported at once.
        let mut strings = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => strings.push(text),
                other => {
                    let pointer = format!("{}/{index}", pointer::child(&self.pointer, key));
                    let message = mismatch(&format!("{}{key}[{index}]", self.prefix), &other, "a string");
                    self.log.error(&pointer, message, remedy(&other, "a string"));
                }
            }
        }
        Some(strings)
    }

    /// Reads a list of expressions, each with or without a name.
    pub(crate) fn expressions(&mut self, key: &str) -> Option<Vec<Expect>> {
        let items = match self.map.shift_remove(key)? {
            Value::Array(items) => items,
            other => return self.type_mismatch(key, &other, "a list of expressions"),
        };
        let mut expressions = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match parse(item) {
                Ok(expression) => expressions.push(expression),
                Err(invalid) => {
                    let mut pointer = format!("{}/{index}", pointer::child(&self.pointer, key));
                    let mut name = format!("{}{key}[{index}]", self.prefix);
                    if let Some(field) = invalid.field {
                        pointer = pointer::child(&pointer, field);
                        name = format!("{name}.{field}");
                    }
                    self.log.invalid_expect(&pointer, &name, invalid);
                }
            }
        }
        Some(expressions)
    }

    /// Reads a JSON Schema: an object, true or false.
    pub(crate) fn schema(&mut self, key: &str) -> Option<Value> {
        match self.map.shift_remove(key)? {
            // Compiled only to report errors at their position. A compiled schema is too large to stay in memory.
            schema @ (Value::Object(_) | Value::Bool(_)) => match JsonSchema::compile(&schema) {
                Ok(compiled) => {
                    if let Some(reason) = compiled.too_costly() {
                        let message = format!("`{}{key}` is always undecided: {reason}", self.prefix);
                        self.log.warn(&pointer::child(&self.pointer, key), message, "simplify the schema");
                    }
                    Some(fitted(schema))
                }
                Err(error) => {
                    let pointer = format!("{}{}", pointer::child(&self.pointer, key), error.pointer);
                    let message = format!("`{}{key}`: {error}", self.prefix);
                    self.log.error(&pointer, message, "correct the schema at this position");
                    None
                }
            },
            other => self.type_mismatch(key, &other, "a JSON Schema"),
        }
    }

    /// Reads a value of any type. Null counts as a value.
    pub(crate) fn any(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key).map(fitted)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Reports a required field that is missing.
    pub(crate) fn missing(&mut self, key: &str, remedy: &str) {
        self.log.error(&self.pointer, format!("`{}{key}` is missing", self.prefix), remedy);
    }

    /// Reports an invalid value of a field, which may already be read.
    pub(crate) fn invalid(&mut self, key: &str, message: impl Into<String>, remedy: impl Into<String>) {
        self.log.error(&pointer::child(&self.pointer, key), message, remedy);
    }

    /// Returns the remaining fields.
    pub(crate) fn rest(self) -> Map<String, Value> {
        fitted_map(self.map)
    }

    /// Returns the remaining fields, and warns that none of them is evaluated.
    pub(crate) fn rest_unknown(self, what: &str, known: &[&str]) -> Map<String, Value> {
        for key in self.map.keys() {
            let remedy = match nearest(key, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known names: {}", known.join(", ")),
            };
            let message = format!("`{}{key}` is not a known {what} and is not evaluated", self.prefix);
            self.log.warn(&pointer::child(&self.pointer, key), message, remedy);
        }
        self.rest()
    }

    /// Returns the remaining fields, and warns of names that are close to a known one.
    pub(crate) fn rest_misspelt(self, known: &[&str]) -> Map<String, Value> {
        for key in self.map.keys() {
            // A case may have further fields, so only a name close to a known one is suspicious.
            if let Some(near) = nearest(key, known) {
                let message = format!("`{}{key}` is not a known field; it is stored but not used", self.prefix);
                self.log.warn(&pointer::child(&self.pointer, key), message, format!("did you mean `{near}`?"));
            }
        }
        self.rest()
    }

    fn type_mismatch<T>(&mut self, key: &str, found: &Value, expected: &str) -> Option<T> {
        let message = mismatch(&format!("{}{key}", self.prefix), found, expected);
        self.log.error(&pointer::child(&self.pointer, key), message, remedy(found, expected));
        None
    }
}

/// Returns the value without spare capacity. Parsers over-allocate lists and objects, and a suite stays in memory.
fn fitted(value: Value) -> Value {
    match value {
        // Collecting again allocates the exact size.
        Value::Array(items) => Value::Array(items.into_iter().map(fitted).collect::<Box<[_]>>().into_vec()),
        Value::Object(fields) => Value::Object(fitted_map(fields)),
        other => other,
    }
}

fn fitted_map(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name, fitted(value))).collect()
}

fn mismatch(name: &str, found: &Value, expected: &str) -> String {
    format!("`{name}` is {}; expected {expected}", describe(found))
}

/// Describes a value by its type, and a boolean or number by its value too.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(boolean) => format!("the boolean {boolean}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn remedy(found: &Value, expected: &str) -> String {
    match (found, expected) {
        (Value::Null, _) => "give it a value, or remove the field".to_owned(),
        (Value::Bool(_) | Value::Number(_), "a string") => format!("put it in quotes: \"{found}\""),
        (Value::String(_), "a list of strings" | "a list of expressions") => format!("write it as a list: [{found}]"),
        _ => format!("write {expected}"),
    }
}

/// The variables of an expression, in the order in which [`Expression::evaluate`] takes their values.
pub const VARIABLES: [&str; 4] = ["final_output", "proposed_actions", "events", "input"];

/// An expression that must be true.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    pub name: Option<String>,
    /// The condition, over [`VARIABLES`].
    pub expression: Expression,
    /// True for a hard expectation. If new does not meet it, the gate fails.
    pub must: bool,
    /// True for a draft, which a person has not read yet: it is not evaluated.
    pub draft: bool,
}

impl Serialize for Expect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.name.is_none() && !self.must && !self.draft {
            return self.expression.serialize(serializer);
        }
        let mut fields = Map::new();
        if let Some(name) = &self.name {
            fields.insert("name".to_owned(), json!(name));
        }
        fields.insert("expr".to_owned(), json!(self.expression.source()));
        if self.must {
            fields.insert("must".to_owned(), json!(true));
        }
        if self.draft {
            fields.insert("draft".to_owned(), json!(true));
        }
        fields.serialize(serializer)
    }
}

/// An invalid element of the list.
pub(crate) struct InvalidExpect {
    /// The field within the element, if the error is in one.
    pub(crate) field: Option<&'static str>,
    pub(crate) message: String,
    pub(crate) remedy: String,
    /// The expression and the byte range of the error.
    pub(crate) marked: Option<(String, std::ops::Range<usize>)>,
}

impl InvalidExpect {
    fn new(message: String, remedy: &str) -> Self {
        Self { field: None, message, remedy: remedy.to_owned(), marked: None }
    }
}

/// Parses an element of the list: an expression, or an object with `name`, `expr`, `must` and `draft`.
pub(crate) fn parse(item: Value) -> Result<Expect, InvalidExpect> {
    match item {
        Value::String(source) => {
            compile(&source, None).map(|expression| Expect { name: None, expression, must: false, draft: false })
        }
        Value::Object(fields) => named(fields),
        other => Err(InvalidExpect::new(
            format!("is {}; expected an expression, or an object with `name` and `expr`", describe(&other)),
            "write a string such as \"final_output.content.contains('refund')\"",
        )),
    }
}

fn named(mut fields: Map<String, Value>) -> Result<Expect, InvalidExpect> {
    const FORM: &str = "write it as {name: …, expr: …}";
    let name = match fields.shift_remove("name") {
        None => None,
        Some(Value::String(name)) => Some(name),
        Some(other) => {
            let invalid =
                InvalidExpect::new(format!("is {}; expected a string", describe(&other)), "write a short name");
            return Err(InvalidExpect { field: Some("name"), ..invalid });
        }
    };
    let must = flag(&mut fields, "must")?;
    let draft = flag(&mut fields, "draft")?;
    let expression = match fields.shift_remove("expr") {
        Some(Value::String(source)) => compile(&source, Some("expr"))?,
        Some(other) => {
            let invalid =
                InvalidExpect::new(format!("is {}; expected an expression, which is a string", describe(&other)), FORM);
            return Err(InvalidExpect { field: Some("expr"), ..invalid });
        }
        None => return Err(InvalidExpect::new("has no `expr`".to_owned(), FORM)),
    };
    // An unknown key would be ignored silently, and with it a condition that the author expects.
    match fields.keys().next() {
        Some(key) => Err(InvalidExpect::new(format!("has the unknown key `{key}`"), FORM)),
        None => Ok(Expect { name, expression, must, draft }),
    }
}

fn flag(fields: &mut Map<String, Value>, name: &'static str) -> Result<bool, InvalidExpect> {
    match fields.shift_remove(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(other) => {
            let invalid =
                InvalidExpect::new(format!("is {}; expected true or false", describe(&other)), "write true or false");
            Err(InvalidExpect { field: Some(name), ..invalid })
        }
    }
}

fn compile(source: &str, field: Option<&'static str>) -> Result<Expression, InvalidExpect> {
    Expression::compile(source, &VARIABLES).map_err(|error| InvalidExpect {
        field,
        message: format!("is not a valid expression: {}", error.message),
        remedy: error.remedy,
        marked: Some((source.to_owned(), error.span)),
    })
}
