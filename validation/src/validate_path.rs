//! Whole paths: a file, a run folder, or a tree of both. Everything is reported, in a stable order; run folders and their
//! artifacts are checked in parallel.

use std::collections::HashSet;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use walkdir::WalkDir;

use super::file::Document;
use super::finding::{Finding, Findings};
use super::folder::RunFolder;
use super::run::Place;
use super::shape::{self, Declared};
use super::{Code, case, evaluation, manifest, meta, run, run_folder};
use counterproof_artifact::schema::Kind;
use counterproof_store::write::TEMPORARY_PREFIX;
use counterproof_store::{ASSETS_FOLDER, MANIFEST_FILE, RUN_FILE};

/// What was found below a path.
#[derive(Debug, Default)]
pub struct Report {
    /// Everything that is wrong, file by file.
    pub findings: Vec<Finding>,
    /// Documents that were held against the contract, and files that could not be read as one.
    pub files: usize,
    /// Run folders.
    pub runs: usize,
    /// JSON files that are none of our documents.
    pub skipped: usize,
}

impl Report {
    /// Takes in what was found elsewhere.
    pub fn merge(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.files += other.files;
        self.runs += other.runs;
        self.skipped += other.skipped;
    }

    pub(super) fn add(&mut self, findings: Vec<Finding>) {
        self.files += 1;
        self.findings.extend(findings);
    }
}

/// A path that cannot be validated, since it is not there or cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read `{path}`")]
pub struct PathError {
    /// The path.
    pub path: Utf8PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Validates a file, a run folder, or every document in a tree.
///
/// A folder is a run folder if it holds a `run.json`. In a tree, JSON files outside of run folders are held against the
/// contract where their `schema_version` is one of it, and counted as skipped otherwise. Hidden folders, `node_modules`,
/// symbolic links and the temporary files of an interrupted write are passed by.
pub fn validate_path(path: &Utf8Path) -> Result<Report, PathError> {
    let unreadable = |source| PathError { path: path.to_owned(), source };
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_dir() {
        // Opening a pipe would wait for its other end.
        if metadata.is_file() {
            std::fs::File::open(path).map_err(unreadable)?;
        }
        return Ok(file(path, Naming::ByTheCaller));
    }
    path.read_dir_utf8().map_err(unreadable)?;
    if holds_run(path) {
        return Ok(run_folder::check(path));
    }
    Ok(tree(path))
}

/// A folder is a run folder where something stands that is called as its document, readable or not.
fn holds_run(folder: &Utf8Path) -> bool {
    folder.join(RUN_FILE).symlink_metadata().is_ok_and(|found| !found.is_dir())
}

/// The run folder that a file is a document of, with the file's name in it.
fn run_folder_of(path: &Utf8Path) -> Option<(&Utf8Path, &str)> {
    let mut folders =
        path.ancestors().skip(1).map(|folder| if folder.as_str().is_empty() { ".".into() } else { folder });
    let (parent, above) = (folders.next()?, folders.next());
    if holds_run(parent) {
        return Some((parent, path.file_name()?));
    }
    let run = above.filter(|above| parent.file_name() == Some(ASSETS_FOLDER) && holds_run(above))?;
    Some((run, path.as_str().strip_prefix(run.as_str()).unwrap_or(path.as_str()).trim_start_matches('/')))
}

/// Something in a tree that is checked by itself.
enum Item {
    Run(Utf8PathBuf),
    File(Utf8PathBuf),
    Broken(Finding),
}

fn tree(root: &Utf8Path) -> Report {
    let mut items = Vec::new();
    let mut walk = WalkDir::new(root).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().map_or_else(|| root.as_str().into(), |path| path.to_string_lossy());
                items.push(Item::Broken(unreadable(Utf8Path::new(&path), &error.to_string())));
                continue;
            }
        };
        let path = match Utf8Path::from_path(entry.path()) {
            Some(path) => path,
            None if entry.file_type().is_dir() || entry.path().extension().is_some_and(|it| it == "json") => {
                items.push(Item::Broken(not_utf8(entry.path())));
                if entry.file_type().is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            }
            None => continue,
        };
        let name = entry.file_name().to_string_lossy();
        if entry.file_type().is_dir() {
            let passed_by = entry.depth() > 0 && (name.starts_with('.') || name == "node_modules");
            if passed_by {
                walk.skip_current_dir();
            } else if holds_run(path) {
                items.push(Item::Run(path.to_owned()));
                walk.skip_current_dir();
            }
        } else if entry.file_type().is_file() && name.ends_with(".json") && !name.starts_with(TEMPORARY_PREFIX) {
            items.push(Item::File(path.to_owned()));
        }
    }
    let reports: Vec<Report> = items.into_par_iter().map(Item::check).collect();
    let mut whole = Report::default();
    for report in reports {
        whole.merge(report);
    }
    report_once(&mut whole.findings, Code::RunFileMissing);
    whole
}

