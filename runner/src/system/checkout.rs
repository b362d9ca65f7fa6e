//! The checked-out commit of a folder, read with `git`.

use std::io::Read as _;
use std::process::{Command, Stdio};

use camino::Utf8Path;

/// A checked-out commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The full commit id.
    pub commit: String,
    /// Whether tracked files differ from the commit.
    pub dirty: bool,
}

impl Checkout {
    /// Reads the checkout that contains `folder`. Returns `None` without a checkout, without a commit or without `git`.
    ///
    /// Untracked files do not count as changes, because run folders and reports usually are untracked.
    pub fn discover(folder: &Utf8Path) -> Option<Self> {
        Self::from_status(&git_status(folder)?)
    }

    /// Reads the output of `git status`: headers that start with `#`, then one line per change.
    fn from_status(status: &str) -> Option<Self> {
        let commit = status.lines().find_map(|line| line.strip_prefix("# branch.oid "))?.to_owned();
        let dirty = status.lines().any(|line| !line.starts_with('#'));
        (commit != "(initial)").then_some(Self { commit, dirty })
    }
}

/// Returns the output of `git status`, which is empty after a failure.
fn git_status(folder: &Utf8Path) -> Option<String> {
    let mut git = Command::new("git")
        // `status` would otherwise rewrite the index and could block other git commands in the checkout.
        .args(["--no-optional-locks", "-C", folder.as_str()])
        .args(["status", "--porcelain=v2", "--branch", "--untracked-files=no"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = String::new();
    let read = git.stdout.take()?.read_to_string(&mut output);
    // There is no exit status to wait for if the parent of this process ignored SIGCHLD. Agent programs inherit that, so it is not
    // changed here; the headers show well enough that git succeeded.
    let is_failure = git.wait().is_ok_and(|status| !status.success());
    (read.is_ok() && !is_failure).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_outside_a_checkout_has_no_commit() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Checkout::discover(Utf8Path::from_path(folder.path()).unwrap()), None);
    }

    #[test]
    fn the_commit_and_the_changes_are_read_from_the_status() {
        let status = "# branch.oid 1f2e3d\n# branch.head main\n";
        let checkout = |dirty| Some(Checkout { commit: "1f2e3d".to_owned(), dirty });
        assert_eq!(Checkout::from_status(status), checkout(false));
        assert_eq!(
            Checkout::from_status(&format!("{status}1 .M N... 100644 100644 100644 0 0 a.txt\n")),
            checkout(true)
        );
        assert_eq!(Checkout::from_status("# branch.oid (initial)\n# branch.head main\n"), None);
        assert_eq!(Checkout::from_status(""), None);
    }
}
