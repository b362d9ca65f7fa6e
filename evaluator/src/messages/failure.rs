//! Messages about runner failures.

use std::fmt::Write as _;

use counterproof_artifact::{FailureClass, RunnerFailure};
use serde_json::Value;

use crate::values::text;

/// Characters of an error's name.
const NAME_LENGTH: usize = 60;

/// Characters of the first contract violation.
const VIOLATION_LENGTH: usize = 160;

/// Characters of an error message.
const MESSAGE_LENGTH: usize = 120;

/// Describes a failure: `http_error 500 (server_error), after 3 attempts`.
pub fn failure(failure: &RunnerFailure) -> String {
    let mut message = failure.class.to_string();
    if let Some(status) = failure.status {
        let _ = write!(message, " {}", status.get());
    }
    if let Some(name) = &failure.error_name {
        let _ = write!(message, " ({})", text::one_line(name, NAME_LENGTH));
    }
    if let Some(limit) = failure.timeout_ms.as_ref().filter(|_| failure.class == FailureClass::Timeout) {
        let _ = write!(message, " of {} ms", limit.as_f64());
    }
    // The class and the status of an HTTP error or a timeout already describe it; the error message only repeats them.
    let explains_itself = matches!(failure.class, FailureClass::HttpError | FailureClass::Timeout);
    if let Some(first) = violations(failure).first() {
        let _ = write!(message, ", {}", text::one_line(first, VIOLATION_LENGTH));
    } else if let Some(error) = failure.error_message.as_ref().filter(|_| !explains_itself) {
        let _ = write!(message, ", {}", text::one_line(error, MESSAGE_LENGTH));
    }
    let attempts = failure.attempt.get();
    if attempts > 1 {
        let _ = write!(message, ", after {attempts} attempts");
    }
    message
}

/// Returns the contract violations of a response, one message each. Our runner lists them in an extra field of the failure.
pub fn violations(failure: &RunnerFailure) -> Vec<String> {
    let listed = failure.extra.get("violations").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let field = |violation: &Value, name: &str| -> String {
        violation.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let message = |violation: &Value| {
        let (pointer, message) = (field(violation, "pointer"), field(violation, "message"));
        let expected = match field(violation, "expected") {
            expected if expected.is_empty() => expected,
            expected => format!(" (expected {expected})"),
        };
        format!("{pointer}: {message}{expected}").trim_start_matches(": ").to_owned()
    };
    listed.iter().map(message).collect()
}
