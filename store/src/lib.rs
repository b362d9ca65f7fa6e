//! Files on disk: the one atomic writer, and run folders.
//!
//! All writes of the project go through [`mod@write`]: a temporary file in the same folder, fsync, rename, fsync of the
//! folder. On top of it, [`RunWriter`] creates a run folder (one process at a time, guarded by a lock; the files of a
//! case are durable before the case counts as complete), and [`RunReader`] opens one. Reads of files that another program wrote go through
//! [`confined_path`], which never leaves the folder.
//!
//! [`line_log`] is an append-only file of lines that several processes write.
//!
//! This crate does not judge what the documents contain; `counterproof-validation` does.
//!
//! ```
//! use counterproof_artifact::{AssetKind, Side};
//! use counterproof_store::RunWriter;
//!
//! let out = tempfile::tempdir()?;
//! let out = camino::Utf8Path::from_path(out.path()).unwrap();
//! let run = RunWriter::create(out, Side::New, &"r1".parse()?)?;
//! run.write_asset("notes.txt", AssetKind::FullBody, None, b"hello")?;
//! run.write_manifest("2026-01-31T12:00:00Z")?;
//! assert!(out.join("new/r1/assets/notes.txt").is_file());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod confined_path;
pub mod line_log;
pub mod read_file;
pub mod spill_buffer;
pub mod write;

mod case_list;
mod file_lock;
#[cfg(unix)]
pub mod lock_registry;
mod relative_path;
mod run_folder;

pub use case_list::{CaseList, CaseListError};
pub use file_lock::FileLock;
pub use relative_path::{is_plain_path, relative_path};
pub use run_folder::{
    ASSETS_FOLDER, CreateError, EVALUATION_FILE, LABELS_FILE, LOCK_FILE, Latest, LockError, MANIFEST_FILE, RUN_ARCHIVE,
    RUN_FILE, ReadError, ReopenError, RunCopy, RunReader, RunRelation, RunWriter, SAFE_EXTENSIONS, StagedRun,
    TakenOver, UnnamedAsset, lock_run_folder, pack_run, read_evaluation, unpack_run,
};
