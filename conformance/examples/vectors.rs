//! Runs the vectors of this repository with a build of safe-run, and with wrappers. It builds on every system on which safe-run does,
//! where `counterproof conformance` may not.
//!
//! Arguments: the tool, and then the wrappers. On Windows, the vectors of a list may fail, and are shown as skipped then.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_conformance::report::{Report, text};
use counterproof_conformance::{ConformanceRun, Subject, SubjectKind, VectorStatus, Vectors};

/// The vectors that Windows cannot pass, by what it lacks. Those about file modes name their system themselves, and none is about a
/// terminal.
const NOT_ON_WINDOWS: [(&str, &[&str]); 3] = [
    (
        "a process cannot send a signal to safe-run",
        &["safe-run-035", "safe-run-036", "safe-run-037", "safe-run-038", "safe-run-047"],
    ),
    ("the texts of the errors of Windows are others", &["safe-run-044", "safe-run-052"]),
    ("no exit status names a signal", &["safe-run-031", "safe-run-032", "safe-run-033", "safe-run-034"]),
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    let vectors = Vectors::read(&folder.join("vectors.json"))?;
    let paths = std::env::args().skip(1).map(Utf8PathBuf::from).enumerate();
    let kind = |index| if index == 0 { SubjectKind::Tool } else { SubjectKind::Wrapper };
    let subjects = paths.map(|(index, path)| Subject::new(kind(index), &path)).collect::<Result<Vec<_>, _>>()?;
    let mut results = ConformanceRun::new(&vectors, &folder.join("expected"), &subjects).run()?;
    if cfg!(windows) {
        for result in results.iter_mut().filter(|result| result.is_failed()) {
            if let Some((reason, _)) = NOT_ON_WINDOWS.iter().find(|(_, ids)| ids.contains(&result.id.as_str())) {
                result.status = VectorStatus::Skipped((*reason).to_owned());
            }
        }
    }
    let report = Report { vectors: &vectors, subjects: &subjects, results: &results };
    writeln!(io::stdout(), "{}", text(&report))?;
    Ok(if report.passes() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
