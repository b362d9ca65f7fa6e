//! The queries of docs/scale.md on facts of the sample: all engines that are installed here must give the same answers.

use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use super::install;
use crate::folders;
use crate::programs;
use crate::step::{Failure, Step, root};

/// The tested versions. An update is a separate commit. `duckdb` needs `pytz` for times with a zone.
const PACKAGES: [&str; 5] = ["datafusion==55.0.0", "duckdb==2.0.1", "pandas==3.1.1", "pyarrow==26.0.1", "pytz==2026.6"];

pub(super) fn install() -> Result<Option<Utf8PathBuf>, Failure> {
    install::python(&install::cached("facts"), &PACKAGES)
}

pub(super) fn run() -> Result<(), Failure> {
    let Some(python) = install()? else { return Ok(()) };
    programs::build()?;
    let temporary =
        tempfile::tempdir().map_err(|source| Failure::File { path: "a temporary folder".into(), source })?;
    let folder = Utf8Path::from_path(temporary.path()).unwrap_or(root());
    let runs = root().join("sample-runs/runs");
    let sides = ["baseline/sample-baseline", "new/sample-new"].map(|run| runs.join(run));
    let cases = root().join("sample-runs/cases.json");
    // In both directions, so that there are two nights with failing cases.
    for (night, [baseline, new]) in [("1", [&sides[0], &sides[1]]), ("2", [&sides[1], &sides[0]])] {
        let mut compare = Command::new(programs::counterproof());
        compare.args(["compare", baseline.as_str(), new.as_str(), "--cases", cases.as_str(), "--no-write-back"]);
        compare.args(["--out", folder.join("nights").join(night).as_str()]).stdout(Stdio::null()).stderr(Stdio::null());
        // The gate may fail; the export below needs the evaluation.
        let _ =
            compare.status().map_err(|source| Failure::Start { line: "counterproof compare".to_owned(), source })?;
    }
    let (nights, facts) = (folder.join("nights"), folder.join("facts"));
    folders::output(
        &programs::counterproof(),
        &["export", "facts", nights.as_str(), "--out", facts.as_str(), "--runs", runs.as_str()],
    )?;
    let mut script = Command::new(python.join("python"));
    script.arg("-B").arg(root().join("tests/interop/facts.py")).arg(root().join("docs/scale.md"));
    script.current_dir(folder).stdin(Stdio::null());
    Step::new("python tests/interop/facts.py".to_owned(), script).run()
}
