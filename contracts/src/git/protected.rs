//! Paths that a reset leaves as they are: the store of the contracts and their evidence may lie in the repository.

use camino::{Utf8Path, Utf8PathBuf};

/// Paths that a reset neither changes nor removes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Protected {
    /// The starts of absolute paths.
    prefixes: Vec<String>,
}

impl Protected {
    /// Protects a file, and the files next to it whose names start with its name.
    pub fn file_and_siblings(&mut self, path: &Utf8Path) {
        self.prefixes.extend(absolute(path).map(Utf8PathBuf::into_string));
    }

    /// Protects everything in a folder.
    pub fn folder(&mut self, path: &Utf8Path) {
        self.prefixes.extend(absolute(path).map(|path| format!("{path}/")));
    }

    /// Returns the prefixes of the paths within a repository, relative to it.
    pub(super) fn within(&self, root: &Utf8Path) -> Vec<String> {
        let root = format!("{root}/");
        self.prefixes.iter().filter_map(|prefix| prefix.strip_prefix(&root).map(str::to_owned)).collect()
    }
}

/// True if a path of a repository begins with one of the prefixes.
pub(super) fn is_protected(path: &str, protected: &[String]) -> bool {
    protected.iter().any(|prefix| path.starts_with(prefix.as_str()))
}

/// Returns the absolute path without symbolic links. Its last part need not exist.
fn absolute(path: &Utf8Path) -> Option<Utf8PathBuf> {
    if let Ok(path) = path.canonicalize_utf8() {
        return Some(path);
    }
    let name = path.file_name()?;
    let parent = path.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    // A folder that does not exist contains nothing to protect yet; its parent may be a link.
    absolute(parent).map(|parent| parent.join(name))
}
