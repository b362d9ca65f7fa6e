//! Copies of git repositories to work in, and snapshots of them.
//!
//! ```text
//! repository of the user ─▶ WorkspaceStore::import ─▶ StoredRepository (bare)
//!                                                       │ create, restore      ▲ snapshot
//!                                                       └─▶ Workspace (folder) ┘
//!                              commit, diff, push, bundle ◀─ StoredRepository
//! ```

#![cfg(unix)]

mod diff;
pub mod git;
mod repository;
mod snapshot;
mod store;

pub use diff::{ChangeKind, FileStat, TreeChange};
pub use repository::{Author, Push, RepositoryId, StoredRepository, Update, WorkspaceError};
pub use snapshot::{LeftOut, Snapshot, SnapshotOptions, Workspace};
pub use store::{Start, WorkspaceStore};

/// Start of the references of snapshots.
pub const CHECKPOINTS: &str = "refs/counterproof/checkpoints/";
