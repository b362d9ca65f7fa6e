//! Validates a path: a file, a run folder, or a tree of both. Run folders and their artifacts are checked in parallel; the
//! order of the findings is stable.

use std::collections::HashSet;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use walkdir::WalkDir;

use crate::Code;
use crate::contract_schema::{self, Declared};
use crate::document::Document;
use crate::finding::{Finding, Findings};
use crate::rules::assets;
use crate::rules::run;
use crate::rules::run::FolderNames;
use crate::run_folder::RunFolder;
use crate::validate_case;
use crate::validate_run;
use counterproof_artifact::schema::Kind;
use counterproof_store::read_file;
use counterproof_store::write::TEMPORARY_PREFIX;
use counterproof_store::{ASSETS_FOLDER, EVALUATION_FILE, MANIFEST_FILE, RUN_FILE};

/// The result of validating a path.
#[derive(Debug, Default)]
pub struct Report {
    /// All findings, file by file.
    pub findings: Vec<Finding>,
    /// Number of documents that were validated, and of files that could not be read.
    pub files: usize,
    /// Number of run folders.
    pub runs: usize,
    /// Number of JSON files that are not documents of the contract.
    pub skipped: usize,
}

impl Report {
    /// Adds the result of another path.
    pub fn merge(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.files += other.files;
        self.runs += other.runs;
        self.skipped += other.skipped;
    }

    pub(crate) fn add(&mut self, findings: Vec<Finding>) {
        self.files += 1;
        self.findings.extend(findings);
    }
}

/// A path that does not exist or cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read `{path}`")]
pub struct PathError {
    pub path: Utf8PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

/// Validates a file, a run folder, or every document in a tree.
///
/// A folder is a run folder if it has a `run.json`. In a tree, JSON files outside of run folders are validated where their
/// `schema_version` belongs to the contract, and counted as skipped otherwise. Hidden folders, `node_modules`, symbolic
/// links and temporary files of an interrupted write are ignored.
pub fn validate_path(path: &Utf8Path) -> Result<Report, PathError> {
    let unreadable = |source| PathError { path: path.to_owned(), source };
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_dir() {
        // Opening a pipe would block until its other end is opened.
        if metadata.is_file() {
            read_file::open(path).map_err(unreadable)?;
        }
        return Ok(file(path, Origin::Requested));
    }
    // A folder that cannot be read is an error and not a finding, because nothing in it was validated.
    path.read_dir_utf8().map_err(unreadable)?;
    if has_run_document(path) {
        return Ok(validate_run::check(path));
    }
    Ok(tree(path))
}

/// Returns whether there is a `run.json`, readable or not.
fn has_run_document(folder: &Utf8Path) -> bool {
    // Not `exists`: a dangling link is a `run.json` that cannot be read, and its folder is still a run folder.
    folder.join(RUN_FILE).symlink_metadata().is_ok_and(|found| !found.is_dir())
}

/// Returns whether a folder has the copies of a report. They are parts of runs, which are validated where the runs are.
fn is_copy_in_report(folder: &Utf8Path) -> bool {
    let has = |name: &str| folder.parent().is_some_and(|report| report.join(name).is_file());
    folder.file_name() == Some("artifacts") && has("index.html") && has(EVALUATION_FILE)
}

/// Returns the run folder of a file, and the path of the file in it.
fn run_folder_of(path: &Utf8Path) -> Option<(&Utf8Path, &str)> {
    let mut folders =
        // The parent of a bare file name is the empty path, which names no folder.
        path.ancestors().skip(1).map(|folder| if folder.as_str().is_empty() { ".".into() } else { folder });
    let (parent, above) = (folders.next()?, folders.next());
    if has_run_document(parent) {
        return Some((parent, path.file_name()?));
    }
    let run = above.filter(|above| parent.file_name() == Some(ASSETS_FOLDER) && has_run_document(above))?;
    Some((run, path.as_str().strip_prefix(run.as_str()).unwrap_or(path.as_str()).trim_start_matches('/')))
}

/// A unit of work in a tree.
enum Item {
    Run(Utf8PathBuf),
    File(Utf8PathBuf),
    Unreadable(Finding),
}

fn tree(root: &Utf8Path) -> Report {
    let mut items = Vec::new();
    let mut walk = WalkDir::new(root).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().map_or_else(|| root.as_str().into(), |path| path.to_string_lossy());
                items.push(Item::Unreadable(unreadable(Utf8Path::new(&path), &error.to_string())));
                continue;
            }
        };
        let path = match Utf8Path::from_path(entry.path()) {
            Some(path) => path,
            // Skipping such a folder silently would hide all documents in it.
            None if entry.file_type().is_dir() || entry.path().extension().is_some_and(|it| it == "json") => {
                items.push(Item::Unreadable(not_utf8(entry.path())));
                if entry.file_type().is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            }
            None => continue,
        };
        let name = entry.file_name().to_string_lossy();
        if entry.file_type().is_dir() {
            // The root is checked whatever its name: the caller asked for it.
            let is_excluded =
                entry.depth() > 0 && (name.starts_with('.') || name == "node_modules" || is_copy_in_report(path));
            if is_excluded {
                walk.skip_current_dir();
            } else if has_run_document(path) {
                items.push(Item::Run(path.to_owned()));
                walk.skip_current_dir();
            }
        } else if entry.file_type().is_file() && name.ends_with(".json") && !name.starts_with(TEMPORARY_PREFIX) {
            items.push(Item::File(path.to_owned()));
        }
    }
    // `collect` keeps the order of the walk.
    let reports: Vec<Report> = items.into_par_iter().map(Item::check).collect();
    let mut total = Report::default();
    for report in reports {
        total.merge(report);
    }
    deduplicate(&mut total.findings, Code::RunFileMissing);
    total
}

