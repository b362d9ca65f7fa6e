//! Fast path: parses valid answers, which most artifacts are, from text straight into their type.
//!
//! `Some` means that the answer is valid and equals the result of the slow path, which builds a JSON value. `None` means
//! undecided: the caller falls back to the slow path, the only one that reports findings. Tests compare both paths.

mod case;
mod event;
mod fields;
mod rules;

use serde::de::DeserializeSeed;

use crate::parse::ParseBuffers;
use crate::run_folder::RunFolder;
use counterproof_artifact::Case;

/// Parses an answer and checks it in its run folder under its file name.
pub(super) fn parse_answer(text: &str, stem: &str, folder: &RunFolder) -> Option<Case> {
    let case = read(text)?;
    rules::all_pass(&case, stem, folder).then_some(case)
}

/// Parses an answer that matches the schema. The other rules are not checked.
fn read(text: &str) -> Option<Case> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let buffers = ParseBuffers::default();
    let case = case::CaseSeed(&buffers).deserialize(&mut reader).ok()?;
    (reader.end().is_ok() && !buffers.has_duplicates()).then_some(case)
}

#[cfg(test)]
mod sample_answers;
#[cfg(test)]
mod tests;
