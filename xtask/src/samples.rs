//! `sample-runs/`: recorded by an example of `demo/`, and compared with a new recording.

use camino::Utf8Path;

use crate::step::{Failure, Step, progress, root};
use crate::tree;

const FOLDER: &str = "sample-runs";

/// Records the samples and replaces the checked-in files.
pub(crate) fn record() -> Result<(), Failure> {
    let runs = root().join(FOLDER).join("runs");
    if runs.exists() {
        std::fs::remove_dir_all(&runs).map_err(|source| Failure::File { path: runs, source })?;
    }
    record_into(&root().join(FOLDER))
}

/// Records the samples into a temporary folder and compares them with the checked-in files.
pub(crate) fn check() -> Result<(), Failure> {
    let failed = |source| Failure::File { path: "the temporary folder".into(), source };
    let temporary = tempfile::tempdir().map_err(failed)?;
    let fresh = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| failed(std::io::Error::other("its path is not UTF-8")))?
        .join(FOLDER);
    record_into(&fresh)?;
    let differences = tree::differences(&root().join(FOLDER), &fresh)?;
    if differences.is_empty() {
        progress("    the samples are current");
        return Ok(());
    }
    Err(Failure::Samples(differences.join("\n")))
}

fn record_into(folder: &Utf8Path) -> Result<(), Failure> {
    let program = ["run", "--quiet", "--package", "counterproof-demo", "--example", "sample_runs", "--"];
    Step::cargo(program).with(&[folder.to_string()]).run()
}
