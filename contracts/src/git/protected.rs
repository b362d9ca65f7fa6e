//! The paths of the program within a work tree: the store, its evidence, and the run folders.

use camino::{Utf8Path, Utf8PathBuf};

/// Paths that a reset neither changes nor removes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Protected {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    File(Utf8PathBuf),
    /// A store and the files that the program writes next to it.
    Store(Utf8PathBuf),
    Folder(Utf8PathBuf),
}

impl Protected {
    pub fn file(&mut self, path: &Utf8Path) {
        self.rules.extend(absolute(path).map(Rule::File));
    }

    /// Protects a store, and what the program writes next to it: the evidence, torn lines, and copies before a compaction.
    pub fn store(&mut self, path: &Utf8Path) {
        self.rules.extend(absolute(path).map(Rule::Store));
    }

    pub fn folder(&mut self, path: &Utf8Path) {
        self.rules.extend(absolute(path).map(Rule::Folder));
    }

    /// Returns a protected folder that contains a whole repository, in which a reset could restore nothing.
    pub(super) fn folder_around(&self, root: &Utf8Path) -> Option<&Utf8Path> {
        self.rules.iter().find_map(|rule| match rule {
            Rule::Folder(folder) if root.starts_with(folder) => Some(folder.as_path()),
            _ => None,
        })
    }

    pub(super) fn within(&self, root: &Utf8Path) -> Vec<Rule> {
        self.rules.iter().filter_map(|rule| rule.within(root)).collect()
    }
}

impl Rule {
    fn within(&self, root: &Utf8Path) -> Option<Self> {
        let relative = |path: &Utf8PathBuf| {
            path.strip_prefix(root).ok().filter(|path| !path.as_str().is_empty()).map(Utf8Path::to_owned)
        };
        match self {
            Rule::File(path) => relative(path).map(Rule::File),
            Rule::Store(path) => relative(path).map(Rule::Store),
            Rule::Folder(path) => relative(path).map(Rule::Folder),
        }
    }

    fn includes(&self, path: &str) -> bool {
        match self {
            Rule::File(file) => path == file.as_str(),
            Rule::Store(store) => path.strip_prefix(store.as_str()).is_some_and(is_end_of_store),
            Rule::Folder(folder) => path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/')),
        }
    }
}

pub(super) fn is_protected(path: &str, rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.includes(path))
}

/// True for what may follow the path of a store: nothing, or the end of the name of a file that belongs to it.
fn is_end_of_store(rest: &str) -> bool {
    // `.index`: an older version of the program may still be in use, or have left its index.
    let is_sibling = || [".index", ".torn-", ".before-"].iter().any(|end| rest.starts_with(end)) && !rest.contains('/');
    rest.is_empty() || rest.starts_with(".files/") || is_sibling()
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
