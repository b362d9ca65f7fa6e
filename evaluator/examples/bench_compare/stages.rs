//! What is measured: each stage does all that the one before it does, and something more.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::store::RunReader;
use counterproof_artifact::{Side, check};
use counterproof_evaluator::comparison::{self, Request};
use counterproof_evaluator::load::ComparedRun;
use counterproof_evaluator::report::{PageSelection, ReportWriter};
use rayon::prelude::*;
use serde_json::Value;

use crate::generate::run_folder;
use crate::{Outcome, say};

/// Reads all files of both runs, and parses the JSON ones where `parse` says so: each is dropped before the next is read.
pub(crate) fn read(root: &Utf8Path, parse: bool) -> Outcome {
    let bytes: Result<u64, String> = files(root)?
        .into_par_iter()
        .map(|path| {
            let bytes = fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
            if parse && path.extension() == Some("json") {
                let value: Value = serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))?;
                std::hint::black_box(value);
            }
            Ok(bytes.len() as u64)
        })
        .sum();
    said(&format!("{:.0} MiB", bytes? as f64 / 1024.0 / 1024.0))
}

/// Every file of both runs, sorted.
fn files(root: &Utf8Path) -> Outcome<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for side in Side::BOTH {
        let folder = run_folder(root, side);
        for folder in [folder.join("assets"), folder] {
            for entry in folder.read_dir_utf8()? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    files.push(entry.into_path());
                }
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Validates both runs; what was generated has to be valid.
pub(crate) fn validate(root: &Utf8Path) -> Outcome {
    let mut files = 0;
    for side in Side::BOTH {
        let report = check::path(&run_folder(root, side))?;
        if let Some(finding) = report.findings.first() {
            return Err(format!("{}{}: {}", finding.file, finding.pointer, finding.message).into());
        }
        files += report.files;
    }
    said(&format!("{files} documents"))
}

/// Compares the runs and writes the report.
pub(crate) fn compare(root: &Utf8Path, pages: PageSelection) -> Outcome {
    let open = |side| -> Outcome<ComparedRun> { Ok(ComparedRun::new(RunReader::open(&run_folder(root, side))?)) };
    let request = Request::of(open(Side::Baseline)?.into(), open(Side::New)?.into());
    let report = ReportWriter::create(&root.join("report"), &request)?.with_pages(pages);
    let evaluation = comparison::compare(&request, |case| report.write_case(case))?;
    report.finish(&evaluation)?;
    let counts = evaluation.counts.iter().filter(|(_, count)| **count > 0);
    said(&counts.map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", "))
}

/// Says what the process took, and what it did.
fn said(what: &str) -> Outcome {
    let (cpu, peak) = (crate::machine::cpu_seconds(), crate::machine::peak_memory());
    say(&format!("{:.2} {:.1} {what}", cpu.unwrap_or(f64::NAN), peak.unwrap_or(f64::NAN)))
}
