//! `sample-runs/`: recorded by an example of `demo/`, and compared with a new recording.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use walkdir::WalkDir;

use crate::programs;
use crate::step::{Failure, progress, root};

const FOLDER: &str = "sample-runs";

pub(crate) fn record() -> Result<(), Failure> {
    let runs = root().join(FOLDER).join("runs");
    // A file that is no longer recorded must not stay.
    if runs.exists() {
        std::fs::remove_dir_all(&runs).map_err(|source| Failure::File { path: runs, source })?;
    }
    record_into(&root().join(FOLDER))
}

pub(crate) fn check() -> Result<(), Failure> {
    let failed = |source| Failure::File { path: "the temporary folder".into(), source };
    let temporary = tempfile::tempdir().map_err(failed)?;
    let fresh = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| failed(std::io::Error::other("its path is not UTF-8")))?
        .join(FOLDER);
    record_into(&fresh)?;
    let differences = differences(&root().join(FOLDER), &fresh)?;
    if differences.is_empty() {
        progress("    the samples are current");
        return Ok(());
    }
    Err(Failure::Samples(differences.join("\n")))
}

fn record_into(folder: &Utf8Path) -> Result<(), Failure> {
    programs::build()?;
    programs::example("sample_runs", &[folder.to_string()])
}

fn differences(checked_in: &Utf8Path, fresh: &Utf8Path) -> Result<Vec<String>, Failure> {
    let (old, new) = (read(checked_in)?, read(fresh)?);
    let mut lines = Vec::new();
    for (path, bytes) in &old {
        match new.get(path) {
            None => lines.push(format!("  {path}: checked in, but not recorded")),
            Some(fresh) if fresh != bytes => lines.push(format!("  {path}: {}", first_difference(bytes, fresh))),
            Some(_) => {}
        }
    }
    lines.extend(
        new.keys()
            .filter(|path| !old.contains_key(*path))
            .map(|path| format!("  {path}: recorded, but not checked in")),
    );
    Ok(lines)
}

fn read(root: &Utf8Path) -> Result<BTreeMap<Utf8PathBuf, Vec<u8>>, Failure> {
    let mut files = BTreeMap::new();
    let failed = |source: io::Error| Failure::File { path: root.to_owned(), source };
    for entry in WalkDir::new(root) {
        let entry = entry.map_err(|error| failed(error.into()))?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path =
            Utf8Path::from_path(entry.path()).ok_or_else(|| failed(io::Error::other("a file name is not UTF-8")))?;
        let bytes = std::fs::read(path).map_err(failed)?;
        files.insert(path.strip_prefix(root).unwrap_or(path).to_owned(), bytes);
    }
    Ok(files)
}

fn first_difference(old: &[u8], new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let mut line = 1;
    let (mut ours, mut theirs) = (old.split('\n'), new.split('\n'));
    loop {
        match (ours.next(), theirs.next()) {
            (Some(a), Some(b)) if a == b => line += 1,
            (a, b) => return format!("line {line} is {:?}, recorded {:?}", a.unwrap_or(""), b.unwrap_or("")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_reported() {
        assert_eq!(first_difference(b"a\nb\n", b"a\nc\n"), "line 2 is \"b\", recorded \"c\"");
        assert_eq!(first_difference(b"a", b"a\nb"), "line 2 is \"\", recorded \"b\"");
    }
}
