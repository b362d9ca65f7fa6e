//! Answers that are plainly right, from their text straight into the type: what nearly every artifact is.
//!
//! A yes is final: the answer is valid, and the same that the long way over a JSON value would give. A no says nothing, and
//! the long way is taken, which alone writes findings. Tests hold every yes against the long way.

mod event;
mod fields;
mod read;
mod rules;

use serde::de::DeserializeSeed;

use super::folder::RunFolder;
use super::parse::Gathered;
use counterproof_artifact::Case;

/// The answer that a text surely is, in its run folder and under its file name.
pub(super) fn answer(text: &str, stem: &str, folder: &RunFolder) -> Option<Case> {
    let case = read(text)?;
    rules::hold(&case, stem, folder).then_some(case)
}

/// The answer that a text surely is, but for the rules that a schema cannot say.
fn read(text: &str) -> Option<Case> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let gathered = Gathered::default();
    let case = read::CaseSeed(&gathered).deserialize(&mut reader).ok()?;
    (reader.end().is_ok() && !gathered.has_duplicates()).then_some(case)
}

#[cfg(test)]
mod tests;
