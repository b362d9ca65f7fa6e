//! Compiles a schema, and checks values against it.
//!
//! The schema is compiled while the file is read, so that an error has its position in the file. The evaluator compiles it
//! again: a compiled schema is large, and a run does not need it.

use std::thread;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, Keyword, PatternOptions, ValidationError, Validator};
use serde_json::{Value, json};

use super::budget::{Budget, Counted, Counting, CountingKeyword};
use super::limits::{self, STEPS};

/// Maximum number of steps of a check. A step is one access of the validator to a value, a member or an element; long texts
/// and large comparisons take more.
pub const MAX_SCHEMA_STEPS: u64 = 50_000_000;

/// Maximum number of steps to list the violations. The validator lists all of them at once, each with some hundred bytes.
const MAX_LISTING_STEPS: u64 = 5_000_000;

/// Maximum length of a message about a schema, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Evaluations inside each other that the stack of any thread has room for.
const NESTED_ON_ANY_STACK: u64 = 100;

/// Evaluations inside each other that the stack of [`STACK_BYTES`] has room for.
const MAX_NESTED_EVALUATIONS: u64 = 20_000;

const STACK_BYTES: usize = 256 << 20;

/// An invalid JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid JSON Schema: {message}")]
pub struct SchemaError {
    /// A JSON Pointer into the schema.
    pub pointer: String,
    /// The error of the schema compiler.
    pub message: String,
}

/// A compiled JSON Schema with limits.
#[derive(Debug)]
pub struct JsonSchema {
    /// The validator, or the limit that the schema exceeds.
    compiled: Result<Validator<Counting>, String>,
    /// The weights of its patterns.
    weights: Budget,
    /// The maximum number of schemas inside each other at one place of a document.
    nested: u64,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaOutcome {
    Valid,
    /// The value is not valid.
    Invalid {
        /// The first violations. Empty if finding them takes too many steps.
        violations: Vec<Violation>,
        /// How many more there are.
        more: More,
    },
    /// The check takes too much work. The text is the reason.
    Undecided(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// A JSON Pointer into the value.
    pub pointer: String,
    /// The message of the validator, without the value.
    pub message: String,
}

/// The number of violations that are not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// Exactly this many.
    Counted(usize),
    /// Unknown: counting them takes too many steps.
    Uncounted,
}

impl JsonSchema {
    /// Compiles a schema. The draft is draft-07 unless the schema has `$schema`. Remote references are not fetched.
    ///
    /// A schema that is too expensive compiles, and all its checks are undecided.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut counted = schema.clone();
        // Before the walk, which recognises schemas by the keyword.
        limits::add_steps(&mut counted);
        let limited = limits::nested(&counted).and_then(|nested| Ok((nested, limits::patterns(&counted)?)));
        let (nested, (weights, pattern_bytes)) = match limited {
            Ok(limited) => limited,
            Err(limit) => return Ok(Self { compiled: Err(limit), weights: Budget::default(), nested: 0 }),
        };
        // Compiling a schema takes six times the stack of an evaluation.
        let compiled = on_stack_for(6 * depth(&counted), || match build(&counted, pattern_bytes) {
            Ok(validator) => Ok(Ok(validator)),
            Err(error) if is_only_too_large_here(&error, pattern_bytes) => {
                Ok(Err("its regular expressions are too large".to_owned()))
            }
            // Messages quote parts of the schema, so the error of the schema as it is written comes first.
            Err(error) => Err(schema_error(&build(schema, pattern_bytes).err().unwrap_or(error))),
        });
        Ok(Self { compiled: compiled.unwrap_or_else(|no_thread| Ok(Err(no_thread)))?, weights, nested })
    }

    /// Returns the reason why all checks are undecided, if they are.
    pub fn too_costly(&self) -> Option<String> {
        self.compiled.as_ref().err().cloned()
    }

