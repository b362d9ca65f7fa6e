//! Compares the results of both implementations.

use counterproof_expression::{Computed, Expression, NoValue};
use serde_json::Value as Json;

use crate::oracle::Answer;

/// What a comparison shows.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Both have the same value, or both fail.
    Same,
    /// They differ for a reason that the documentation lists.
    Expected(&'static str),
    /// They differ.
    Different(String),
}

/// Messages of the other implementation for expressions that have a value here, and the reason.
const EXPECTED_FAILURES: [(&str, &[&str], &str); 6] = [
    (
        "No matching overloads found : _",
        &[
            "_(int64, double)",
            "_(double, int64)",
            "_(int64, uint64)",
            "_(uint64, int64)",
            "_(uint64, double)",
            "_(double, uint64)",
        ],
        MIXED,
    ),
    ("No matching overloads found : math.", &["(int64)", "(uint64)"], "functions of doubles take integers"),
    ("Applying SELECT to non-message type", &[""], "`has` of a value that is not an object is false"),
    ("<end> is greater than <string>.size()", &[""], "`substring` ends after the last character"),
    (
        "math.",
        &["simple literal arguments", "invalid single argument value"],
        "literals are checked when they are used",
    ),
    ("No matching overloads found : (list).reverse()", &[""], "lists have an extension"),
];

/// Macros that end early.
const QUANTIFIERS: [&str; 2] = [".all(", ".exists("];

/// Macros that bind one value.
const BINDINGS: [&str; 1] = ["cel.bind("];

const MIXED: &str = "arithmetic mixes types of numbers";

/// Evaluates an expression here and compares the result.
pub(crate) fn compare(text: &str, output: &Json, answer: &Answer) -> Verdict {
    let text_has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let ours = match Expression::compile(text, &["output"]) {
        Ok(expression) => expression.compute(&[output]),
        Err(error) => {
            return match answer {
                Answer::Error(_) | Answer::Ended => Verdict::Same,
                Answer::Value(_) if error.message.starts_with("unknown ") => {
                    Verdict::Expected("unknown names are errors before the evaluation")
                }
                Answer::Value(_) if error.message.contains("invalid double") => {
                    Verdict::Expected("a literal above the largest double is an error")
                }
                Answer::Value(value) => Verdict::Different(format!("error `{}`; expected {value}", error.message)),
            };
        }
    };
    match (ours, answer) {
        (_, Answer::Ended) => Verdict::Expected("the other implementation crashes"),
        (Err(NoValue::TooLong), _) => Verdict::Expected("too many steps"),
        (Err(_), Answer::Error(_)) => Verdict::Same,
        (Ok(value), Answer::Error(message)) => match expected_failure(message) {
            Some(reason) => Verdict::Expected(reason),
            None => Verdict::Different(format!("value {value}; expected the error `{message}`")),
        },
        (Err(error), _) if error.to_string().contains("not base64: Invalid symbol 32") => {
            Verdict::Expected("base64 has no spaces")
        }
        (Err(error), _) if error.to_string() == "`int` does not take a boolean" => {
            Verdict::Expected("`int` takes no booleans, as CEL specifies")
        }
        (Err(error), Answer::Value(value)) => Verdict::Different(format!("error `{error}`; expected {value}")),
        (Ok(found), Answer::Value(value)) if is(&found, value, true) => Verdict::Same,
        (Ok(_), Answer::Value(_)) if text_has(&BINDINGS) && text_has(&QUANTIFIERS) => {
            Verdict::Expected("the other implementation confuses bound variables after `all` and `exists`")
        }
        (Ok(found), Answer::Value(value)) => Verdict::Different(format!("value {found}; expected {value}")),
    }
}

fn expected_failure(message: &str) -> Option<&'static str> {
    let matches = |(start, parts, _): &&(&str, &[&str], &str)| {
        message.contains(start) && parts.iter().any(|part| message.contains(part))
    };
    EXPECTED_FAILURES.iter().find(matches).map(|(_, _, reason)| *reason)
}

/// Returns whether a value is the expected one. Within lists and maps, both types of integers are reported as "int".
fn is(found: &Computed, want: &Json, outermost: bool) -> bool {
    let (kind, value) = (want[0].as_str().unwrap_or_default(), &want[1]);
    let text = value.as_str().unwrap_or_default();
    match (kind, found) {
        ("null", Computed::Null) | ("other", Computed::Type(_)) => true,
        ("bool", Computed::Bool(found)) => value == found,
        ("int", Computed::Int(found)) => text == found.to_string().as_str(),
        ("uint", Computed::Uint(found)) => text == found.to_string().as_str(),
        ("int", Computed::Uint(found)) if !outermost => text == found.to_string().as_str(),
        ("double", Computed::Double(found)) => {
            text.parse::<f64>().is_ok_and(|want| want.total_cmp(found).is_eq() || want.is_nan() && found.is_nan())
        }
        ("string", Computed::String(found)) => text == found,
        ("bytes", Computed::Bytes(found)) => {
            found.len() * 2 == text.len()
                && found.iter().enumerate().all(|(index, byte)| {
                    text.get(2 * index..2 * index + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()) == Some(*byte)
                })
        }
        ("timestamp", Computed::Timestamp(found)) => {
            let time = found.parse::<jiff::Timestamp>();
            time.is_ok_and(|time| text.parse() == Ok(time.as_microsecond()))
        }
        ("duration", Computed::Duration(found)) => {
            let duration = found.parse::<jiff::SignedDuration>();
            duration.is_ok_and(|duration| text.parse() == Ok(duration.as_micros()))
        }
        ("list", Computed::List(found)) => {
            let want = value.as_array().map_or(&[][..], Vec::as_slice);
            want.len() == found.len() && found.iter().zip(want).all(|(found, want)| is(found, want, false))
        }
        ("map", Computed::Map(found)) => {
            let want = value.as_array().map_or(&[][..], Vec::as_slice);
            let same = |(key, value): &(Computed, Computed), want: &Json| {
                is(key, &want[0], false) && is(value, &want[1], false)
            };
            want.len() == found.len() && found.iter().all(|found| want.iter().any(|want| same(found, want)))
        }
        _ => false,
    }
}
