//! Functions: their arguments, results and costs in steps.

use super::evaluation::{Evaluated, Evaluation, failed, shortened};
use crate::node::{Function, Node, Pattern};
use crate::pattern::Matcher;
use crate::value::Value;

/// Bytes of a string that are matched against a regular expression in one step.
const MATCHED_BYTES_PER_STEP: usize = 4;

/// Steps for compiling a computed regular expression.
const COMPILE_STEPS: u64 = 5_000;

/// Maximum length of a computed regular expression, in bytes.
const MAX_COMPUTED_BYTES: usize = 1_000;

impl<'j> Evaluation<'j, '_> {
    pub(super) fn call(&mut self, function: Function, arguments: &[Node]) -> Evaluated<'j> {
        let values: Vec<Value<'j>> = arguments.iter().map(|argument| self.value(argument)).collect::<Result<_, _>>()?;
        match (function, values.as_slice()) {
            (Function::Size, [Value::String(text)]) => {
                self.charge_bytes(text.as_str().len())?;
                Ok(int(text.as_str().chars().count()))
            }
            (Function::Size, [Value::List(list)]) => Ok(int(list.len())),
            (Function::Size, [Value::Map(map)]) => Ok(int(map.len())),
            (Function::Contains, [Value::String(text), Value::String(part)]) => {
                self.charge_bytes(text.as_str().len() + part.as_str().len())?;
                Ok(Value::Bool(text.as_str().contains(part.as_str())))
            }
            (Function::StartsWith, [Value::String(text), Value::String(part)]) => {
                self.charge_bytes(part.as_str().len())?;
                Ok(Value::Bool(text.as_str().starts_with(part.as_str())))
            }
            (Function::EndsWith, [Value::String(text), Value::String(part)]) => {
                self.charge_bytes(part.as_str().len())?;
                Ok(Value::Bool(text.as_str().ends_with(part.as_str())))
            }
            (Function::LowerAscii, [Value::String(text)]) => {
                self.charge_bytes(text.as_str().len())?;
                Ok(Value::string(text.as_str().to_ascii_lowercase()))
            }
            (Function::UpperAscii, [Value::String(text)]) => {
                self.charge_bytes(text.as_str().len())?;
                Ok(Value::string(text.as_str().to_ascii_uppercase()))
            }
            (Function::Int, [value]) => self.convert_to_int(value),
            (Function::Double, [value]) => self.convert_to_double(value),
            (Function::String, [value]) => to_string(value),
            (Function::Size, [other]) => failed(format!("{} has no size", other.describe())),
            (_, values) => {
                let other = values
                    .iter()
                    .find(|value| !matches!(value, Value::String(_)))
                    .map_or("other arguments", Value::describe);
                failed(format!("`{}` takes strings, not {other}", name(function)))
            }
        }
    }

    fn convert_to_int(&mut self, value: &Value<'j>) -> Evaluated<'j> {
        match value {
            Value::Int(value) => Ok(Value::Int(*value)),
            // 2^63: a larger double does not fit into `i64`.
            Value::Double(value) if value.abs() < 9_223_372_036_854_775_808.0 => {
                #[expect(clippy::cast_possible_truncation, reason = "the range is checked above")]
                let whole = value.trunc() as i64;
                Ok(Value::Int(whole))
            }
            Value::String(text) => {
                self.charge_bytes(text.as_str().len())?;
                match text.as_str().parse() {
                    Ok(value) => Ok(Value::Int(value)),
                    Err(_) => failed(format!("“{}” is not an integer", shortened(text.as_str()))),
                }
            }
            other => failed(format!("{} is not an integer", other.describe())),
        }
    }

    fn convert_to_double(&mut self, value: &Value<'j>) -> Evaluated<'j> {
        match value {
            Value::Int(value) => Ok(Value::Double(*value as f64)),
            Value::Double(value) => Ok(Value::Double(*value)),
            Value::String(text) => {
                self.charge_bytes(text.as_str().len())?;
                match text.as_str().parse() {
                    Ok(value) => Ok(Value::Double(value)),
                    Err(_) => failed(format!("“{}” is not a number", shortened(text.as_str()))),
                }
            }
            other => failed(format!("{} is not a number", other.describe())),
        }
    }

    pub(super) fn matches(&mut self, text: &Node, pattern: &Pattern) -> Evaluated<'j> {
        let text = self.value(text)?;
        let Value::String(text) = &text else {
            return failed(format!("`matches` takes strings, not {}", text.describe()));
        };
        let node = match pattern {
            Pattern::Literal(matcher) => return self.is_match(matcher, text.as_str()),
            Pattern::Computed(node) => node,
        };
        let pattern = self.value(node)?;
        let Value::String(pattern) = &pattern else {
            return failed(format!("`matches` takes strings, not {}", pattern.describe()));
        };
        self.charge(COMPILE_STEPS)?;
        if pattern.as_str().len() > MAX_COMPUTED_BYTES {
            return failed(format!("a regular expression has more than {MAX_COMPUTED_BYTES} bytes"));
        }
        match Matcher::compile(pattern.as_str()) {
            Ok(matcher) => self.is_match(&matcher, text.as_str()),
            Err(error) => failed(format!("“{}” is {error}", shortened(pattern.as_str()))),
        }
    }

    fn is_match(&mut self, matcher: &Matcher, text: &str) -> Evaluated<'j> {
        self.charge((text.len() / MATCHED_BYTES_PER_STEP) as u64 * matcher.weight())?;
        Ok(Value::Bool(matcher.is_match(text)))
    }
}

fn to_string<'j>(value: &Value<'j>) -> Evaluated<'j> {
    match value {
        Value::String(_) => Ok(value.clone()),
        Value::Int(value) => Ok(Value::string(value.to_string())),
        Value::Double(value) => Ok(Value::string(value.to_string())),
        Value::Bool(value) => Ok(Value::string(value.to_string())),
        other => failed(format!("{} cannot be converted to a string", other.describe())),
    }
}

fn int<'j>(count: usize) -> Value<'j> {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

const fn name(function: Function) -> &'static str {
    match function {
        Function::Size => "size",
        Function::Contains => "contains",
        Function::StartsWith => "startsWith",
        Function::EndsWith => "endsWith",
        Function::LowerAscii => "lowerAscii",
        Function::UpperAscii => "upperAscii",
        Function::Int => "int",
        Function::Double => "double",
        Function::String => "string",
    }
}
