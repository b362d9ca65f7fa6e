//! Validates a complete run folder: each document, and their consistency.

use std::collections::{BTreeMap, HashMap, HashSet};

use camino::Utf8Path;
use rayon::prelude::*;
use serde_json::Value;
use walkdir::WalkDir;

use crate::Code;
use crate::contract_schema::{self, Declared};
use crate::document;
use crate::document::Document;
use crate::document::items;
use crate::finding::quote;
use crate::finding::{Finding, Findings};
use crate::rules::assets;
use crate::rules::run;
use crate::rules::run::{ArtifactStatus, FolderNames, collision_key};
use crate::run_folder::RunFolder;
use crate::validate_case::{self, CaseCheck};
use crate::validate_path::{Report, not_utf8, unreadable};
use counterproof_artifact::schema::Kind;
use counterproof_artifact::{Href, Side};
use counterproof_store::write::TEMPORARY_PREFIX;
use counterproof_store::{ASSETS_FOLDER, EVALUATION_FILE, LABELS_FILE, MANIFEST_FILE, RUN_FILE};

/// The result of checking one artifact.
struct Checked {
    stem: String,
    status: ArtifactStatus,
    saved_body: Option<SavedBody>,
    /// `None` if the file is not a document of the contract.
    findings: Option<Vec<Finding>>,
}

/// The links of a runner failure to the metadata of the saved body and to the body.
struct SavedBody {
    meta: Href,
    body: Option<Href>,
}

/// Validates a folder that has a `run.json`.
pub(crate) fn check(path: &Utf8Path) -> Report {
    let mut report = Report { runs: 1, ..Report::default() };
    let folder_names = FolderNames::from_path(path);
    let (mut names, broken) = artifact_names(path);
    let (assets, broken_assets) = asset_files(path);

    let mut run = Document::read_in_folder(path, RUN_FILE);
    let is_run = run.is_json && run::check(&run.value, &folder_names, &mut run.findings);
    let labels_document = take_labels(path, &mut names, is_run.then_some(&run.value));
    let mut manifest_document =
        path.join(MANIFEST_FILE).exists().then(|| Document::read_in_folder(path, MANIFEST_FILE));
    let is_manifest = manifest_document.as_mut().is_some_and(|manifest_document| {
        manifest_document.is_json && assets::check_manifest(&manifest_document.value, &mut manifest_document.findings)
    });

    let side = run.value["version"].as_str().and_then(|side| side.parse::<Side>().ok()).or(folder_names.side);
    let listed = manifest_document
        .as_mut()
        .map(|manifest_document| std::mem::take(&mut manifest_document.value))
        .unwrap_or_default();
    let folder = RunFolder::from_manifest_value(path, side, Some(&listed));
    // Entries of an invalid manifest are not checked, so links compare what the entries record.
    let folder = if is_manifest { folder.with_manifest_checked_separately() } else { folder };
    // Without a usable `run.json`, every artifact counts as selected.
    let selection = is_run.then(|| Selection::new(&run.value, &names));
    let checked: Vec<Checked> =
        names.par_iter().map(|name| check_artifact(name, &folder, selection.as_ref())).collect();

    if is_run {
        let statuses =
            checked.iter().filter(|it| it.findings.is_some()).map(|it| (it.stem.as_str(), it.status)).collect();
        run::check_folder(&run.value, &statuses, &mut run.findings);
    }
    if let Some(manifest_document) = &mut manifest_document
        && is_manifest
    {
        assets::check_manifest_in_folder(&listed, &folder, &mut manifest_document.findings);
        assets::check_files(&listed, &assets, &mut manifest_document.findings);
    }
    let metas = check_metas(&checked, &listed, &folder);

    // After the artifacts: comparing them with `run.json` adds findings to it.
    report.add(run.finish());
    for checked in checked {
        match checked.findings {
            Some(findings) => report.add(findings),
            None => report.skipped += 1,
        }
    }
    if let Some(manifest_document) = manifest_document {
        report.add(manifest_document.finish());
    }
    for findings in metas {
        report.add(findings);
    }
    for document in [evaluation_document(path), labels_document].into_iter().flatten() {
        report.add(document.finish());
    }
    for finding in broken.into_iter().chain(broken_assets) {
        report.add(vec![finding]);
    }
    report
}

