//! Reads run folders: one case's artifacts at a time, with their payloads, evidence and input.

pub mod case_input;
pub mod evidence;
pub mod index;
pub mod payload;
mod run;
mod runs;
pub(crate) mod tools;

pub use run::{Artifact, CaseEnvelope, ComparedRun, LoadedAnswer, LoadedFailure};
pub use runs::SideRuns;
