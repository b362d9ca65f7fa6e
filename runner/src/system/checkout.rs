//! The commit that is checked out where the runner runs, as far as `git` knows. Nothing else is asked of it.

use std::process::{Command, Stdio};

use camino::Utf8Path;

/// A checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The commit's full id.
    pub commit: String,
    /// True where tracked files differ from the commit.
    pub dirty: bool,
}

impl Checkout {
    /// The checkout that holds `folder`; `None` where there is none, or no `git`.
    ///
    /// Files that are not tracked do not count as changes: runs and reports are such files.
    pub fn discover(folder: &Utf8Path) -> Option<Self> {
        let commit = git(folder, &["rev-parse", "--verify", "HEAD"])?.trim().to_owned();
        let changes = git(folder, &["status", "--porcelain", "--untracked-files=no"])?;
        Some(Self { commit, dirty: !changes.trim().is_empty() })
    }
}

fn git(folder: &Utf8Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        // `status` would otherwise rewrite the index, in the way of whoever works there.
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
    fn a_folder_outside_of_any_checkout_has_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Checkout::discover(Utf8Path::from_path(folder.path()).unwrap()), None);
    }
}
