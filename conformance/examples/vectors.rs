//! Runs the vectors of this repository with a build of safe-run, and with wrappers. It builds on every system on which safe-run does,
//! where `counterproof conformance` may not.
//!
//! Arguments: the tool, and then the wrappers.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_conformance::report::{Report, text};
use counterproof_conformance::{ConformanceRun, Subject, SubjectKind, Vectors};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    let vectors = Vectors::read(&folder.join("vectors.json"))?;
    let paths = std::env::args().skip(1).map(Utf8PathBuf::from).enumerate();
    let kind = |index| if index == 0 { SubjectKind::Tool } else { SubjectKind::Wrapper };
    let subjects = paths.map(|(index, path)| Subject::new(kind(index), &path)).collect::<Result<Vec<_>, _>>()?;
    let results = ConformanceRun::new(&vectors, &folder.join("expected"), &subjects).run()?;
    let report = Report { vectors: &vectors, subjects: &subjects, results: &results };
    writeln!(io::stdout(), "{}", text(&report))?;
    Ok(if report.passes() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
