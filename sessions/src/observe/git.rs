//! The questions about a working tree that git answers. No command writes, runs a hook, or starts a program of the
//! repository's settings.

use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

/// Settings that would let a repository start programs.
const SAFE: [&str; 4] = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];

fn git(folder: &Utf8Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("git");
    command.args(SAFE).args(arguments).current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
    // Other commands must not wait for a lock of a recorder that only looks.
    command.env("GIT_OPTIONAL_LOCKS", "0");
    let output = command.output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// Returns the root of the working tree that has a folder.
pub(super) fn root(folder: &Utf8Path) -> Option<Utf8PathBuf> {
    let out = git(folder, &["rev-parse", "--show-toplevel"])?;
    let text = String::from_utf8(out).ok()?;
    Some(Utf8PathBuf::from(text.strip_suffix('\n').unwrap_or(&text)))
}

/// Returns the paths of all files but the ignored ones.
pub(super) fn files(root: &Utf8Path) -> Option<Vec<Utf8PathBuf>> {
    let out = git(root, &["ls-files", "--cached", "--others", "--exclude-standard", "-z"])?;
    Some(paths(&out).collect())
}

/// Returns the paths of files whose content differs from the index.
pub(super) fn changed(root: &Utf8Path) -> Option<Vec<Utf8PathBuf>> {
    let out = git(root, &["diff-files", "--name-only", "--no-ext-diff", "-z"])?;
    Some(paths(&out).collect())
}

/// Returns the object in the index of each path.
pub(super) fn index(root: &Utf8Path) -> Option<Vec<(Utf8PathBuf, String)>> {
    let out = git(root, &["ls-files", "--cached", "--stage", "-z"])?;
    let entry = |entry: &[u8]| {
        let text = std::str::from_utf8(entry).ok()?;
        let (facts, path) = text.split_once('\t')?;
        Some((Utf8PathBuf::from(path), facts.split(' ').nth(1)?.to_owned()))
    };
    Some(out.split(|byte| *byte == 0).filter_map(entry).collect())
}

/// Returns the content of an object.
pub(super) fn content(root: &Utf8Path, object: &str) -> Option<Vec<u8>> {
    git(root, &["cat-file", "blob", object])
}

/// Names that are not UTF-8 are left out.
fn paths(out: &[u8]) -> impl Iterator<Item = Utf8PathBuf> + '_ {
    let path = |entry: &[u8]| std::str::from_utf8(entry).ok().filter(|path| !path.is_empty()).map(Utf8PathBuf::from);
    out.split(|byte| *byte == 0).filter_map(path)
}