/// Removes the labels of the run from the names of its artifacts, and checks them against the run if that is valid.
fn take_labels(folder: &Utf8Path, names: &mut Vec<String>, run: Option<&Value>) -> Option<Document> {
    let index = names.iter().position(|name| name == LABELS_FILE)?;
    let mut document = Document::read_in_folder(folder, LABELS_FILE);
    // A case can have the id `labels`, so the kind decides and not the name.
    if contract_schema::declared(&document.value) != Declared::Known(Kind::Labels) {
        return None;
    }
    names.remove(index);
    if run::check_labels(&document.value, &mut document.findings)
        && let Some(run) = run
    {
        run::check_labels_of_run(run, &document.value, &mut document.findings);
    }
    Some(document)
}

/// Reads and checks the evaluation in a run folder, if there is one.
fn evaluation_document(folder: &Utf8Path) -> Option<Document> {
    folder.join(EVALUATION_FILE).exists().then(|| {
        let mut document = Document::read_in_folder(folder, EVALUATION_FILE);
        if document.is_json {
            run::check_evaluation(&document.value, &mut document.findings);
        }
        document
    })
}

/// Returns the names of all files in the position of an artifact, sorted.
fn artifact_names(folder: &Utf8Path) -> (Vec<String>, Vec<Finding>) {
    let (mut names, mut broken) = (Vec::new(), Vec::new());
    let entries = match folder.as_std_path().read_dir() {
        Ok(entries) => entries,
        Err(error) => return (names, vec![unreadable(folder, &error.to_string())]),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                broken.push(unreadable(folder, &error.to_string()));
                continue;
            }
        };
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "json") || path.is_dir() {
            continue;
        }
        match entry.file_name().into_string() {
            Ok(name) if name == RUN_FILE || name == EVALUATION_FILE || name.starts_with(TEMPORARY_PREFIX) => {}
            Ok(name) => names.push(name),
            Err(_) => broken.push(not_utf8(&path)),
        }
    }
    names.sort_unstable();
    broken.sort_by(|a, b| a.file.cmp(&b.file));
    (names, broken)
}

/// Returns the hrefs of all files under `assets/` except the manifest, sorted.
fn asset_files(folder: &Utf8Path) -> (Vec<String>, Vec<Finding>) {
    let (mut files, mut broken) = (Vec::new(), Vec::new());
    let root = folder.join(ASSETS_FOLDER);
    if !root.is_dir() {
        return (files, broken);
    }
    for entry in WalkDir::new(&root).sort_by_file_name() {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(entry) => match Utf8Path::from_path(entry.path()).map(|path| path.strip_prefix(folder)) {
                Some(Ok(href))
                    if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) || href == MANIFEST_FILE => {}
                // An href has forward slashes on every system.
                Some(Ok(href)) => files.push(href.components().map(|part| part.as_str()).collect::<Vec<_>>().join("/")),
                _ => broken.push(not_utf8(entry.path())),
            },
            Err(error) => broken.push(unreadable(&root, &error.to_string())),
        }
    }
    (files, broken)
}

/// The selected cases, and the file names that collide on a case-insensitive file system.
struct Selection<'a> {
    ids: HashSet<&'a str>,
    by_key: HashMap<String, Vec<&'a str>>,
}

impl<'a> Selection<'a> {
    fn new(run: &'a Value, names: &'a [String]) -> Self {
        let ids: HashSet<&str> = items(run, "selected_case_ids").filter_map(|(_, id)| id.as_str()).collect();
        let mut by_key: HashMap<String, Vec<&str>> = HashMap::new();
        for name in names {
            let stem = stem(name);
            by_key.entry(collision_key(stem)).or_default().push(stem);
        }
        Self { ids, by_key }
    }
}

