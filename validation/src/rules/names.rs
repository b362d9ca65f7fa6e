//! Rules about ids, names and times: whether an id can name a file, and whether a document stands where it belongs.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use serde_json::Value;

use super::Code;
use super::excerpt::quote;
use super::finding::Findings;
use counterproof_artifact::{CaseId, RunId, Side};

/// A case id has to name a file on every system.
pub(super) fn case_id(value: &Value, pointer: &str, findings: &mut Findings) {
    if let Some(Err(error)) = value.as_str().map(str::parse::<CaseId>) {
        findings.add(
            Code::UnsafeCaseId,
            pointer,
            bounded(&error.to_string()),
            "an id that every system takes as a file name",
        );
    }
}

/// A run id has to name a folder on every system.
pub(super) fn run_id(value: &Value, pointer: &str, findings: &mut Findings) {
    if let Some(Err(error)) = value.as_str().map(str::parse::<RunId>) {
        findings.add(
            Code::UnsafeRunId,
            pointer,
            bounded(&error.to_string()),
            "an id that every system takes as a folder name",
        );
    }
}

/// The artifact of a case is called after it.
pub(super) fn file_name(document: &Value, stem: &str, findings: &mut Findings) {
    if let Some(id) = document["case_id"].as_str().filter(|id| *id != stem) {
        let message =
            format!("the file is called {}, and its `case_id` is {}", quote(&format!("{stem}.json")), quote(id));
        findings.add(Code::FileNameDiffers, "/case_id", message, quote(stem));
    }
}

/// A document is of the side of the run or the folder that it stands in.
pub(super) fn side(value: &Value, pointer: &str, expected: Side, whose: &str, findings: &mut Findings) {
    let Some(side) = value.as_str().and_then(|side| side.parse::<Side>().ok()) else { return };
    if side != expected {
        let message = format!("the side is `{side}`, and the {whose} is of side `{expected}`");
        findings.add(Code::SideDiffers, pointer, message, format!("`{expected}`"));
    }
}

/// A time is written in ISO 8601.
pub(super) fn time(value: &Value, pointer: &str, findings: &mut Findings) {
    let Some(text) = value.as_str() else { return };
    if !is_time(text) {
        let message = format!("{} is not a time in ISO 8601", quote(text));
        findings.add(Code::BadTimestamp, pointer, message, "a time such as `2026-01-31T12:00:00Z`");
    }
}

/// True for a time in ISO 8601, with or without its offset, and for a date.
pub(super) fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok() || text.parse::<DateTime>().is_ok() || text.parse::<Date>().is_ok()
}

/// The error of an id quotes the id, which may be long and hostile.
fn bounded(text: &str) -> String {
    counterproof_artifact::escape_invisible(&text.chars().take(300).collect::<String>())
}
