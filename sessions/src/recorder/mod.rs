//! Records a session while it runs. An event is durable when [`SessionRecorder::record`] returns.

mod guard_calls;
mod left_behind;
mod session_recorder;
mod spool;
mod writer;

pub use guard_calls::absorb;
pub use left_behind::recover;
pub use session_recorder::{HeldSession, RecordError, RecorderOptions, RecorderSummary, SessionRecorder};
pub use spool::{SessionSpool, SpoolError};

#[cfg(test)]
mod tests;
