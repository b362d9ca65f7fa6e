//! The one atomic writer: after a crash of the process or the machine, a file is either complete or absent.
//!
//! Bytes go to a temporary file in the same folder, which is then renamed to the target. With [`Durability::Synced`] the
//! file and its folder entry are on disk before a write returns. Threads that write into one folder at the same time can
//! share the sync of that folder ([`SharedFolder`]). A whole folder is built under a temporary name and renamed at the
//! end ([`StagedFolder`]).

mod atomic_file;
mod files;
mod folders;
mod repeatable_error;
mod shared_folder;
mod staged_folder;

pub use atomic_file::{AtomicFile, Durability, TEMPORARY_PREFIX, WriteError};
pub use files::{append, copy, create_new, write, write_json, write_json_shared};
pub(crate) use files::{create_log, remove, sync_file, sync_file_system};
pub use folders::{create_folder, create_new_folder, sync};
pub(crate) use repeatable_error::RepeatableError;
pub use shared_folder::SharedFolder;
pub use staged_folder::StagedFolder;
