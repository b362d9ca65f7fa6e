//! Calls of functions, and regular expressions.

use super::evaluation::Evaluation;
use crate::budget::{Evaluated, failed};
use crate::functions::Function;
use crate::node::{Node, Pattern};
use crate::pattern::Matcher;
use crate::values::{Value, shortened};

/// Bytes of a string that are matched against a regular expression in one step.
const MATCHED_BYTES_PER_STEP: usize = 4;

/// Steps for compiling a computed regular expression.
const COMPILE_STEPS: u64 = 5_000;

/// Maximum length of a computed regular expression, in bytes.
const MAX_COMPUTED_BYTES: usize = 1_000;

impl<'j> Evaluation<'j> {
    pub(super) fn call(&mut self, function: &'static Function, arguments: &'j [Node]) -> Evaluated<'j> {
        let values: Vec<Value<'j>> = arguments.iter().map(|argument| self.value(argument)).collect::<Result<_, _>>()?;
        (function.run)(&mut self.budget, &values).map_err(|stop| {
            stop.or_describe(|| {
                let described: Vec<_> = values.iter().map(Value::describe).collect();
                format!("`{}` does not take {}", function.name, described.join(" and "))
            })
        })
    }

    pub(super) fn matches(&mut self, text: &'j Node, pattern: &'j Pattern) -> Evaluated<'j> {
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
        self.budget.charge(COMPILE_STEPS)?;
        if pattern.as_str().len() > MAX_COMPUTED_BYTES {
            return failed(format!("a regular expression has more than {MAX_COMPUTED_BYTES} bytes"));
        }
        match Matcher::compile(pattern.as_str()) {
            Ok(matcher) => self.is_match(&matcher, text.as_str()),
            Err(error) => failed(format!("“{}” is {error}", shortened(pattern.as_str()))),
        }
    }

    fn is_match(&mut self, matcher: &Matcher, text: &str) -> Evaluated<'j> {
        self.budget.charge((text.len() / MATCHED_BYTES_PER_STEP) as u64 * matcher.weight())?;
        Ok(Value::Bool(matcher.is_match(text)))
    }
}
