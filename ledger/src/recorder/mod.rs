//! Records the events of one source.
//!
//! [`Recorder::record`] checks that its spool file is still there, writes an event to it with one system call, and returns. It never
//! waits for the database. A thread moves the events to the store in batches. If the database is slow, locked or gone, the spool
//! grows and is moved later, by this process or by another one. Beyond a limit, previews are dropped first; decisions never are.

mod drain;
mod error;
mod event_text;
mod events_file;
mod options;
mod output;
mod own_spool;
mod record;
mod signal;

pub use error::RecordError;
pub use options::{BacklogLimits, EventOrigin, RecorderOptions};
pub use output::Finished;
pub use record::Recorder;
