//! Run files that pages link to: their names within the report, and references to them.

mod copy;
mod copy_name;
mod page_names;
mod run_files;

pub(crate) use copy::{CopyFailures, copy_files};
pub(crate) use copy_name::copy_name;
pub(crate) use page_names::PageNames;
pub(crate) use run_files::{FileCopy, FileLink, FileRef, RunFiles};
