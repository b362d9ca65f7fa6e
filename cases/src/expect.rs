//! `expected.expect`: a list of expressions. They are compiled while the file is read, so that an error has its position in
//! the file.

use counterproof_expression::Expression;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::fields::describe;

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
