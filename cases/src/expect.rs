//! `expected.expect`: a list of expressions, compiled where they are read, so that what is wrong with one is told with its
//! place in the file.

use counterproof_expression::Expression;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::fields::kind;

/// What an expression may speak of, in the order in which [`Expression::evaluate`] takes their values.
pub const VARIABLES: [&str; 4] = ["final_output", "proposed_actions", "events", "input"];

/// An expression that has to hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// What it is about, for people.
    pub name: Option<String>,
    /// What has to hold, over [`VARIABLES`].
    pub expression: Expression,
}

impl Serialize for Expect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.name {
            None => self.expression.serialize(serializer),
            Some(name) => json!({"name": name, "expr": self.expression.source()}).serialize(serializer),
        }
    }
}

/// What is wrong with an element of the list.
pub(crate) struct Wrong {
    /// The field within the element, where it is in one.
    pub(crate) field: Option<&'static str>,
    pub(crate) message: String,
    pub(crate) remedy: String,
    /// The expression and the part of it that is wrong, in bytes.
    pub(crate) marked: Option<(String, std::ops::Range<usize>)>,
}

impl Wrong {
    fn plain(message: String, remedy: &str) -> Self {
        Self { field: None, message, remedy: remedy.to_owned(), marked: None }
    }
}

/// Reads an element of the list: an expression, or an object with a name for it.
pub(crate) fn expect(item: Value) -> Result<Expect, Wrong> {
    match item {
        Value::String(source) => compile(&source, None).map(|expression| Expect { name: None, expression }),
        Value::Object(fields) => named(fields),
        other => Err(Wrong::plain(
            format!("is {}; expected an expression, or an object with `name` and `expr`", kind(&other)),
            "write a text such as \"final_output.content.contains('refund')\"",
        )),
    }
}

fn named(mut fields: Map<String, Value>) -> Result<Expect, Wrong> {
    const FORM: &str = "write it as {name: …, expr: …}";
    let name = match fields.shift_remove("name") {
        None => None,
        Some(Value::String(name)) => Some(name),
        Some(other) => {
            let wrong = Wrong::plain(format!("is {}; expected a text", kind(&other)), "say what it is about");
            return Err(Wrong { field: Some("name"), ..wrong });
        }
    };
    let expression = match fields.shift_remove("expr") {
        Some(Value::String(source)) => compile(&source, Some("expr"))?,
        Some(other) => {
            let wrong = Wrong::plain(format!("is {}; expected an expression, which is a text", kind(&other)), FORM);
            return Err(Wrong { field: Some("expr"), ..wrong });
        }
        None => return Err(Wrong::plain("has no `expr`".to_owned(), FORM)),
    };
    // What it asks would be silently left out.
    match fields.keys().next() {
        Some(key) => Err(Wrong::plain(format!("has `{key}`, which means nothing here"), FORM)),
        None => Ok(Expect { name, expression }),
    }
}

fn compile(source: &str, field: Option<&'static str>) -> Result<Expression, Wrong> {
    Expression::compile(source, &VARIABLES).map_err(|error| Wrong {
        field,
        message: format!("is no expression that can be used: {}", error.message),
        remedy: error.remedy,
        marked: Some((source.to_owned(), error.span)),
    })
}
