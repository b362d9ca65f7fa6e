//! `sample-runs/`: recorded by a program in `demo/`, and held against what that program would record today.

use camino::Utf8Path;

use crate::step::{Failure, Step, root, say};
use crate::tree;

const FOLDER: &str = "sample-runs";

/// Records the samples in place of those that are there.
pub(crate) fn record() -> Result<(), Failure> {
    let runs = root().join(FOLDER).join("runs");
    if runs.exists() {
        std::fs::remove_dir_all(&runs).map_err(|source| Failure::File { path: runs, source })?;
    }
    record_into(&root().join(FOLDER))
}

/// Records the samples elsewhere and compares.
pub(crate) fn check() -> Result<(), Failure> {
    let failed = |source| Failure::File { path: "the temporary folder".into(), source };
    let temporary = tempfile::tempdir().map_err(failed)?;
    let fresh = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| failed(std::io::Error::other("its path is not UTF-8")))?
        .join(FOLDER);
    record_into(&fresh)?;
    let differences = tree::differences(&root().join(FOLDER), &fresh)?;
    if differences.is_empty() {
        say("    the samples would come out the same");
        return Ok(());
    }
    Err(Failure::Samples(differences.join("\n")))
}

fn record_into(folder: &Utf8Path) -> Result<(), Failure> {
    let program = ["run", "--quiet", "--package", "counterproof-demo", "--example", "sample_runs", "--"];
    Step::cargo(program).with(&[folder.to_string()]).run()
}
