//! Compiles a schema, and checks values against it.
//!
//! The schema is compiled while the file is read, so that an error has its position in the file. The evaluator compiles it
//! again: a compiled schema is large, and a run does not need it.

use std::sync::Arc;
use std::thread;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, Keyword, PatternOptions, Retrieve, ValidationError, ValidationOptions, Validator};
use serde_json::Value;

use super::budget::{Counting, CountingKeyword, CountingNode, Weights, add_steps, within};
use super::cost::{self, STEPS, TooCostly, nested};

/// Maximum number of steps of a check. A step is one access of the validator to a value, a member or an element; long texts
/// and large comparisons take more.
pub const MAX_SCHEMA_STEPS: u64 = 50_000_000;

/// Maximum number of steps to list the violations. The validator lists all of them at once, each with some hundred bytes.
const MAX_LISTING_STEPS: u64 = 5_000_000;

/// Maximum number of steps to find the first violation.
const MAX_FIRST_STEPS: u64 = 20_000_000;

/// Maximum length of a message about a schema, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Depth of a schema that the compiler needs no large stack for.
const DEPTH_ON_ANY_STACK: u64 = 16;

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
    compiled: Result<Compiled, TooCostly>,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator<Counting>,
    weights: Weights,
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
        add_steps(&mut counted);
        let nested = match nested(&counted) {
            Ok(nested) => nested,
            Err(reason) => return Ok(Self { compiled: Err(reason) }),
        };
        let weights = Weights::new(&counted);
        // Messages quote parts of the schema, so the error is that of the schema as it is written.
        let build = || build(&counted).map_err(|error| build(schema).err().unwrap_or(error));
        let compiled = match depth(&counted) {
            0..=DEPTH_ON_ANY_STACK => build()?,
            _ => on_large_stack(build).unwrap_or(Ok(Err(TooCostly::NoThread)))?,
        };
        Ok(Self { compiled: compiled.map(|validator| Compiled { validator, weights, nested }) })
    }

    /// Returns the reason why all checks are undecided, if they are.
    pub fn too_costly(&self) -> Option<String> {
        self.compiled.as_ref().err().map(ToString::to_string)
    }

    /// Checks a value, and lists at most `max_violations`.
    pub fn check(&self, value: &Value, max_violations: usize) -> SchemaOutcome {
        let compiled = match &self.compiled {
            Ok(compiled) => compiled,
            Err(reason) => return SchemaOutcome::Undecided(reason.to_string()),
        };
        let nested = compiled.nested.saturating_mul(depth(value));
        if nested <= NESTED_ON_ANY_STACK {
            compiled.check(value, max_violations)
        } else if nested <= MAX_NESTED_EVALUATIONS {
            on_large_stack(|| compiled.check(value, max_violations))
                .unwrap_or_else(|| SchemaOutcome::Undecided(TooCostly::NoThread.to_string()))
        } else {
            SchemaOutcome::Undecided("the schema and the document are nested too deeply".to_owned())
        }
    }
}

impl Compiled {
    fn check(&self, value: &Value, max_violations: usize) -> SchemaOutcome {
        match within(MAX_SCHEMA_STEPS, self.weights, || self.validator.is_valid(CountingNode(value))) {
            Some(true) => return SchemaOutcome::Valid,
            Some(false) => {}
            None => return SchemaOutcome::Undecided(format!("it takes more than {MAX_SCHEMA_STEPS} steps")),
        }
        let listed = within(MAX_LISTING_STEPS, self.weights, || {
            let mut errors = self.validator.iter_errors(CountingNode(value));
            let shown: Vec<_> = errors.by_ref().take(max_violations).collect();
            // Counted without formatting: an agent's output can violate a schema in thousands of places.
            (shown, More::Counted(errors.count()))
        });
        let first = || {
            within(MAX_FIRST_STEPS, self.weights, || {
                self.validator.validate(CountingNode(value)).err().into_iter().collect()
            })
        };
        let (errors, more) = match listed.or_else(|| Some((first()?, More::Uncounted))) {
            Some(found) => found,
            None => (Vec::new(), More::Uncounted),
        };
        if errors.iter().any(|error| matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. })) {
            let limit = cost::BACKTRACK_LIMIT;
            return SchemaOutcome::Undecided(format!("a regular expression backtracks more than {limit} times"));
        }
        SchemaOutcome::Invalid { violations: errors.iter().map(violation).collect(), more }
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    // Masked, because the messages of the validator quote complete values.
    Violation { pointer: error.instance_path().as_str().to_owned(), message: error.masked().to_string() }
}

type Options = ValidationOptions<'static, Arc<dyn Retrieve>, Counting>;

/// Compiles a schema with the counting keyword.
fn build(schema: &Value) -> Result<Result<Validator<Counting>, TooCostly>, SchemaError> {
    let size = cost::pattern_size_limit(schema);
    match options(schema, size).build(schema) {
        Ok(validator) => Ok(Ok(validator)),
        Err(error) => {
            // A pattern that is valid alone is too large next to the others.
            let pattern = serde_json::json!({ "pattern": error.instance().as_ref() });
            let is_large = error.instance().is_string()
                && size < cost::MAX_PATTERN_BYTES
                && options(&pattern, cost::MAX_PATTERN_BYTES).build(&pattern).is_ok();
            if is_large { Ok(Err(TooCostly::Patterns)) } else { Err(schema_error(&error)) }
        }
    }
}

fn options(schema: &Value, pattern_bytes: usize) -> Options {
    let limits = PatternOptions::fancy_regex()
        .backtrack_limit(cost::BACKTRACK_LIMIT)
        .size_limit(pattern_bytes)
        .dfa_size_limit(pattern_bytes);
    let options = jsonschema::options_for::<Counting>().with_pattern_options(limits).with_keyword(STEPS, |_, _, _| {
        let keyword: Box<dyn for<'i> Keyword<'i, Counting>> = Box::new(CountingKeyword);
        Ok(keyword)
    });
    if schema.get("$schema").is_some() { options } else { options.with_draft(Draft::Draft7) }
}

fn schema_error(error: &ValidationError<'_>) -> SchemaError {
    let message = error.to_string();
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

/// Runs on a thread with a large stack. Returns `None` if no thread can be started.
fn on_large_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("json-schema".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn_scoped(scope, run).ok()?;
        Some(started.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
    })
}
