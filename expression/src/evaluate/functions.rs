//! The functions: what they take, what they give, and what they cost.

use super::{BYTES_A_STEP, Evaluated, Evaluation, failed, short};
use crate::compile;
use crate::node::{Function, Matcher, Node, Pattern};
use crate::value::Value;

/// Bytes of a text that are matched against a regular expression in one step.
const MATCHED_A_STEP: usize = 4;

/// Steps for compiling a regular expression that is not written out.
const REGEX_STEPS: u64 = 5_000;

/// Longest regular expression that is not written out, in bytes.
const REGEX_UP_TO: usize = 1_000;

impl<'j> Evaluation<'j, '_> {
    pub(super) fn call(&mut self, function: Function, arguments: &[Node]) -> Evaluated<'j> {
        let values: Vec<Value<'j>> = arguments.iter().map(|argument| self.value(argument)).collect::<Result<_, _>>()?;
        match (function, values.as_slice()) {
            (Function::Size, [Value::Text(text)]) => {
                self.pay_for_bytes(text.as_str().len(), BYTES_A_STEP)?;
                Ok(int(text.as_str().chars().count()))
            }
            (Function::Size, [Value::List(list)]) => Ok(int(list.len())),
            (Function::Size, [Value::Map(map)]) => Ok(int(map.len())),
            (Function::Contains, [Value::Text(text), Value::Text(part)]) => {
                self.pay_for_bytes(text.as_str().len() + part.as_str().len(), BYTES_A_STEP)?;
                Ok(Value::Bool(text.as_str().contains(part.as_str())))
            }
            (Function::StartsWith, [Value::Text(text), Value::Text(part)]) => {
                self.pay_for_bytes(part.as_str().len(), BYTES_A_STEP)?;
                Ok(Value::Bool(text.as_str().starts_with(part.as_str())))
            }
            (Function::EndsWith, [Value::Text(text), Value::Text(part)]) => {
                self.pay_for_bytes(part.as_str().len(), BYTES_A_STEP)?;
                Ok(Value::Bool(text.as_str().ends_with(part.as_str())))
            }
            (Function::LowerAscii, [Value::Text(text)]) => {
                self.pay_for_bytes(text.as_str().len(), BYTES_A_STEP)?;
                Ok(Value::made(text.as_str().to_ascii_lowercase()))
            }
            (Function::UpperAscii, [Value::Text(text)]) => {
                self.pay_for_bytes(text.as_str().len(), BYTES_A_STEP)?;
                Ok(Value::made(text.as_str().to_ascii_uppercase()))
            }
            (Function::Int, [value]) => self.whole_of(value),
            (Function::Double, [value]) => self.double_of(value),
            (Function::String, [value]) => text_of(value),
            (Function::Size, [other]) => failed(format!("{} has no size", other.kind())),
            (_, values) => {
                let other = values.iter().find(|value| !matches!(value, Value::Text(_))).map_or("nothing", Value::kind);
                failed(format!("`{}` takes texts, and not {other}", name(function)))
            }
        }
    }

    fn whole_of(&mut self, value: &Value<'j>) -> Evaluated<'j> {
        match value {
            Value::Int(value) => Ok(Value::Int(*value)),
            // 2^63, from which on a double is no whole number of ours.
            Value::Double(value) if value.abs() < 9_223_372_036_854_775_808.0 => {
                #[expect(clippy::cast_possible_truncation, reason = "in range, as was just seen")]
                let whole = value.trunc() as i64;
                Ok(Value::Int(whole))
            }
            Value::Text(text) => {
                self.pay_for_bytes(text.as_str().len(), BYTES_A_STEP)?;
                match text.as_str().parse() {
                    Ok(value) => Ok(Value::Int(value)),
                    Err(_) => failed(format!("“{}” is not a whole number", short(text.as_str()))),
                }
            }
            other => failed(format!("{} is not a whole number", other.kind())),
        }
    }

    fn double_of(&mut self, value: &Value<'j>) -> Evaluated<'j> {
        match value {
            Value::Int(value) => Ok(Value::Double(*value as f64)),
            Value::Double(value) => Ok(Value::Double(*value)),
            Value::Text(text) => {
                self.pay_for_bytes(text.as_str().len(), BYTES_A_STEP)?;
                match text.as_str().parse() {
                    Ok(value) => Ok(Value::Double(value)),
                    Err(_) => failed(format!("“{}” is not a number", short(text.as_str()))),
                }
            }
            other => failed(format!("{} is not a number", other.kind())),
        }
    }

    pub(super) fn matches(&mut self, text: &Node, pattern: &Pattern) -> Evaluated<'j> {
        let text = self.value(text)?;
        let Value::Text(text) = &text else {
            return failed(format!("`matches` takes texts, and not {}", text.kind()));
        };
        let node = match pattern {
            Pattern::Fixed(matcher) => return self.is_match(matcher, text.as_str()),
            Pattern::Worked(node) => node,
        };
        let pattern = self.value(node)?;
        let Value::Text(pattern) = &pattern else {
            return failed(format!("`matches` takes texts, and not {}", pattern.kind()));
        };
        self.pay(REGEX_STEPS)?;
        if pattern.as_str().len() > REGEX_UP_TO {
            return failed(format!("a regular expression has more than {REGEX_UP_TO} bytes"));
        }
        match compile::matcher(pattern.as_str()) {
            Ok(matcher) => self.is_match(&matcher, text.as_str()),
            Err(message) => {
                failed(format!("“{}” is no regular expression that can be used: {message}", short(pattern.as_str())))
            }
        }
    }

    fn is_match(&mut self, matcher: &Matcher, text: &str) -> Evaluated<'j> {
        self.pay((text.len() / MATCHED_A_STEP) as u64 * matcher.weight)?;
        Ok(Value::Bool(matcher.regex.is_match(text)))
    }
}

fn text_of<'j>(value: &Value<'j>) -> Evaluated<'j> {
    match value {
        Value::Text(_) => Ok(value.clone()),
        Value::Int(value) => Ok(Value::made(value.to_string())),
        Value::Double(value) => Ok(Value::made(value.to_string())),
        Value::Bool(value) => Ok(Value::made(value.to_string())),
        other => failed(format!("{} cannot be made a text", other.kind())),
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
