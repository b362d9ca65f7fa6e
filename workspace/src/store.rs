//! The folder of the copies of repositories, and how a repository gets into it.
//!
//! A copy is made with `git fetch`, also of a path: the objects are the store's own. With alternates, `git gc` in the repository of
//! the user would remove what snapshots need. With hard links, git would set the times of the user's packs, and a program that
//! changes a file of the store would change the user's.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_safe_run::Cancellation;
use counterproof_store::FileLock;
use counterproof_store::read_file;
use counterproof_store::write::{Durability, StagedFolder, create_folder, create_private_folder, sync_tree, write};
use serde::{Deserialize, Serialize};

use crate::git::{Git, GitError, GitOptions};
use crate::publish::{EXCLUDES, STARTS};
use crate::repository::{Author, RepositoryId, StoredRepository, WorkspaceError, object_name};

/// Raw bytes in both directions, for any `.gitattributes` of the files: this file comes before them.
pub(crate) const ATTRIBUTES: &str = "* -text -ident !eol !filter !working-tree-encoding\n";

/// The settings of a stored repository. All that git writes in it is on disk when git ends, and nothing is removed
/// automatically.
const SETTINGS: &str = "\tbare = true\n\tfsync = all\n\tlogAllRefUpdates = false\n\tattributesFile = /dev/null\n\
                        \texcludesFile = /dev/null\n\
                        [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[fetch]\n\tunpackLimit = 1\n\
                        [fastimport]\n\tunpackLimit = 1\n[pack]\n\twriteReverseIndex = false\n";

/// The names of files may be those that other systems cannot have. On macOS, several names mean `.git`.
pub(crate) const NAMES: &str = if cfg!(target_os = "macos") {
    "\tprotectNTFS = false\n\tprotectHFS = true\n"
} else {
    "\tprotectNTFS = false\n\tprotectHFS = false\n"
};

/// The length of a SHA-256 object name, in digits.
const SHA256_DIGITS: usize = 64;

/// Start of the references of the branches of a URL, which are named by digests: one may be a folder of another.
const BRANCHES: &str = "refs/counterproof/branches/";

const MAX_EXCLUDES_BYTES: u64 = 4 << 20;

/// A folder with one bare repository for each source repository.
#[derive(Debug, Clone)]
pub struct WorkspaceStore {
    folder: Utf8PathBuf,
    options: GitOptions,
    cancel: Cancellation,
}

/// Where the work on a repository starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    pub repository: RepositoryId,
    pub commit: String,
    /// The short name of the branch. `None` for a detached HEAD.
    pub branch: Option<String>,
    pub author: Author,
    /// The URL of the remote `origin`, or the URL of the source, without a password.
    pub origin: Option<String>,
}

/// What to fetch from a source.
struct Source {
    id: RepositoryId,
    /// As git takes it.
    location: String,
    /// The object or reference to fetch.
    wanted: String,
    commit: String,
    branch: Option<String>,
    origin: Option<String>,
    /// `None` for a URL.
    folder: Option<LocalFolder>,
}

struct LocalFolder {
    path: Utf8PathBuf,
    common: Utf8PathBuf,
    is_partial: bool,
}

impl WorkspaceStore {
    pub fn new(folder: Utf8PathBuf, options: GitOptions) -> Self {
        Self { folder, options, cancel: Cancellation::default() }
    }

