//! Records the events of one source.
//!
//! [`Recorder::record`] checks that its spool file is still there, writes an event to it with one system call, and returns. It never
//! waits for the database. A thread moves the events to the store in batches. If the database is slow, locked or gone, the spool
//! grows and is moved later, by this process or by another one. Beyond a limit, previews are dropped first; decisions never are.

mod drain;
mod output;
mod record;

pub use output::{BacklogLimits, EventOrigin, RecordError, RecorderSummary};
pub use record::{Recorder, RecorderOptions};
