//! Assertions: CEL expressions over the output of the agent, the input of the contract and the outcome of the command.

use std::ops::Range;

use counterproof_expression::{CompileError, Expression, NoValue, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::contract::ContractInput;
use crate::process::FinishedCommand;

/// The variables of an assertion.
pub const VARIABLES: [&str; 5] = ["output", "input", "exit_code", "stdout", "stderr"];

/// A compiled assertion.
#[derive(Debug, Clone)]
pub struct Assertion {
    expression: Expression,
    reads: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum AssertionOutcome {
    Met,
    NotMet,
    /// It has no value, so it is not met.
    Error {
        /// The reason.
        message: String,
        /// The bytes of the assertion that the reason is about.
        span: Range<usize>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssertionResult {
    /// The text of the assertion.
    pub assertion: String,
    #[serde(flatten)]
    pub outcome: AssertionOutcome,
}

/// The values of the variables, and the streams that are not complete.
#[derive(Debug)]
pub struct AssertionInputs {
    values: [Value; 5],
    cut: Vec<&'static str>,
}

impl AssertionInputs {
    /// Takes the values from the contract's input, the agent's output and the finished command. Bytes of the streams that are
    /// not UTF-8 become U+FFFD.
    pub fn new(input: &ContractInput, output: &Value, command: &FinishedCommand) -> Self {
        let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes));
        let streams = [("stdout", &command.stdout), ("stderr", &command.stderr)];
        // The fields that the contract has, and no others: a missing constraint must not read as null.
        let mut fields = json!({ "type": input.input_type, "data": input.data });
        if let Some(constraints) = &input.constraints {
            fields["constraints"] = Value::Object(constraints.clone());
        }
        Self {
            values: [
                output.clone(),
                fields,
                command.exit_code().into(),
                text(&command.stdout.bytes),
                text(&command.stderr.bytes),
            ],
            cut: streams.into_iter().filter(|(_, head)| head.is_cut).map(|(name, _)| name).collect(),
        }
    }
}

impl Assertion {
    pub fn compile(text: &str) -> Result<Self, CompileError> {
        let expression = Expression::compile(text, &VARIABLES)?;
        let reads = VARIABLES.into_iter().filter(|variable| reads(text, variable)).collect();
        Ok(Self { expression, reads })
    }

    /// Returns the text.
    pub fn source(&self) -> &str {
        self.expression.source()
    }

    /// True if the assertion reads a variable. A local variable of a macro with the same name does not count.
    pub fn reads(&self, variable: &str) -> bool {
        self.reads.contains(&variable)
    }

    /// Evaluates the assertion.
    pub fn check(&self, inputs: &AssertionInputs) -> AssertionResult {
        let whole = 0..self.source().len();
        let cut = inputs.cut.iter().find(|stream| self.reads(stream));
        let outcome = match cut {
            // The part that is missing could change the result.
            Some(stream) => {
                let message = format!("`{stream}` is longer than the limit, so no assertion can be decided by it");
                AssertionOutcome::Error { message, span: whole }
            }
            None => outcome(self.expression.evaluate(&inputs.values.each_ref()), whole),
        };
        AssertionResult { assertion: self.source().to_owned(), outcome }
    }

    /// Returns the result of an assertion that cannot be evaluated.
    pub fn not_evaluated(&self, reason: &impl ToString) -> AssertionResult {
        let outcome = AssertionOutcome::Error { message: reason.to_string(), span: 0..self.source().len() };
        AssertionResult { assertion: self.source().to_owned(), outcome }
    }
}

impl AssertionResult {
    /// True only if the assertion is met.
    pub fn is_met(&self) -> bool {
        self.outcome == AssertionOutcome::Met
    }
}

/// True if an expression that compiles does not compile without the variable.
fn reads(text: &str, variable: &str) -> bool {
    let others: Vec<&str> = VARIABLES.into_iter().filter(|other| *other != variable).collect();
    text.contains(variable) && Expression::compile(text, &others).is_err()
}

/// Converts the outcome of an expression. Only true is met.
fn outcome(outcome: Outcome, whole: Range<usize>) -> AssertionOutcome {
    match outcome {
        Outcome::True => AssertionOutcome::Met,
        Outcome::False => AssertionOutcome::NotMet,
        Outcome::Failed(error) => AssertionOutcome::Error { message: error.message, span: error.span },
        Outcome::TooLong => AssertionOutcome::Error { message: NoValue::TooLong.to_string(), span: whole },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> AssertionInputs {
        AssertionInputs {
            values: [
                json!({"test_coverage": true, "modified_files": ["a"], "peak_memory_mb": 105, "name": "x"}),
                json!({"type": "t", "data": {"files": []}, "constraints": {"memory_baseline": 100}}),
                json!(1),
                json!("1 passed\n"),
                json!("warning"),
            ],
            cut: vec!["stderr"],
        }
    }

    fn check(text: &str) -> AssertionOutcome {
        Assertion::compile(text).unwrap().check(&inputs()).outcome
    }

    #[test]
    fn the_assertions_of_the_published_examples_are_evaluated() {
        for text in [
            "output.test_coverage == true",
            "output.modified_files.len() > 0",
            "output.peak_memory_mb <= input.constraints.memory_baseline * 1.1",
            "exit_code == 1",
            "stdout.contains('passed') && input.type == 't'",
        ] {
            assert_eq!(check(text), AssertionOutcome::Met, "{text}");
        }
        assert_eq!(check("exit_code == 0"), AssertionOutcome::NotMet);
    }

    #[test]
    fn what_has_no_boolean_value_is_an_error_and_never_met() {
        for text in ["output.missing", "output.missing == 1", "output.name", "input.constraints.none > 1", "1 / 0 == 1"]
        {
            assert!(matches!(check(text), AssertionOutcome::Error { .. }), "{text}");
        }
        let text = "output.name == 'x' && output.missing > 1";
        let AssertionOutcome::Error { span, .. } = check(text) else { panic!() };
        assert_eq!(&text[span], "output.missing");
        for text in ["outputs.a", "fail(", ""] {
            assert!(Assertion::compile(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_assertion_over_a_stream_that_is_cut_is_an_error() {
        let AssertionOutcome::Error { message, .. } = check("!stderr.contains('error')") else { panic!() };
        assert_eq!(message, "`stderr` is longer than the limit, so no assertion can be decided by it");
        assert_eq!(check("stdout != 'stderr'"), AssertionOutcome::Met);
    }

    #[test]
    fn only_variables_that_are_read_count() {
        let reads = |text: &str| Assertion::compile(text).unwrap().reads("exit_code");
        assert!(reads("exit_code == 0") && reads("output.a || exit_code in [0, 3]"));
        for text in ["output.exit_code == 0", "stdout == 'exit_code'", "output.all(exit_code, exit_code > 0)"] {
            assert!(!reads(text), "{text}");
        }
    }
}
