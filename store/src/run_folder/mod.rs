//! Run folders: created for writing, opened for reading, and reopened after an interruption. What the documents contain is
//! not judged here.
//!
//! ```text
//! runs/<side>/<runId>/run.json  <caseId>.json  assets/manifest.json  assets/…
//! ```

mod packed;
mod reader;
mod relation;
mod reopen;
mod writer;

pub use packed::{RUN_ARCHIVE, pack_run, unpack_run};
pub use reader::{
    ASSETS_FOLDER, EVALUATION_FILE, LABELS_FILE, Latest, MANIFEST_FILE, RUN_FILE, ReadError, RunReader,
    SAFE_EXTENSIONS, read_evaluation,
};
pub use relation::RunRelation;
pub use reopen::{LOCK_FILE, LockError, ReopenError, lock_run_folder};
pub use writer::{CreateError, RunCopy, RunWriter, StagedRun, TakenOver, UnnamedAsset};