fn stem(name: &str) -> &str {
    name.strip_suffix(".json").unwrap_or(name)
}

fn check_artifact(name: &str, folder: &RunFolder, selection: Option<&Selection<'_>>) -> Checked {
    let stem = stem(name);
    let is_selected = selection.is_none_or(|selection| selection.ids.contains(stem));
    let path = folder.path().join(name);
    let mut findings = Findings::new(&path);
    let bytes = document::read(folder.path(), name, &mut findings);
    let mut document = Document::from_bytes(&path, bytes, findings);
    let mut checked =
        Checked { stem: stem.to_owned(), status: ArtifactStatus::Unknown, saved_body: None, findings: None };
    if !is_selected && document.is_json && contract_schema::declared(&document.value) == Declared::Foreign {
        // Violations of JSON itself are reported for unrelated files too.
        checked.findings = (!document.findings.is_empty()).then(|| document.finish());
        return checked;
    }
    let is_case = document.is_json
        && !matches!(
            validate_case::check_in(&document.value, stem, folder, &mut document.findings),
            CaseCheck::OtherDocument
        );
    if is_case {
        checked.status = match document.value["status"].as_str() {
            Some("ok") => ArtifactStatus::Ok,
            Some("runner_error") => ArtifactStatus::RunnerError,
            _ => ArtifactStatus::Unknown,
        };
        let failure = &document.value["runner_failure"];
        let href = |field: &str| failure[field].as_str().and_then(|text| text.parse::<Href>().ok());
        checked.saved_body =
            href("full_body_meta_saved_to").map(|meta| SavedBody { meta, body: href("full_body_saved_to") });
    }
    if let Some(selection) = selection.filter(|_| !is_selected) {
        let message = format!("the case {} is not among the run's `selected_case_ids`", quote(stem));
        document.findings.add(Code::CaseNotSelected, "", message, "an artifact of a selected case");
        let twin = selection.by_key.get(&collision_key(stem)).and_then(|stems| stems.iter().find(|it| **it != stem));
        if let Some(twin) = twin {
            let message =
                format!("{} and {} are the same file on a case-insensitive file system", quote(stem), quote(twin));
            document.findings.add(Code::DuplicateCaseId, "", message, "ids that differ in more than case");
        }
    }
    checked.findings = Some(document.finish());
    checked
}

/// Checks every `failure-meta.v1` document that an artifact or the manifest names, each once.
fn check_metas(checked: &[Checked], listed: &Value, folder: &RunFolder) -> Vec<Vec<Finding>> {
    let mut metas: BTreeMap<String, (Option<&str>, Option<&Href>)> = BTreeMap::new();
    for (_, item) in items(listed, "items").filter(|(_, item)| item["kind"] == "failure_meta") {
        if let Some(href) = item["href"].as_str() {
            metas.insert(href.to_owned(), (item["case_id"].as_str(), None));
        }
    }
    for case in checked {
        if let Some(SavedBody { meta, body }) = &case.saved_body {
            // Replaces the entry of the manifest, which does not name the body.
            metas.insert(meta.to_string(), (Some(&case.stem), body.as_ref()));
        }
    }
    // A broken link has its finding in the document that contains it.
    metas.retain(|href, _| href.parse::<Href>().is_ok_and(|href| folder.measure(&href).is_ok()));
    let metas: Vec<_> = metas.into_iter().collect();
    metas
        .par_iter()
        .map(|(href, (case_id, body))| {
            let mut document = Document::read_in_folder(folder.path(), href);
            if document.is_json && assets::check_meta(&document.value, &mut document.findings) {
                assets::check_meta_in_folder(&document.value, *case_id, *body, folder, &mut document.findings);
            }
            document.finish()
        })
        .collect()
}
