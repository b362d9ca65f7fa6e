//! What is measured: the floors, which read, parse and copy files, and the operations that are compared with them.

use std::fs;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_evaluator::{ComparedRun, Request};
use counterproof_report::{PageSelection, ReportWriter};
use counterproof_store::{RunReader, write};
use counterproof_validation::validate_path;
use rayon::prelude::*;
use serde_json::Value;

use crate::generate::run_folder;
use crate::{Outcome, print_line};

/// Reads all files of both runs, and parses the JSON ones where `parse` says so: each is dropped before the next is read.
pub(crate) fn read(root: &Utf8Path, parse: bool) -> Outcome {
    said(&mebibytes(read_all(root, parse)?))
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
    said(&format!("{} files", copied?))
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
    said(&format!("{files} documents"))
}

/// Compares the runs and writes the report.
pub(crate) fn compare(root: &Utf8Path, pages: PageSelection) -> Outcome {
    let evaluation = compare_into(root, &report_folder(root, pages), pages)?;
    let counts = evaluation.counts.iter().filter(|(_, count)| **count > 0);
    said(&counts.map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", "))
}

fn compare_into(root: &Utf8Path, out: &Utf8Path, pages: PageSelection) -> Outcome<Evaluation> {
    let open = |side| -> Outcome<ComparedRun> { Ok(ComparedRun::new(RunReader::open(&run_folder(root, side))?)) };
    let request = Request::new(open(Side::Baseline)?.into(), open(Side::New)?.into());
    let report = ReportWriter::create(out, &request)?.with_pages(pages);
    let evaluation = counterproof_evaluator::compare(&request, |case| report.write_case(case))?;
    report.finish(&evaluation)?;
    Ok(evaluation)
}

/// Generates runs of so many case pairs, writes their report with all pages, and says what it weighs and what it took.
pub(crate) fn report(root: &Utf8Path, seed: u64, cases: usize) -> Outcome {
    crate::generate::write_runs(root, seed, cases)?;
    let out = root.join("report");
    let started = Instant::now();
    compare_into(root, &out, PageSelection::None)?;
    let compared = started.elapsed().as_secs_f64();
    let started = Instant::now();
    compare_into(root, &out, PageSelection::All)?;
    let written = started.elapsed().as_secs_f64();
    let changed = root.join("report-changed");
    let since = Instant::now();
    compare_into(root, &changed, PageSelection::Changed)?;
    let written_changed = since.elapsed().as_secs_f64();
    let of_changed = Weight::of(&changed)?;
    fs::remove_dir_all(&changed)?;
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let (runs, _) = weigh(&root.join("runs"))?;
    let all = Weight::of(&out)?;
    let index = fs::metadata(out.join("index.html"))?.len();
    let peak = crate::machine::peak_memory().unwrap_or(f64::NAN);
    print_line(&format!(
        "{cases} case pairs of seed {seed}: runs of {:.1} MiB, compared in {compared:.1} s without pages\n",
        mib(runs)
    ))?;
    print_line(
        "| pages | report, MiB | of it copies of the runs, MiB | report ÷ copies | index, KiB | largest page, KiB | compare and write, s |",
    )?;
    print_line("|---|---|---|---|---|---|---|")?;
    for (pages, weight, seconds) in [("all", all, written), ("changed", of_changed, written_changed)] {
        print_line(&format!(
            "| {pages} | {:.1} | {:.1} | {:.2} | {:.0} | {:.0} | {seconds:.1} |",
            mib(weight.folder),
            mib(weight.copies),
            weight.folder as f64 / weight.copies as f64,
            index as f64 / 1024.0,
            weight.largest as f64 / 1024.0,
        ))?;
    }
    print_line(&format!("\npeak memory {peak:.0} MiB"))
}

/// What a report weighs, in bytes.
struct Weight {
    folder: u64,
    /// Of the folder, the copies of the runs' files.
    copies: u64,
    /// The largest page.
    largest: u64,
}

impl Weight {
    fn of(report: &Utf8Path) -> Outcome<Self> {
        let (folder, largest) = weigh(report)?;
        let (copies, _) = weigh(&report.join("artifacts"))?;
        Ok(Self { folder, copies, largest })
    }
}

/// The bytes of all files below a folder, and of its largest page.
fn weigh(folder: &Utf8Path) -> Outcome<(u64, u64)> {
    let (mut all, mut largest) = (0, 0);
    for entry in folder.read_dir_utf8()? {
        let entry = entry?;
        let (bytes, page) = if entry.file_type()?.is_dir() {
            weigh(entry.path())?
        } else {
            let bytes = entry.metadata()?.len();
            (bytes, if entry.path().extension() == Some("html") { bytes } else { 0 })
        };
        all += bytes;
        largest = largest.max(page);
    }
    Ok((all, largest))
}

/// Says what the process took, and what it did.
fn said(what: &str) -> Outcome {
    let (cpu, peak) = (crate::machine::cpu_seconds(), crate::machine::peak_memory());
    print_line(&format!("{:.2} {:.1} {what}", cpu.unwrap_or(f64::NAN), peak.unwrap_or(f64::NAN)))
}
