//! Errors of merging shards.

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, NameError, Side};
use counterproof_store::write::WriteError;
use counterproof_store::{CreateError, ReadError};

use super::changes::Changes;

/// Why shards could not be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A shard, or one of its files, could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The shards do not form one complete run.
    #[error(transparent)]
    Shards(#[from] ShardMismatch),
    /// The new run folder could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why shards do not form one complete run.
#[derive(Debug, thiserror::Error)]
pub enum ShardMismatch {
    /// No shard was given.
    #[error("there are no shards")]
    Empty,
    /// The name of the new folder is not a run id.
    #[error("`{folder}` is not a valid name of a run: {source}")]
    Name {
        /// The new folder.
        folder: Utf8PathBuf,
        /// Why the name is invalid.
        source: NameError,
    },
    /// The new folder belongs to the other side.
    #[error("`{folder}` is in the folder of side `{side}`, but the shards are of side `{of_shards}`")]
    Side {
        /// The new folder.
        folder: Utf8PathBuf,
        /// The side of its parent folder.
        side: Side,
        /// The side of the shards.
        of_shards: Side,
    },
    /// A run is not a shard.
    #[error("`{0}` is not a shard: its run.json has no `shard`")]
    NotAShard(Utf8PathBuf),
    /// A shard was given twice.
    #[error("`{first}` and `{second}` are both shard {index}")]
    Twice {
        /// One of the folders.
        first: Utf8PathBuf,
        /// The other folder.
        second: Utf8PathBuf,
        /// The number of the shard.
        index: u64,
    },
    /// Shards are missing.
    #[error("shards are missing: {}", .0.join(", "))]
    Missing(Vec<String>),
    /// Two shards are of different runs.
    #[error("`{first}` and `{second}` are not shards of one run: {changes}")]
    DifferentRuns {
        /// One of the shards.
        first: Utf8PathBuf,
        /// The other shard.
        second: Utf8PathBuf,
        /// How their settings differ.
        changes: Changes,
    },
    /// The positions of a shard's cases in the whole run are not recorded.
    #[error("`{0}` does not record the position of each of its cases")]
    Positions(Utf8PathBuf),
    /// A case is in more than one shard.
    #[error("the case `{0}` is in more than one shard")]
    DuplicateCase(CaseId),
    /// The number of cases differs from that of the whole run.
    #[error("the shards have {found} cases in total, but the run has {expected}")]
    CaseCount {
        /// Cases of all shards.
        found: usize,
        /// Cases of the whole run.
        expected: u64,
    },
    /// The cases differ from those of the whole run.
    #[error("the cases of the shards differ from those of the whole run")]
    OtherCases,
    /// A case has no artifact.
    #[error("`{folder}` is not complete: the case `{case}` has no artifact")]
    Incomplete {
        /// The shard.
        folder: Utf8PathBuf,
        /// The case.
        case: CaseId,
    },
    /// An asset is in more than one shard.
    #[error("the asset `{0}` is in more than one shard")]
    DuplicateAsset(String),
    /// An asset differs from its entry in the manifest.
    #[error("`{0}` differs from the digest in its manifest")]
    ChangedAsset(Utf8PathBuf),
}
