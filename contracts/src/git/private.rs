//! A git folder of our own, which shares only the objects with the repository of the user. Settings, attributes, filters, ignore
//! rules, replacements and index flags of the repository do not apply in it: the work can change all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_store::write::{Durability, create_folder, write};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::repository::Repository;
use super::work_tree::FileKind;
use counterproof_workspace::git::{Git, GitError, GitOptions, split};

/// Raw bytes in both directions, whatever the `.gitattributes` of the work tree contain: this file comes before them.
const ATTRIBUTES: &str = "* -text -ident !eol !filter !working-tree-encoding\n";

/// The length of a SHA-256 object name, in digits.
const SHA256_DIGITS: usize = 64;

pub(super) const LINK_MODE: &str = "120000";
pub(super) const SUBMODULE_MODE: &str = "160000";

/// A file as git stores it: its mode, and the name of the object with its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) mode: String,
    pub(super) object: String,
}

/// The files of a tree by their paths. `None` is a file that is not there.
pub(super) type Entries = BTreeMap<String, Option<Entry>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objects {
    /// Objects that are written are in the repository.
    Repository,
    /// Objects that are written are removed with this folder.
    Temporary,
}

#[derive(Debug)]
pub(super) struct PrivateGit {
    folder: TempDir,
    root: Utf8PathBuf,
    objects: Utf8PathBuf,
    written: Objects,
    options: GitOptions,
}

impl PrivateGit {
    /// Creates the folder. `commit` is a commit of the repository, whose length shows the format of object names.
    pub(super) fn new(
        repository: &Repository,
        commit: &str,
        written: Objects,
        options: &GitOptions,
    ) -> Result<Self, GitError> {
        let folder = tempfile::Builder::new().prefix("counterproof-git-").tempdir().map_err(GitError::Io)?;
        let git = Self {
            folder,
            root: repository.root.clone(),
            objects: repository.objects(),
            written,
            options: options.clone(),
        };
        for name in ["objects", "refs", "info", "rules", "links", "empty"] {
            create_folder(&git.path(name)?).map_err(written_error)?;
        }
        let is_sha256 = commit.len() == SHA256_DIGITS;
        let format = if is_sha256 { "1\n[extensions]\nobjectFormat = sha256\n" } else { "0\n" };
        let excludes = git.path("excludes")?;
        let config = format!(
            "[core]\nbare = false\nexcludesFile = \"{excludes}\"\nattributesFile = /dev/null\nrepositoryFormatVersion = {format}"
        );
        git.put("config", config.as_bytes())?;
        git.put("HEAD", b"ref: refs/heads/none\n")?;
        git.put("info/attributes", ATTRIBUTES.as_bytes())?;
        // Without it, the parents of the oldest commits of a shallow clone would be missing.
        let shallow = repository.common_folder.join("shallow");
        if let Ok(bytes) = counterproof_store::read_file::read(&shallow, MAX_SHALLOW_BYTES) {
            git.put("shallow", &bytes)?;
        }
        Ok(git)
    }

    pub(super) fn path(&self, name: &str) -> Result<Utf8PathBuf, GitError> {
        let path = self.folder.path().join(name);
        Utf8PathBuf::from_path_buf(path).map_err(|path| GitError::PathNotUtf8(path.display().to_string()))
    }

    /// Returns the time by the clock of the file system, which can be behind that of the system.
    pub(super) fn created_at(&self) -> Result<Timestamp, GitError> {
        let path = self.path("HEAD")?;
        let modified = path.metadata().and_then(|metadata| metadata.modified()).map_err(GitError::file(&path))?;
        Timestamp::try_from(modified).map_err(|error| GitError::Io(std::io::Error::other(error)))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), GitError> {
        write(&self.path(name)?, bytes, Durability::Cached).map_err(written_error)
    }

    /// Creates a command on the work tree of the user.
    pub(super) fn git(&self, arguments: &[&str]) -> Git {
        self.git_on(&self.root, arguments)
    }

