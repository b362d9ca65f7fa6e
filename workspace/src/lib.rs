//! Copies of git repositories to work in, and snapshots of them.
//!
//! ```text
//! repository of the user ─▶ WorkspaceStore::import ─▶ StoredRepository (bare)
//!                                                       │ create, restore      ▲ snapshot
//!                                                       └─▶ Workspace (folder) ┘
//!                                    commit, diff, bundle ◀─ StoredRepository
//! ```
//!
//! A stored repository has all of its objects itself, so it needs the repository of the user only for an import. A workspace
//! has a `.git` for the agent that works in it. This crate never reads that `.git`, and it reads files of the workspace as bytes:
//! nothing in a workspace can make it run a program. The caller removes what it does not need any more.

#![cfg(unix)]

mod diff;
mod files;
pub mod git;
mod publish;
mod repository;
mod restore;
mod snapshot;
mod stat_cache;
mod store;

pub use diff::{ChangeKind, FileStat, TreeChange};
pub use repository::{Author, RepositoryId, StoredRepository, WorkspaceError};
pub use snapshot::{LeftOut, Snapshot, SnapshotOptions, Workspace};
pub use store::{Start, WorkspaceStore, without_password};

/// Start of the references of snapshots.
pub const CHECKPOINTS: &str = "refs/counterproof/checkpoints/";
