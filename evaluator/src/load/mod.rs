//! Reads run folders: one case's artifacts at a time, with their payloads, evidence and input.

pub(crate) mod call_status;
pub(crate) mod case_input;
pub(crate) mod evidence;
pub(crate) mod payload;
pub(crate) mod run;
pub(crate) mod tool_names;
pub(crate) mod turns;

pub use call_status::has_failed;
pub use evidence::{FollowedRef, Resolved, follow as follow_evidence};
pub use payload::Payload;
pub use run::{
    Artifact, CaseEnvelope, ComparedRun, EventIndex, LoadedAnswer, LoadedFailure, RecordedRun, SideRuns, pair,
};
