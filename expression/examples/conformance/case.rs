//! One case of the conformance tests: an expression, its variables and the expected value.

use counterproof_expression::{Computed, Expression};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::value;

/// A case, as the converted test data has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Case {
    pub(crate) path: String,
    pub(crate) expr: String,
    /// The expected value, in the JSON form of `cel.expr.Value`.
    value: Option<Json>,
    typed_result: Option<TypedResult>,
    eval_error: Option<Json>,
    #[serde(default)]
    check_only: bool,
    #[serde(default)]
    bindings: Map<String, Json>,
}

#[derive(Debug, Deserialize)]
struct TypedResult {
    result: Option<Json>,
}

/// What a case shows.
pub(crate) enum Verdict {
    Right,
    Wrong(String),
    /// The case cannot be stated over JSON, for this reason.
    NotApplicable(&'static str),
}

/// Parts of expressions that use protobuf messages, enums or extensions.
const MESSAGE_NAMES: [&str; 19] = [
    "BoolValue",
    "BytesValue",
    "DoubleValue",
    "FloatValue",
    "GlobalEnum",
    "Int32Value",
    "Int64Value",
    "NullValue",
    "StringValue",
    "TestAllTypes",
    "TestRequired",
    "UInt32Value",
    "UInt64Value",
    "google.protobuf.Any",
    "google.protobuf.ListValue",
    "google.protobuf.Struct",
    "google.protobuf.Value",
    "proto.getExt",
    "proto.hasExt",
];

/// The reason of cases that use them.
const MESSAGES: &str = "needs protobuf messages or enums";

impl Case {
    /// Evaluates the case.
    pub(crate) fn judge(&self) -> Verdict {
        if self.check_only || matches!(&self.typed_result, Some(TypedResult { result: None })) {
            return Verdict::NotApplicable("checks static types only");
        }
        if MESSAGE_NAMES.iter().any(|name| self.expr.contains(name)) {
            return Verdict::NotApplicable(MESSAGES);
        }
        let want = self.value.as_ref().or(self.typed_result.as_ref().and_then(|typed| typed.result.as_ref()));
        let parts = self.bindings.values().map(|binding| &binding["value"]).chain(want);
        if parts.into_iter().any(value::has_messages) {
            return Verdict::NotApplicable(MESSAGES);
        }
        let found = match (self.compute(), &self.eval_error) {
            (Err(_), Some(_)) => return Verdict::Right,
            (Err(error), None) => return Verdict::Wrong(error),
            (Ok(found), Some(_)) => return Verdict::Wrong(format!("found {found}; expected an error")),
            (Ok(found), None) => found,
        };
        let right = want.map_or(found == Computed::Bool(true), |want| value::is(want, &found));
        if right {
            return Verdict::Right;
        }
        Verdict::Wrong(format!("found {found}; expected {}", want.map_or("true".to_owned(), Json::to_string)))
    }

    /// Computes the value. Variables that JSON cannot hold are bound in the expression.
    fn compute(&self) -> Result<Computed, String> {
        let mut names = Vec::new();
        let mut values = Vec::new();
        let mut text = self.expr.clone();
        for (name, binding) in &self.bindings {
            if let Some(json) = value::to_json(&binding["value"]) {
                names.push(name.as_str());
                values.push(json);
            } else {
                text = format!("cel.bind({name}, {}, {text})", value::to_expression(&binding["value"])?);
            }
        }
        let expression = Expression::compile(&text, &names).map_err(|error| error.message)?;
        expression.compute(&values.iter().collect::<Vec<_>>()).map_err(|error| error.to_string())
    }
}
