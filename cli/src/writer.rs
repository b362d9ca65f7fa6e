//! The name by which this program signs the files that it writes.

/// The program and its version.
pub(crate) const WRITER: &str = concat!("counterproof ", env!("CARGO_PKG_VERSION"));
