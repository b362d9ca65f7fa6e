//! The checked-out commit of a folder, read with `git`.

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
    /// Reads the checkout that contains `folder`. Returns `None` without a checkout or without `git`.
    ///
    /// Untracked files do not count as changes, because run folders and reports usually are untracked.
    pub fn discover(folder: &Utf8Path) -> Option<Self> {
        let commit = git(folder, &["rev-parse", "--verify", "HEAD"])?.trim().to_owned();
        let changes = git(folder, &["status", "--porcelain", "--untracked-files=no"])?;
        Some(Self { commit, dirty: !changes.trim().is_empty() })
    }
}

fn git(folder: &Utf8Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        // `status` would otherwise rewrite the index and could block other git commands in the checkout.
        .args(["--no-optional-locks", "-C", folder.as_str()])
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_outside_a_checkout_has_no_commit() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Checkout::discover(Utf8Path::from_path(folder.path()).unwrap()), None);
    }
}