    /// Creates a command that needs no work tree. It does not read the attributes of the work tree, which may be a pipe.
    pub(super) fn git_apart(&self, arguments: &[&str]) -> Result<Git, GitError> {
        Ok(self.git_on(&self.path("empty")?, arguments))
    }

    fn git_on(&self, work_tree: &Utf8Path, arguments: &[&str]) -> Git {
        let folder = self.folder.path();
        let git = Git::new(&self.options, work_tree, arguments)
            .without_user_settings()
            .with("GIT_DIR", folder)
            .with("GIT_WORK_TREE", work_tree.as_str())
            .with("GIT_INDEX_FILE", folder.join("index"));
        match self.written {
            Objects::Repository => git.with("GIT_OBJECT_DIRECTORY", self.objects.as_str()),
            Objects::Temporary => git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.objects.as_str()),
        }
    }

    /// Returns the files of a commit, and the digest of their list.
    pub(super) fn tree(&self, commit: &str) -> Result<(BTreeMap<String, Entry>, Sha256Digest), GitError> {
        let output = self.git(&["ls-tree", "-r", "-z", "--full-tree", commit]).output()?;
        let mut files = BTreeMap::new();
        for line in split(&output)? {
            // `mode type object<TAB>path`
            let (fields, path) = line.split_once('\t').ok_or_else(|| GitError::Output("ls-tree".to_owned()))?;
            let mut fields = fields.split(' ');
            let (mode, object) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
            files.insert(path.to_owned(), Entry { mode: mode.to_owned(), object: object.to_owned() });
        }
        Ok((files, Sha256Digest::from_bytes(&output)))
    }

    /// Returns the files of the work tree as git stores them, with their bytes as they are. Special files are left out.
    pub(super) fn hash(&self, files: &BTreeMap<String, FileKind>, keep: bool) -> Result<Entries, GitError> {
        let (mut input, mut hashed) = (String::new(), Vec::new());
        for (path, kind) in files {
            let (mode, source) = match kind {
                FileKind::File { is_executable } => (if *is_executable { "100755" } else { "100644" }, path.clone()),
                FileKind::Link => (LINK_MODE, self.link_target(path, hashed.len())?),
                FileKind::Special => continue,
            };
            hashed.push((path.clone(), mode));
            input.push_str(&quoted(&source));
            input.push('\n');
        }
        let mut entries: Entries = files.keys().map(|path| (path.clone(), None)).collect();
        let objects = self.hash_listed(input, keep)?;
        if objects.len() != hashed.len() {
            return Err(GitError::Output("hash-object".to_owned()));
        }
        let found = hashed.into_iter().zip(objects);
        entries.extend(found.map(|((path, mode), object)| (path, Some(Entry { mode: mode.to_owned(), object }))));
        Ok(entries)
    }

    fn hash_listed(&self, input: String, keep: bool) -> Result<Vec<String>, GitError> {
        if input.is_empty() {
            return Ok(Vec::new());
        }
        let mut arguments = vec!["hash-object", "--no-filters", "--stdin-paths"];
        arguments.extend(keep.then_some("-w"));
        Ok(self.git(&arguments).with_input(input.into_bytes()).text()?.lines().map(str::to_owned).collect())
    }

    /// Writes the target of a link into a file, which is hashed in its place.
    fn link_target(&self, path: &str, number: usize) -> Result<String, GitError> {
        let full = self.root.join(path);
        let target = fs::read_link(&full).map_err(GitError::file(&full))?;
        let name = format!("links/{number}");
        self.put(&name, &target.into_os_string().into_vec())?;
        Ok(self.path(&name)?.into_string())
    }

    /// Stores bytes as an object, and returns its name.
    pub(super) fn store(&self, bytes: Vec<u8>) -> Result<String, GitError> {
        self.git(&["hash-object", "-w", "--no-filters", "--stdin"]).with_input(bytes).text()
    }

    /// Returns the bytes of an object. Fails unless its name is that of these bytes: git does not check this.
    pub(super) fn load(&self, object: &str) -> Result<Vec<u8>, GitError> {
        let Ok(bytes) = self.git(&["cat-file", "blob", object]).output() else { return Err(GitError::NoManifest) };
        let name = self.git(&["hash-object", "--no-filters", "--stdin"]).with_input(bytes.clone()).text()?;
        if name == object { Ok(bytes) } else { Err(GitError::NoManifest) }
    }

    /// Sets the rules of [`ignored`](Self::ignored): the `.gitignore` files, and the objects with the rules of the repository and
    /// of the user.
    pub(super) fn set_rules(&self, files: &BTreeMap<String, String>, rules: [&str; 2]) -> Result<(), GitError> {
        self.put("info/exclude", &self.load(rules[0])?)?;
        self.put("excludes", &self.load(rules[1])?)?;
        for (path, object) in files {
            let path = format!("rules/{path}");
            let folder = self.path(&path)?;
            create_folder(folder.parent().unwrap_or(&folder)).map_err(written_error)?;
            self.put(&path, &self.load(object)?)?;
        }
        Ok(())
    }

    /// Returns those of the paths that the rules ignore. Only files: a path that ends with a slash has no meaning.
    pub(super) fn ignored<'a>(&self, paths: impl Iterator<Item = &'a String>) -> Result<BTreeSet<String>, GitError> {
        // `./`, because a path that begins with a colon would be a pattern.
        let input: Vec<u8> = paths.flat_map(|path| format!("./{path}\0").into_bytes()).collect();
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        // In a folder that has only the rules: the `.gitignore` files of the work tree are not those of the start.
        let git = self.git_on(&self.path("rules")?, &["check-ignore", "--no-index", "-z", "--stdin"]);
        let found = split(&git.with_input(input).answer()?.unwrap_or_default())?;
        Ok(found.iter().filter_map(|path| path.strip_prefix("./")).map(str::to_owned).collect())
    }

    /// Makes our index that of a commit with these changes.
    pub(super) fn set_index(&self, commit: &str, changes: &Entries) -> Result<(), GitError> {
        self.git(&["read-tree", commit]).output()?;
        let removed = "0".repeat(commit.len());
        let mut lines = String::new();
        // Removals first: a new file may be in the place of a folder.
        for path in changes.iter().filter(|(_, entry)| entry.is_none()).map(|(path, _)| path) {
            let _ = write!(lines, "0 {removed}\t{path}\0");
        }
        for (path, entry) in changes {
            if let Some(Entry { mode, object }) = entry {
                let _ = write!(lines, "{mode} {object}\t{path}\0");
            }
        }
        if !lines.is_empty() {
            let arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--index-info"];
            self.git(&arguments).with_input(lines.into_bytes()).output()?;
        }
        Ok(())
    }

    /// Returns the tree of our index.
    pub(super) fn write_tree(&self) -> Result<String, GitError> {
        // A submodule and a partial clone have objects elsewhere.
        self.git(&["write-tree", "--missing-ok"]).text()
    }
}

const MAX_SHALLOW_BYTES: u64 = 64 << 20;

fn written_error(error: counterproof_store::write::WriteError) -> GitError {
    GitError::File { path: error.path, source: error.source }
}

/// Quotes a path for a list with one path per line, as git reads it.
fn quoted(path: &str) -> String {
    if !path.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        return path.to_owned();
    }
    let mut text = "\"".to_owned();
    for character in path.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            _ if character < ' ' => drop(write!(text, "\\{:03o}", u32::from(character))),
            _ => text.push(character),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn only_paths_that_a_line_cannot_hold_are_quoted() {
        assert_eq!(quoted("a b/ä.txt"), "a b/ä.txt");
        assert_eq!(quoted("a\n\"b\\c\r"), "\"a\\012\\\"b\\\\c\\015\"");
    }
}