impl Item {
    fn check(self) -> Report {
        match self {
            Item::Run(folder) => validate_run::check(&folder),
            Item::File(path) => file(&path, Origin::Walked),
            Item::Unreadable(finding) => Report { findings: vec![finding], files: 1, ..Report::default() },
        }
    }
}

/// Removes repeated findings about a folder: each of its files adds one.
fn deduplicate(findings: &mut Vec<Finding>, code: Code) {
    let mut seen = HashSet::new();
    findings.retain(|finding| finding.code != code || seen.insert(finding.file.clone()));
}

pub(crate) fn unreadable(path: &Utf8Path, message: &str) -> Finding {
    single(path, Code::Unreadable, message, "a file or folder that can be read")
}

pub(crate) fn not_utf8(path: &std::path::Path) -> Finding {
    let shown = path.to_string_lossy();
    single(Utf8Path::new(&shown), Code::FileNameNotUtf8, "the name is not UTF-8", "a name in UTF-8")
}

fn single(path: &Utf8Path, code: Code, message: &str, expected: &str) -> Finding {
    let mut findings = Findings::new(path);
    findings.add(code, "", message, expected);
    findings.into_list().remove(0)
}

/// How a file was selected for validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The caller named it: it must be a document.
    Requested,
    /// The walk of a tree found it: it may be unrelated.
    Walked,
}

/// Validates a single file, which may belong to a run folder.
fn file(path: &Utf8Path, origin: Origin) -> Report {
    let mut document = match run_folder_of(path) {
        // Confined to the run folder although the caller named the file: a link that leaves the folder is a violation.
        Some((run, name)) => Document::read_in_folder_as(path, run, name),
        None if origin == Origin::Walked => Document::read_walked(path),
        None => Document::read_requested(path),
    };
    let mut report = Report::default();
    if !document.is_json {
        report.add(document.finish());
        return report;
    }
    let kind = match contract_schema::declared(&document.value) {
        Declared::Known(kind) => kind,
        // Violations of JSON itself are reported for unrelated files too.
        Declared::Foreign if origin == Origin::Walked && document.findings.is_empty() => {
            report.skipped = 1;
            return report;
        }
        Declared::Foreign if origin == Origin::Walked => {
            report.add(document.finish());
            return report;
        }
        // The schema check reports the declared kind.
        Declared::Foreign | Declared::Older(_) | Declared::UnknownVersion => kind_of_name(path).unwrap_or(Kind::Case),
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_str().is_empty() => folder,
        _ => Utf8Path::new("."),
    };
    check_as(kind, folder, &mut document);
    report.add(document.finish());
    if kind == Kind::Case && origin == Origin::Walked && FolderNames::from_path(folder).run_id.is_some() {
        report.findings.push(single(
            &folder.join(RUN_FILE),
            Code::RunFileMissing,
            "the folder has artifacts but no `run.json`",
            "a `run.v1` document",
        ));
    }
    report
}

/// The kind of document that a file name implies.
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
            run::check(value, &FolderNames::from_path(folder), findings);
        }
        Kind::FailureMeta => {
            assets::check_meta(value, findings);
        }
        Kind::Evaluation => {
            run::check_evaluation(value, findings);
        }
        Kind::Labels => {
            let run = Document::read_in_folder(folder, RUN_FILE).value;
            if run::check_labels(value, findings) && run.is_object() {
                run::check_labels_of_run(&run, value, findings);
            }
        }
        Kind::AssetsManifest => {
            if assets::check_manifest(value, findings) && folder.file_name() == Some(ASSETS_FOLDER) {
                let run = folder.join("..");
                let run = RunFolder::from_manifest_value(&run, FolderNames::from_path(&run).side, Some(value))
                    .with_manifest_checked_separately();
                assets::check_manifest_in_folder(value, &run, findings);
            }
        }
        Kind::Case => {
            let run = Document::read_in_folder(folder, RUN_FILE).value;
            // Findings about the run and the manifest are dropped: the report is about this file.
            let listed = Document::read_in_folder(folder, MANIFEST_FILE).value;
            let side =
                run["version"].as_str().and_then(|side| side.parse().ok()).or(FolderNames::from_path(folder).side);
            let run = RunFolder::from_manifest_value(folder, side, Some(&listed));
            let stem = document.path.file_stem().unwrap_or_default();
            validate_case::check_in(value, stem, &run, findings);
        }
    }
}
