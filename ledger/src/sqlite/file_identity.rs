//! Whether a path still names the same file.

use camino::Utf8Path;

/// The device and the number of the file that a path names. `None` if there is no file.
#[derive(Debug)]
pub(super) struct FileIdentity(Option<(u64, u64)>);

impl FileIdentity {
    #[cfg(unix)]
    pub(super) fn of(path: &Utf8Path) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        Self(path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino())))
    }

    /// Other systems do not remove a file that is open.
    #[cfg(not(unix))]
    pub(super) fn of(_path: &Utf8Path) -> Self {
        Self(Some((0, 0)))
    }

    /// Returns true if the path names the same file now.
    pub(super) fn is_of(&self, path: &Utf8Path) -> bool {
        self.0.is_some() && Self::of(path).0 == self.0
    }
}
