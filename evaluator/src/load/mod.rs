//! Reads run folders: one case's artifacts at a time, with their payloads, evidence and input.

pub(crate) mod case_input;
pub(crate) mod evidence;
pub(crate) mod failed_result;
mod index;
pub(crate) mod payload;
mod recorded_run;
pub(crate) mod refusal;
mod run;
mod runs;
pub(crate) mod tools;
pub(crate) mod turn;

pub use evidence::{FollowedRef, Resolved, follow as follow_evidence};
pub use failed_result::has_failed;
pub use index::EventIndex;
pub use payload::Payload;
pub use recorded_run::RecordedRun;
pub use run::{Artifact, CaseEnvelope, ComparedRun, LoadedAnswer, LoadedFailure};
pub use runs::SideRuns;