impl Item {
    fn check(self) -> Report {
        match self {
            Item::Run(folder) => run_folder::check(&folder),
            Item::File(path) => file(&path, Naming::ByTheTree),
            Item::Broken(finding) => Report { findings: vec![finding], files: 1, ..Report::default() },
        }
    }
}

/// A finding about a whole folder is made by each of its files; one of them is enough.
fn report_once(findings: &mut Vec<Finding>, code: Code) {
    let mut seen = HashSet::new();
    findings.retain(|finding| finding.code != code || seen.insert(finding.file.clone()));
}

pub(super) fn unreadable(path: &Utf8Path, message: &str) -> Finding {
    single(path, Code::Unreadable, message, "a file or folder that can be read")
}

pub(super) fn not_utf8(path: &std::path::Path) -> Finding {
    let shown = path.to_string_lossy();
    single(Utf8Path::new(&shown), Code::FileNameNotUtf8, "the name is not UTF-8", "a name in UTF-8")
}

fn single(path: &Utf8Path, code: Code, message: &str, expected: &str) -> Finding {
    let mut findings = Findings::of(path);
    findings.add(code, "", message, expected);
    findings.into_list().remove(0)
}

/// How a file came to be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// It was asked for, so it has to be a document.
    ByTheCaller,
    /// It lies in a tree, and may be anything.
    ByTheTree,
}

/// A file outside of a run folder that is checked as one.
fn file(path: &Utf8Path, naming: Naming) -> Report {
    let mut document = match run_folder_of(path) {
        Some((run, name)) => Document::inside_as(path, run, name),
        None => Document::named(path),
    };
    let mut report = Report::default();
    if !document.is_json {
        report.add(document.finish());
        return report;
    }
    let kind = match shape::declared(&document.value) {
        Declared::Known(kind) => kind,
        // What breaks JSON itself is told, whatever it is.
        Declared::Foreign if naming == Naming::ByTheTree && document.findings.is_empty() => {
            report.skipped = 1;
            return report;
        }
        Declared::Foreign if naming == Naming::ByTheTree => {
            report.add(document.finish());
            return report;
        }
        // The shape's check then says what it is instead.
        Declared::Foreign | Declared::Older(_) | Declared::UnknownVersion => kind_of_name(path).unwrap_or(Kind::Case),
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_str().is_empty() => folder,
        _ => Utf8Path::new("."),
    };
    check_as(kind, folder, &mut document);
    report.add(document.finish());
    if kind == Kind::Case && naming == Naming::ByTheTree && Place::of(folder).run_id.is_some() {
        report.findings.push(single(
            &folder.join(RUN_FILE),
            Code::RunFileMissing,
            "the folder holds artifacts, and no `run.json`",
            "a `run.v1` document",
        ));
    }
    report
}

/// The kind that a place is for.
fn kind_of_name(path: &Utf8Path) -> Option<Kind> {
    match path.file_name()? {
        "run.json" => Some(Kind::Run),
        "evaluation.json" => Some(Kind::Evaluation),
        "manifest.json" => Some(Kind::AssetsManifest),
        name if name.ends_with(".meta.json") => Some(Kind::FailureMeta),
        _ => None,
    }
}

fn check_as(kind: Kind, folder: &Utf8Path, document: &mut Document) {
    let (value, findings) = (&document.value, &mut document.findings);
    match kind {
        Kind::Run => {
            run::check(value, &Place::of(folder), findings);
        }
        Kind::FailureMeta => {
            meta::check(value, findings);
        }
        Kind::Evaluation => {
            evaluation::check(value, findings);
        }
        Kind::AssetsManifest => {
            if manifest::check(value, findings) && folder.file_name() == Some(ASSETS_FOLDER) {
                let run = folder.join("..");
                let run = RunFolder::of_value(&run, Place::of(&run).side, Some(value)).judging_manifest();
                manifest::check_folder(value, &run, findings);
            }
        }
        Kind::Case => {
            let run = Document::inside(folder, RUN_FILE).value;
            let listed = Document::inside(folder, MANIFEST_FILE).value;
            let side = run["version"].as_str().and_then(|side| side.parse().ok()).or(Place::of(folder).side);
            let run = RunFolder::of_value(folder, side, Some(&listed));
            let stem = document.path.file_stem().unwrap_or_default();
            case::check_in(value, stem, &run, findings);
        }
    }
}