    /// Makes a cancellation end the transfer of an import.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancellation) -> Self {
        Self { cancel: cancel.clone(), ..self }
    }

    /// Copies a repository into the store: a path, or a URL with the settings and credentials of the user. Nothing below the
    /// repository of the user is written. A second call for the same source copies only what is new.
    ///
    /// Without a branch, the start is what is checked out, or the default branch of a URL. Uncommitted changes are not copied.
    pub fn import(&self, source: &str, branch: Option<&str>) -> Result<Start, WorkspaceError> {
        let is_url = source.contains("://") || (!Utf8Path::new(source).exists() && source.contains(':'));
        create_private_folder(&self.folder)?;
        let source = if is_url { self.find_url(source, branch)? } else { self.find_folder(source, branch)? };
        let repository = self.stored(&source.id);
        let commit = self.locked(&repository, || {
            if repository.path.is_dir() {
                return repository.fetch(&source, &self.cancel);
            }
            let staged = StagedFolder::new(&repository.path, "import")?;
            let new = StoredRepository { path: staged.path().to_owned(), ..repository.clone() };
            new.initialize(source.commit.len())?;
            let commit = new.fetch(&source, &self.cancel)?;
            sync_tree(&new.path)?;
            staged.publish()?;
            Ok(commit)
        })?;
        let excludes = self.excludes(source.folder.as_ref())?;
        if repository.read_file(EXCLUDES) != excludes {
            write(&repository.path.join(EXCLUDES), &excludes, Durability::Synced)?;
        }
        let author = self.author(source.folder.as_ref().map_or(&*self.folder, |folder| &*folder.path))?;
        Ok(Start { repository: source.id, commit, branch: source.branch, author, origin: source.origin })
    }

    pub fn open(&self, repository: &RepositoryId) -> Result<StoredRepository, WorkspaceError> {
        let found = self.stored(repository);
        if found.path.is_dir() { Ok(found) } else { Err(WorkspaceError::UnknownRepository(repository.clone())) }
    }

    /// Removes the references below a name that ends with a slash, in all repositories. Their objects stay until
    /// [`WorkspaceStore::compact`].
    pub fn release(&self, references: &str) -> Result<(), WorkspaceError> {
        self.repositories()?.iter().try_for_each(|repository| repository.release(references))
    }

    /// Deletes all objects that no reference has. Only while no workspace is in use: a snapshot may need such an object again.
    pub fn compact(&self) -> Result<(), WorkspaceError> {
        let compact = |repository: &StoredRepository| {
            self.locked(repository, || Ok(repository.git(&["gc", "--quiet", "--prune=now"]).output().map(drop)?))
        };
        self.repositories()?.iter().try_for_each(compact)
    }

    fn repositories(&self) -> Result<Vec<StoredRepository>, WorkspaceError> {
        let entries = match self.folder.read_dir_utf8() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(WorkspaceError::file(&self.folder))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(WorkspaceError::file(&self.folder))?;
            let id = entry.file_name().strip_suffix(".git").map(|id| RepositoryId::try_from(id.to_owned()));
            if let Some(Ok(id)) = id {
                found.push(self.stored(&id));
            }
        }
        Ok(found)
    }

    /// Adds the commits of a file that [`StoredRepository::bundle`] has written.
    pub fn unbundle(&self, repository: &RepositoryId, file: &Utf8Path) -> Result<StoredRepository, WorkspaceError> {
        create_private_folder(&self.folder)?;
        let repository = self.stored(repository);
        self.locked(&repository, || {
            if repository.path.is_dir() {
                return repository.add_bundle(file);
            }
            let staged = StagedFolder::new(&repository.path, "import")?;
            let new = StoredRepository { path: staged.path().to_owned(), ..repository.clone() };
            // The header of a bundle of SHA-256 objects names them: `@object-format=sha256`.
            let head = read_file::open(file).map_err(WorkspaceError::file(file))?.0;
            let mut start = Vec::new();
            let limited = &mut std::io::Read::take(head, 256);
            std::io::Read::read_to_end(limited, &mut start).map_err(WorkspaceError::file(file))?;
            let is_sha256 = String::from_utf8_lossy(&start).lines().any(|line| line == "@object-format=sha256");
            new.initialize(if is_sha256 { SHA256_DIGITS } else { 40 })?;
            new.add_bundle(file)?;
            sync_tree(&new.path)?;
            Ok(staged.publish()?)
        })?;
        Ok(repository)
    }

    fn stored(&self, id: &RepositoryId) -> StoredRepository {
        // A path without links: it is written into workspaces.
        let folder = self.folder.canonicalize_utf8().unwrap_or_else(|_| self.folder.clone());
        StoredRepository { id: id.clone(), path: folder.join(format!("{id}.git")), options: self.options.clone() }
    }

    /// Runs an import while no other process imports the same repository.
    fn locked<T>(
        &self,
        repository: &StoredRepository,
        run: impl FnOnce() -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let path = Utf8PathBuf::from(format!("{}.lock", repository.path));
        let wait = self.options.timeout.max(Duration::from_mins(1));
        let lock = FileLock::lock_within(&path, wait).map_err(WorkspaceError::file(&path))?;
        let _lock = lock.ok_or_else(|| WorkspaceError::Busy(repository.path.clone()))?;
        run()
    }

    /// Creates a command in a folder of the user, with the settings of the user.
    fn git(&self, folder: &Utf8Path, arguments: &[&str]) -> Git {
        Git::new(&self.options, folder, arguments)
    }

    fn find_folder(&self, source: &str, branch: Option<&str>) -> Result<Source, WorkspaceError> {
        let folder = Utf8Path::new(source);
        let path = folder.canonicalize_utf8().map_err(WorkspaceError::file(folder))?;
        let arguments = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let common = match self.git(&path, &arguments).text() {
            Ok(common) => Utf8PathBuf::from(common),
            Err(GitError::Failed { message, .. }) => {
                return Err(WorkspaceError::NotARepository(source.to_owned(), message));
            }
            Err(error) => return Err(error.into()),
        };
        let common = common.canonicalize_utf8().map_err(WorkspaceError::file(&common))?;
        let answer = |arguments: &[&str]| -> Result<Option<String>, WorkspaceError> {
            let found = self.git(&path, arguments).answer()?;
            Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned()))
        };
        let resolve = |name: &str| answer(&["rev-parse", "--verify", "--quiet", "--end-of-options", name]);
        let (commit, branch) = if let Some(branch) = branch {
            let local = resolve(&format!("refs/heads/{branch}^{{commit}}"))?;
            let found = match local {
                Some(commit) => Some(commit),
                None => resolve(&format!("refs/remotes/origin/{branch}^{{commit}}"))?,
            };
            let missing = || WorkspaceError::NoBranch { source_name: source.to_owned(), branch: branch.to_owned() };
            (found.ok_or_else(missing)?, Some(branch.to_owned()))
        } else {
            let commit = resolve("HEAD^{commit}")?.ok_or_else(|| WorkspaceError::NoCommit(source.to_owned()))?;
            (commit, answer(&["symbolic-ref", "--quiet", "--short", "HEAD"])?)
        };
        // `git rev-parse` prints an option that it does not know.
        let commit = commit.lines().last().unwrap_or_default().to_owned();
        let origin = answer(&["config", "--get", "remote.origin.url"])?.filter(|url| !url.is_empty());
        let is_partial = answer(&["config", "--get", "extensions.partialClone"])?.is_some()
            || answer(&["config", "--get-regexp", r"^remote\..*\.promisor$"])?.is_some();
        Ok(Source {
            id: RepositoryId::new(common.as_str()),
            // The objects of linked work trees are there too.
            location: common.to_string(),
            wanted: object_name(&commit)?.to_owned(),
            commit,
            branch,
            origin: origin.map(|url| without_password(&url)),
            folder: Some(LocalFolder { path, common, is_partial }),
        })
    }

    fn find_url(&self, url: &str, branch: Option<&str>) -> Result<Source, WorkspaceError> {
        let shown = without_password(url);
        let wanted = branch.map_or_else(|| "HEAD".to_owned(), |branch| format!("refs/heads/{branch}"));
        let arguments = ["ls-remote", "--symref", "--", url, &wanted];
        let git = self.git(&self.folder, &arguments).with_protocols(PROTOCOLS).cancelled_by(&self.cancel);
        let listed = git.text().map_err(without_url(url, &shown))?;
        let mut commit = None;
        let mut default = None;
        for (value, _) in listed.lines().filter_map(|line| line.split_once('\t')).filter(|(_, name)| *name == wanted) {
            match value.strip_prefix("ref: refs/heads/") {
                Some(branch) => default = Some(branch.to_owned()),
                None if !value.starts_with("ref: ") => commit = Some(value.to_owned()),
                None => {}
            }
        }
        let commit = commit.ok_or_else(|| match branch {
            Some(branch) => WorkspaceError::NoBranch { source_name: shown.clone(), branch: branch.to_owned() },
            None => WorkspaceError::NoCommit(shown.clone()),
        })?;
        Ok(Source {
            id: RepositoryId::new(&shown),
            location: url.to_owned(),
            commit: object_name(&commit)?.to_owned(),
            wanted,
            branch: branch.map(str::to_owned).or(default),
            origin: Some(shown),
            folder: None,
        })
    }

    fn author(&self, folder: &Utf8Path) -> Result<Author, WorkspaceError> {
        let value = |name: &str, default: &str| -> Result<String, WorkspaceError> {
            let found = self.git(folder, &["config", "--get", name]).answer()?.unwrap_or_default();
            let found = String::from_utf8_lossy(&found).trim().to_owned();
            Ok(if found.is_empty() { default.to_owned() } else { found })
        };
        Ok(Author { name: value("user.name", "counterproof")?, email: value("user.email", "counterproof@localhost")? })
    }

    /// Returns the rules for ignored files that are not in `.gitignore` files: those of the user, then those of the repository,
    /// which come first.
    fn excludes(&self, folder: Option<&LocalFolder>) -> Result<Vec<u8>, WorkspaceError> {
        let place = folder.map_or(&self.folder, |folder| &folder.path);
        let named = self.git(place, &["config", "--type=path", "--get", "core.excludesFile"]).answer()?;
        let named = named.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        let default = || {
            let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
            let folder = variable("XDG_CONFIG_HOME").or_else(|| Some(format!("{}/.config", variable("HOME")?)))?;
            Some(format!("{folder}/git/ignore"))
        };
        let of_user = named.or_else(default).map(Utf8PathBuf::from);
        let mut rules = Vec::new();
        let of_repository = folder.map(|folder| folder.common.join("info/exclude"));
        for path in of_user.into_iter().chain(of_repository) {
            // Files that are missing have no rules.
            if let Ok(bytes) = read_file::read(&path, MAX_EXCLUDES_BYTES) {
                rules.extend(bytes);
                rules.push(b'\n');
            }
        }
        Ok(rules)
    }
}

