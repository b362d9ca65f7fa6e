//! Rules for ids, file names, sides and times.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use serde_json::Value;

use crate::Code;
use crate::finding::Findings;
use crate::finding::quote;
use counterproof_artifact::{CaseId, RunId, Side};

/// Checks that a case id is a valid file name on every system.
pub(crate) fn case_id(value: &Value, pointer: &str, findings: &mut Findings) {
    if let Some(Err(error)) = value.as_str().map(str::parse::<CaseId>) {
        findings.add(
            Code::UnsafeCaseId,
            pointer,
            bounded(&error.to_string()),
            "an id that is a valid file name on every system",
        );
    }
}

/// Checks that a run id is a valid folder name on every system.
pub(crate) fn run_id(value: &Value, pointer: &str, findings: &mut Findings) {
    if let Some(Err(error)) = value.as_str().map(str::parse::<RunId>) {
        findings.add(
            Code::UnsafeRunId,
            pointer,
            bounded(&error.to_string()),
            "an id that is a valid folder name on every system",
        );
    }
}

/// Checks that the file name of an artifact is its case id.
pub(crate) fn file_name(document: &Value, stem: &str, findings: &mut Findings) {
    if let Some(id) = document["case_id"].as_str().filter(|id| *id != stem) {
        let message =
            format!("the file is named {}, but its `case_id` is {}", quote(&format!("{stem}.json")), quote(id));
        findings.add(Code::FileNameDiffers, "/case_id", message, quote(stem));
    }
}

/// Checks that a document has the side of its run or its folder.
pub(crate) fn side(value: &Value, pointer: &str, expected: Side, whose: &str, findings: &mut Findings) {
    // An invalid side violates the schema.
    let Some(side) = value.as_str().and_then(|side| side.parse::<Side>().ok()) else { return };
    if side != expected {
        let message = format!("the side is `{side}`, but the {whose} has side `{expected}`");
        findings.add(Code::SideDiffers, pointer, message, format!("`{expected}`"));
    }
}

/// Checks that a time is in ISO 8601.
pub(crate) fn time(value: &Value, pointer: &str, findings: &mut Findings) {
    let Some(text) = value.as_str() else { return };
    if !is_time(text) {
        let message = format!("{} is not a time in ISO 8601", quote(text));
        findings.add(Code::BadTimestamp, pointer, message, "a time such as `2026-01-31T12:00:00Z`");
    }
}

/// True for a time in ISO 8601, with or without its offset, and for a date.
pub(crate) fn is_time(text: &str) -> bool {
    // `Timestamp` requires an offset, and the contract does not.
    text.parse::<Timestamp>().is_ok() || text.parse::<DateTime>().is_ok() || text.parse::<Date>().is_ok()
}

/// Shortens and escapes the error of an id.
fn bounded(text: &str) -> String {
    // The error quotes the id, which may be long and hostile.
    counterproof_artifact::escape_invisible(&text.chars().take(300).collect::<String>())
}
