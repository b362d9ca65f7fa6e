//! Copies of declared paths as they were when an execution began, and the way back to them.
//!
//! ```text
//! snapshot/
//!   manifest.json     every file, folder and link, with its mode and times, and the paths that did not exist
//!   files/            the copies under their names, with private modes
//! ```
//!
//! A restored tree has the same bytes, modes, links and times of modification. Owners, access control lists, extended attributes
//! and hard links are not restored. Names may be any bytes. Restoring again after an interruption ends in the same state,
//! because only differences are changed.

mod restore;
mod take;

pub use restore::{Restored, SnapshotLimits, plan, restore};
pub use take::{SnapshotError, SnapshotRefusal, SnapshotStart, take};
