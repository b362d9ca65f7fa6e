//! What is measured: the floors, which read, parse and copy files, and the operations that are compared with them.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_bench::{Outcome, cpu_seconds, peak_memory};
use counterproof_evaluator::{ComparedRun, Request};
use counterproof_report::{PageSelection, ReportWriter};
use counterproof_store::{RunReader, write};
use counterproof_validation::validate_path;
use rayon::prelude::*;
use serde_json::Value;

use crate::generate::run_folder;
use crate::print_line;

/// Reads all files of both runs, and parses the JSON ones where `parse` says so: each is dropped before the next is read.
pub(crate) fn read(root: &Utf8Path, parse: bool) -> Outcome {
    print_costs(&mebibytes(read_all(root, parse)?))
}

fn read_all(root: &Utf8Path, parse: bool) -> Outcome<u64> {
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
    Ok(bytes?)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / 1024.0 / 1024.0)
}

/// Reads and parses the files of both runs, and copies every file of the report with all pages.
pub(crate) fn copy(root: &Utf8Path) -> Outcome {
    read_all(root, true)?;
    let (report, target) = (report_folder(root, PageSelection::All), root.join("copy"));
    let mut files = Vec::new();
    list(&report, &mut files)?;
    for file in &files {
        let folder = file.strip_prefix(&report)?.parent().map(|folder| target.join(folder));
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            write::create_folder(&folder)?;
        }
    }
    let copied: Result<u64, String> = files
        .par_iter()
        .map(|file| {
            let to = target.join(file.strip_prefix(&report).map_err(|error| error.to_string())?);
            write::copy_new(file, &to).map_err(|error| format!("{to}: {error}"))?;
            Ok(1)
        })
        .sum();
    print_costs(&format!("{} files", copied?))
}

/// Adds every file below a folder.
fn list(folder: &Utf8Path, files: &mut Vec<Utf8PathBuf>) -> Outcome {
    for entry in folder.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(entry.path(), files)?;
        } else {
            files.push(entry.into_path());
        }
    }
    Ok(())
}

/// A folder for each selection: removing an old report would cost as much as writing a new one.
fn report_folder(root: &Utf8Path, pages: PageSelection) -> Utf8PathBuf {
    root.join(if pages == PageSelection::All { "report" } else { "report-without-pages" })
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
        let report = validate_path(&run_folder(root, side))?;
        if let Some(finding) = report.findings.first() {
            return Err(format!("{}{}: {}", finding.file, finding.pointer, finding.message).into());
        }
        files += report.files;
    }
    print_costs(&format!("{files} documents"))
}

/// Compares the runs and writes the report.
pub(crate) fn compare(root: &Utf8Path, pages: PageSelection) -> Outcome {
    let evaluation = compare_into(root, &report_folder(root, pages), pages)?;
    let counts = evaluation.counts.iter().filter(|(_, count)| **count > 0);
    print_costs(&counts.map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", "))
}

pub(crate) fn compare_into(root: &Utf8Path, out: &Utf8Path, pages: PageSelection) -> Outcome<Evaluation> {
    let request = Request::new(open(root, Side::Baseline)?.into(), open(root, Side::New)?.into());
    let report = ReportWriter::create(out, &request)?.with_pages(pages);
    let evaluation = counterproof_evaluator::compare(&request, |case| report.write_case(case))?;
    report.finish(&evaluation)?;
    Ok(evaluation)
}

/// Opens the run of a side.
pub(crate) fn open(root: &Utf8Path, side: Side) -> Outcome<ComparedRun> {
    Ok(ComparedRun::new(RunReader::open(&run_folder(root, side))?))
}

/// Prints the costs of the process, and what it did.
pub(crate) fn print_costs(what: &str) -> Outcome {
    let (cpu, peak) = (cpu_seconds(), peak_memory());
    print_line(&format!("{:.2} {:.1} {what}", cpu.unwrap_or(f64::NAN), peak.unwrap_or(f64::NAN)))
}
