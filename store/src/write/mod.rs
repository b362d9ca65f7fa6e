//! The one atomic writer: after a crash of the process or the machine, a file is either complete or absent.
//!
//! Bytes go to a temporary file in the same folder, which is then renamed to the target. With [`Durability::Synced`] the
//! file and its folder entry are on disk before a write returns. A whole folder is built under a temporary name,
//! and becomes a new folder or replaces one at the end ([`StagedFolder`], and [`SiteKind`] for folders of pages). What killed
//! processes leave is removed by the next writer.

mod atomic_file;
mod folders;
mod leftovers;
mod site;
mod staged_folder;
mod tree_files;

pub use atomic_file::remove;
pub use atomic_file::{AtomicFile, Durability, TEMPORARY_PREFIX, WriteError};
pub use atomic_file::{append, copy, create_new, write, write_json};
#[cfg(unix)]
pub use folders::create_public_folder;
pub use folders::{create_folder, create_new_folder, sync, sync_tree};
pub use folders::{create_private_file, create_private_folder};
pub(crate) use folders::{parent_of, sync_folder};
pub use leftovers::remove_leftovers_next_to;
pub(crate) use leftovers::remove_temporary_files;
pub use site::{INDEX_FILE, STATIC_FOLDER, SiteError, SiteKind};
pub use staged_folder::StagedFolder;
pub use tree_files::{copy_new, write_new};
#[cfg(unix)]
pub use tree_files::{put_file, put_link};
