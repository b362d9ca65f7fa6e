//! What failed in a bucket, without text of the server that may repeat a credential or a signed address.

use std::io;

use camino::Utf8PathBuf;
use counterproof_store::write::WriteError;

/// A request to a bucket, or the copy of a file, that failed.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The program has no client of a store.
    #[error("cannot open `{0}`: this program was built without the feature `bucket`")]
    NotBuilt(String),
    /// The store could not be set up from the environment.
    #[error("cannot open `{url}`: {reason}")]
    Open {
        /// The address of the bucket.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A request failed, also when it was repeated.
    #[error("failed to {action} `{url}`: {reason}")]
    Request {
        /// What was requested, such as `write`.
        action: &'static str,
        /// The address of the object or of the folder.
        url: String,
        /// The status and the code of the answer, or why there is none.
        reason: String,
    },
    /// The name of an object cannot be the name of a file.
    #[error("`{0}` cannot be copied: its name is not a path")]
    Name(String),
    /// A report would be written into a run.
    #[error("`{0}` is a run, and no report is written into it")]
    IsRun(String),
    /// An object is larger than this program reads.
    #[error("`{url}` has {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The address of the object.
        url: String,
        /// Its size.
        bytes: u64,
        /// The most that is read.
        limit: u64,
    },
    /// A file of this machine could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file of this machine could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The store lets two processes create the same object.
    #[error(
        "`{0}` lets two processes create the same object, so one of two processes of a shard would not notice the other"
    )]
    NoLease(String),
}

impl From<BucketError> for io::Error {
    fn from(error: BucketError) -> Self {
        io::Error::other(error)
    }
}
