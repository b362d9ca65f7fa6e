//! What the tests share.

use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use tempfile::TempDir;

/// A temporary folder, which is removed at the end, and its path.
pub(crate) fn folder() -> (TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

/// Returns the example `guard_supervisor`, which `cargo test` builds.
pub(crate) fn supervisor() -> PathBuf {
    // Tests are in `<target>/<profile>/deps/`, examples in `<target>/<profile>/examples/`.
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples").join("guard_supervisor")
}
