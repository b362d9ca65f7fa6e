//! The one atomic writer: after a crash of the process or the machine, a file is either complete or absent.
//!
//! Bytes go to a temporary file in the same folder, which is then renamed to the target. With [`Durability::Synced`] the
//! file and its folder entry are on disk before a write returns. A whole folder is built under a temporary name and renamed at the
//! end ([`StagedFolder`]); a folder that replaces another one is swapped in ([`FolderReplacement`]). [`SiteKind`] does that for folders of pages. What killed processes
//! leave is removed by the next writer.

mod atomic_file;
mod exchange;
mod files;
mod folder_replacement;
mod folders;
mod leftovers;
mod new_file;
mod private;
#[cfg(unix)]
mod put;
mod site;
mod staged_folder;

pub use atomic_file::{AtomicFile, Durability, TEMPORARY_PREFIX, WriteError};
pub(crate) use files::remove;
pub use files::{append, copy, create_new, write, write_json};
pub use folder_replacement::{FolderReplacement, ReplaceError};
#[cfg(unix)]
pub use folders::create_public_folder;
pub use folders::{create_folder, create_new_folder, sync, sync_tree};
pub(crate) use folders::{parent_of, sync_folder};
pub use leftovers::remove_leftovers_next_to;
pub(crate) use leftovers::remove_temporary_files;
pub use new_file::{copy_new, write_new};
pub use private::{create_private_file, create_private_folder};
#[cfg(unix)]
pub use put::{put_file, put_link};
pub use site::{INDEX_FILE, STATIC_FOLDER, SiteError, SiteKind};
pub use staged_folder::StagedFolder;
