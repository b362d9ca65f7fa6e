//! The contents of a folder, to tell whether it is one of several whole states.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::Path;

use walkdir::WalkDir;

/// The files below a folder by relative path, with a hash of their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Snapshot(BTreeMap<String, u64>);

impl Snapshot {
    /// Reads a folder. An absent one is empty.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for entry in WalkDir::new(folder).into_iter().filter(|_| folder.exists()) {
            let entry = entry?;
            if entry.file_type().is_file() {
                let mut hasher = DefaultHasher::new();
                fs::read(entry.path())?.hash(&mut hasher);
                let relative = entry.path().strip_prefix(folder).map_err(io::Error::other)?;
                files.insert(relative.to_string_lossy().into_owned(), hasher.finish());
            }
        }
        Ok(Self(files))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first files that differ, for a message.
    pub(crate) fn difference(&self, other: &Self) -> String {
        let names = self.0.keys().chain(other.0.keys());
        let differing: std::collections::BTreeSet<_> =
            names.filter(|name| self.0.get(*name) != other.0.get(*name)).collect();
        let shown: Vec<_> = differing.iter().take(5).map(|name| name.as_str()).collect();
        format!("{} files differ: {}", differing.len(), shown.join(", "))
    }
}

/// The paths below a folder whose names start with `.tmp-`: what unfinished work leaves behind.
pub(crate) fn leftovers(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(folder).min_depth(1) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if name.starts_with(".tmp-") {
            found.push(entry.path().strip_prefix(folder).map_err(io::Error::other)?.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let target = to.join(entry.path().strip_prefix(from).map_err(io::Error::other)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target)?;
        } else {
            write(&target, &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Writes a file of an attack.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a file of an attack need not survive a crash")]
    fs::write(path, bytes)
}