/// The protocols of an import.
const PROTOCOLS: &str = "file:git:http:https:ssh";

impl StoredRepository {
    /// Writes an empty repository into its folder.
    fn initialize(&self, digits: usize) -> Result<(), WorkspaceError> {
        for name in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            create_folder(&self.path.join(name))?;
        }
        let put = |name: &str, text: &str| write(&self.path.join(name), text.as_bytes(), Durability::Cached);
        let format = if digits == SHA256_DIGITS { "1\n[extensions]\n\tobjectFormat = sha256\n" } else { "0\n" };
        put("config", &format!("[core]\n{SETTINGS}[core]\n{NAMES}\trepositoryFormatVersion = {format}"))?;
        put("HEAD", "ref: refs/heads/none\n")?;
        put("info/attributes", ATTRIBUTES)?;
        Ok(())
    }

    /// Creates a command on the repository, with the settings and credentials of the user.
    pub(crate) fn git_of_user(&self, arguments: &[&str]) -> Git {
        Git::new(&self.options, &self.path, arguments).with("GIT_DIR", self.path.as_str())
    }

    /// Copies the commit and its history, and returns its name.
    fn fetch(&self, source: &Source, cancel: &Cancellation) -> Result<String, WorkspaceError> {
        let shown = without_password(&source.location);
        let mut reference = format!("{STARTS}{}", source.commit);
        if source.folder.is_none() {
            let digest = Sha256Digest::from_bytes(source.wanted.as_bytes()).to_string();
            reference = format!("{BRANCHES}{}", digest.rsplit(':').next().unwrap_or_default());
        }
        let refspec = format!("+{}:{reference}", source.wanted);
        let mut arguments = vec![
            "-c",
            // The first version with which any object can be asked for.
            "protocol.version=2",
            "fetch",
            "--quiet",
            "--no-auto-maintenance",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--update-shallow",
        ];
        if let Some(folder) = source.folder.as_ref().filter(|folder| folder.is_partial) {
            self.check_partial(folder, source)?;
            arguments.push("--depth=1");
        }
        if source.folder.is_some() {
            // Deltas that exist are copied. To search for others takes longer than it saves.
            arguments.push("--upload-pack=git -c pack.window=0 -c pack.compression=1 upload-pack");
        }
        arguments.extend(["--", &source.location, &refspec]);
        let run = || self.git_of_user(&arguments).with_protocols(PROTOCOLS).cancelled_by(cancel).output();
        self.unlocking(|| run().map_err(without_url(&source.location, &shown)))?;
        let commit = self.git(&["rev-parse", "--verify", "--quiet", &format!("{reference}^{{commit}}")]).text()?;
        // The branch moves with the next import, and the commit stays.
        self.keep(&format!("{STARTS}{commit}"), &commit)?;
        Ok(commit)
    }

    /// Checks that a partial clone has all files of the commit. Git must not fetch them: it would write them into the clone.
    fn check_partial(&self, folder: &LocalFolder, source: &Source) -> Result<(), WorkspaceError> {
        let arguments = ["rev-list", "--objects", "--no-walk", "--missing=print", "--quiet", &source.commit];
        let missing = Git::new(&self.options, &folder.path, &arguments).text()?;
        if missing.lines().any(|line| line.starts_with('?')) {
            return Err(WorkspaceError::Partial(source.location.clone()));
        }
        Ok(())
    }
}

/// Removes a password from a URL, and the user of a web server, which can be a token.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((user, host)) = authority.rsplit_once('@') else { return url.to_owned() };
    let user = user.split(':').next().unwrap_or_default();
    if scheme.starts_with("http") || user.is_empty() {
        format!("{scheme}://{host}{path}")
    } else {
        format!("{scheme}://{user}@{host}{path}")
    }
}

/// Removes the password of a URL from the error of a command.
pub(crate) fn without_url<'a>(url: &'a str, shown: &'a str) -> impl Fn(GitError) -> GitError + 'a {
    move |error| match error {
        GitError::Failed { command, message } => {
            GitError::Failed { command: command.replace(url, shown), message: message.replace(url, shown) }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_tokens_are_removed_from_urls() {
        for (url, expected) in [
            ("https://token@host/a", "https://host/a"),
            ("https://user:p@ss@host:8/a@b", "https://host:8/a@b"),
            ("ssh://git:secret@host/a", "ssh://git@host/a"),
            ("ssh://git@host", "ssh://git@host"),
            ("git@host:a/b", "git@host:a/b"),
            ("file:///a", "file:///a"),
            ("/a/b", "/a/b"),
        ] {
            assert_eq!(without_password(url), expected);
        }
    }
}