    /// Checks a value, and lists at most `max_violations`.
    pub fn check(&self, value: &Value, max_violations: usize) -> SchemaOutcome {
        let validator = match &self.compiled {
            Ok(validator) => validator,
            Err(limit) => return SchemaOutcome::Undecided(limit.clone()),
        };
        let nested = self.nested.saturating_mul(depth(value));
        if nested > MAX_NESTED_EVALUATIONS {
            return SchemaOutcome::Undecided("the schema and the document are nested too deeply".to_owned());
        }
        on_stack_for(nested, || self.check_here(validator, value, max_violations))
            .unwrap_or_else(SchemaOutcome::Undecided)
    }

    fn check_here(&self, validator: &Validator<Counting>, value: &Value, max_violations: usize) -> SchemaOutcome {
        let with_steps = |steps| Budget { steps, ..self.weights };
        match with_steps(MAX_SCHEMA_STEPS).run(|| validator.is_valid(Counted(value))) {
            Some(true) => return SchemaOutcome::Valid,
            Some(false) => {}
            None => return SchemaOutcome::Undecided(format!("it takes more than {MAX_SCHEMA_STEPS} steps")),
        }
        let listed = with_steps(MAX_LISTING_STEPS).run(|| {
            let mut errors = validator.iter_errors(Counted(value));
            let shown: Vec<_> = errors.by_ref().take(max_violations).collect();
            // Counted without formatting: an agent's output can violate a schema in thousands of places.
            (shown, More::Counted(errors.count()))
        });
        let (errors, more) = listed.unwrap_or_else(|| {
            // `validate` stops at the first violation: one is more useful than none.
            let first = with_steps(MAX_SCHEMA_STEPS).run(|| validator.validate(Counted(value)).err());
            (first.flatten().into_iter().collect(), More::Uncounted)
        });
        // The engine gave up the match, so the text neither matches nor violates the pattern.
        if errors.iter().any(|error| matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. })) {
            let limit = limits::BACKTRACK_LIMIT;
            return SchemaOutcome::Undecided(format!("a regular expression backtracks more than {limit} times"));
        }
        SchemaOutcome::Invalid { violations: errors.iter().map(violation).collect(), more }
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    // Masked, because the messages of the validator quote complete values.
    Violation { pointer: error.instance_path().as_str().to_owned(), message: error.masked().to_string() }
}

/// Compiles a schema with the counting keyword.
fn build(schema: &Value, pattern_bytes: usize) -> Result<Validator<Counting>, ValidationError<'static>> {
    let limits = PatternOptions::fancy_regex()
        .backtrack_limit(limits::BACKTRACK_LIMIT)
        .size_limit(pattern_bytes)
        .dfa_size_limit(pattern_bytes);
    let options = jsonschema::options_for::<Counting>().with_pattern_options(limits).with_keyword(STEPS, |_, _, _| {
        let keyword: Box<dyn for<'i> Keyword<'i, Counting>> = Box::new(CountingKeyword);
        Ok(keyword)
    });
    let options = if schema.get("$schema").is_some() { options } else { options.with_draft(Draft::Draft7) };
    options.build(schema).map_err(ValidationError::to_owned)
}

/// Returns whether an error is a pattern that is valid alone, and too large next to the others.
fn is_only_too_large_here(error: &ValidationError<'_>, pattern_bytes: usize) -> bool {
    let pattern = json!({ "pattern": error.instance().as_ref() });
    error.instance().is_string()
        && pattern_bytes < limits::MAX_PATTERN_BYTES
        && build(&pattern, limits::MAX_PATTERN_BYTES).is_ok()
}

fn schema_error(error: &ValidationError<'_>) -> SchemaError {
    let message = error.to_string();
    // The message quotes parts of the schema, which can have any length.
    let message = match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    };
    SchemaError { pointer: error.instance_path().as_str().to_owned(), message }
}

/// Returns the number of values inside each other, at least 1.
fn depth(value: &Value) -> u64 {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => None,
    };
    1 + below.unwrap_or_default()
}

/// Runs on this thread, or on one with a large stack if the evaluations are nested deeply.
fn on_stack_for<T: Send>(nested: u64, run: impl FnOnce() -> T + Send) -> Result<T, String> {
    // Starting a thread costs more than most checks.
    if nested <= NESTED_ON_ANY_STACK {
        return Ok(run());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("json-schema".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn_scoped(scope, run).map_err(|_| "no thread could be started for it".to_owned())?;
        Ok(started.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
    })
}
