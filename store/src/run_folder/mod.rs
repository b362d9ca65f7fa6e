//! Run folders: created for writing, opened for reading, and reopened after an interruption. What the documents contain is
//! not judged here.
//!
//! ```text
//! runs/<side>/<runId>/run.json  <caseId>.json  assets/manifest.json  assets/…
//! ```

mod asset;
mod large_payload;
mod layout;
mod lock;
mod reader;
mod reopen;
mod staged_run;
mod writer;

pub use asset::{AssetWriter, UnnamedAsset};
pub use layout::{ASSETS_FOLDER, EVALUATION_FILE, LABELS_FILE, MANIFEST_FILE, RUN_FILE, SAFE_EXTENSIONS};
pub use lock::{LOCK_FILE, LockError, RunLock};
pub use reader::{Latest, ReadError, RunReader, read_evaluation};
pub use reopen::ReopenError;
pub use staged_run::StagedRun;
pub use writer::{CreateError, RunWriter};
