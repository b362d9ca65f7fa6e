//! Folders in an object store: Amazon S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage.
//!
//! The rest of the project works on folders of this machine. A [`Mirror`] copies what a command needs from a bucket to a working
//! copy, and is the [`RunCopy`](counterproof_store::RunCopy) that a run is written through: each file is put to the bucket before
//! its write is done. Credentials come from the environment alone: a [`BucketUrl`] cannot hold any, and errors name only the
//! address, the status and the code of the answer.
//!
//! Without the feature `stores`, no bucket can be opened, and the crate has no dependency outside of this project.
//!
//! ```
//! use counterproof_bucket::BucketUrl;
//!
//! let url: BucketUrl = "s3://agents/runs/new/build-7".parse()?;
//! assert_eq!(url.key("run.json"), "runs/new/build-7/run.json");
//! assert!("s3://key:secret@agents/runs".parse::<BucketUrl>().is_err());
//! # Ok::<(), counterproof_bucket::UrlError>(())
//! ```

#[cfg(feature = "stores")]
mod bucket;
mod failure;
mod mirror;
#[cfg(not(feature = "stores"))]
mod no_bucket;
mod url;

#[cfg(feature = "stores")]
pub use bucket::Bucket;
pub use failure::BucketError;
pub use mirror::Mirror;
#[cfg(not(feature = "stores"))]
pub use no_bucket::Bucket;
pub use url::{BucketUrl, Scheme, UrlError};
