//! A run folder as a whole: each of its documents, and whether they agree.

use std::collections::{BTreeMap, HashMap, HashSet};

use camino::Utf8Path;
use rayon::prelude::*;
use serde_json::Value;
use walkdir::WalkDir;

use super::excerpt::quote;
use super::file::Document;
use super::finding::{Finding, Findings};
use super::folder::RunFolder;
use super::place::{Report, not_utf8, unreadable};
use super::run::{Ended, Place, collision_key};
use super::shape::{self, Declared};
use super::value::items;
use super::{Code, case, evaluation, file, manifest, meta, parse, plain, run};
use counterproof_artifact::{Href, Side};
use counterproof_store::unrestored;
use counterproof_store::write::TEMPORARY_PREFIX;
use counterproof_store::{ASSETS_FOLDER, EVALUATION_FILE, MANIFEST_FILE, RUN_FILE, ReadError};
use counterproof_store::{JOURNAL_FILE, JournalRecord};

/// What one artifact leaves behind once it is checked.
struct Checked {
    stem: String,
    ended: Ended,
    /// Its bodies' metadata, with the body that they describe.
    meta: Option<(Href, Option<Href>)>,
    /// `None` where the file is none of our documents.
    findings: Option<Vec<Finding>>,
}

/// Checks a folder that holds a `run.json`.
pub(super) fn check(path: &Utf8Path) -> Report {
    let mut report = Report { runs: 1, ..Report::default() };
    let place = Place::of(path);
    let (names, broken) = artifact_names(path);
    let (assets, broken_assets) = asset_files(path);

    let mut run = Document::inside(path, RUN_FILE);
    let is_run = run.is_json && run::check(&run.value, &place, &mut run.findings);
    let mut listing = path.join(MANIFEST_FILE).exists().then(|| Document::inside(path, MANIFEST_FILE));
    let is_listing = listing
        .as_mut()
        .is_some_and(|listing| listing.is_json && manifest::check(&listing.value, &mut listing.findings));

    let side = run.value["version"].as_str().and_then(|side| side.parse::<Side>().ok()).or(place.side);
    let listed = listing.as_mut().map(|listing| std::mem::take(&mut listing.value)).unwrap_or_default();
    let folder = RunFolder::of_value(path, side, Some(&listed));
    let folder = if is_listing { folder.judging_manifest() } else { folder };
    let selection = is_run.then(|| Selection::of(&run.value, &names));
    let checked: Vec<Checked> =
        names.par_iter().map(|name| check_artifact(name, &folder, selection.as_ref())).collect();

    if is_run {
        let ended = checked.iter().filter(|it| it.findings.is_some()).map(|it| (it.stem.as_str(), it.ended)).collect();
        run::check_folder(&run.value, &ended, &mut run.findings);
    }
    if let Some(listing) = &mut listing
        && is_listing
    {
        manifest::check_folder(&listed, &folder, &mut listing.findings);
        manifest::check_files(&listed, &assets, &mut listing.findings);
    }
    let metas = check_metas(&checked, &listed, &folder);

    report.add(run.finish());
    for checked in checked {
        match checked.findings {
            Some(findings) => report.add(findings),
            None => report.skipped += 1,
        }
    }
    if let Some(listing) = listing {
        report.add(listing.finish());
    }
    for findings in metas {
        report.add(findings);
    }
    if path.join(EVALUATION_FILE).exists() {
        let mut document = Document::inside(path, EVALUATION_FILE);
        if document.is_json {
            evaluation::check(&document.value, &mut document.findings);
        }
        report.add(document.finish());
    }
    for finding in broken.into_iter().chain(broken_assets).chain(not_restored(path)) {
        report.add(vec![finding]);
    }
    report
}

/// Files that a power cut took, though a journal still has them.
fn not_restored(folder: &Utf8Path) -> Vec<Finding> {
    let found = |record: Result<JournalRecord, ReadError>| match record {
        Ok(record) => {
            let mut findings = Findings::of(&folder.join(&record.file));
            let message = format!("`{JOURNAL_FILE}` has this file with {} bytes", record.bytes.len());
            findings.add(Code::FileNotRestored, "", message, "the file as it was written");
            findings.into_list()
        }
        Err(error) => vec![unreadable(&folder.join(JOURNAL_FILE), &error.to_string())],
    };
    match unrestored(folder) {
        Ok(records) => records.flat_map(found).collect(),
        Err(error) => found(Err(error)),
    }
}

/// The names of all files that stand where artifacts stand, sorted.
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

/// The hrefs of all files under `assets/` but the manifest, sorted.
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
                // An href has forward slashes, whatever the system.
                Some(Ok(href)) => files.push(href.components().map(|part| part.as_str()).collect::<Vec<_>>().join("/")),
                _ => broken.push(not_utf8(entry.path())),
            },
            Err(error) => broken.push(unreadable(&root, &error.to_string())),
        }
    }
    (files, broken)
}

/// The cases that the run set out to ask, and which names mean the same file where case is ignored.
struct Selection<'a> {
    ids: HashSet<&'a str>,
    by_key: HashMap<String, Vec<&'a str>>,
}

impl<'a> Selection<'a> {
    fn of(run: &'a Value, names: &'a [String]) -> Self {
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
    let mut findings = Findings::of(&path);
    let bytes = file::read(folder.path(), name, &mut findings);
    let text = bytes.as_deref().filter(|_| is_selected).and_then(parse::text);
    if text.is_some_and(|text| plain::answer(text, stem, folder).is_some()) {
        return Checked { stem: stem.to_owned(), ended: Ended::Ok, meta: None, findings: Some(Vec::new()) };
    }
    let mut document = Document::of(&path, bytes, findings);
    let mut checked = Checked { stem: stem.to_owned(), ended: Ended::Unknown, meta: None, findings: None };
    if !is_selected && document.is_json && shape::declared(&document.value) == Declared::Foreign {
        // What breaks JSON itself is told, whatever it is.
        checked.findings = (!document.findings.is_empty()).then(|| document.finish());
        return checked;
    }
    if document.is_json && case::check_in(&document.value, stem, folder, &mut document.findings) {
        checked.ended = match document.value["status"].as_str() {
            Some("ok") => Ended::Ok,
            Some("runner_error") => Ended::RunnerError,
            _ => Ended::Unknown,
        };
        let failure = &document.value["runner_failure"];
        let href = |field: &str| failure[field].as_str().and_then(|text| text.parse::<Href>().ok());
        checked.meta = href("full_body_meta_saved_to").map(|meta| (meta, href("full_body_saved_to")));
    }
    if let Some(selection) = selection.filter(|_| !is_selected) {
        let message = format!("the case {} is not among the run's `selected_case_ids`", quote(stem));
        document.findings.add(Code::CaseNotSelected, "", message, "an artifact of a selected case");
        let twin = selection.by_key.get(&collision_key(stem)).and_then(|stems| stems.iter().find(|it| **it != stem));
        if let Some(twin) = twin {
            let message = format!("{} and {} are one file where case is ignored", quote(stem), quote(twin));
            document.findings.add(
                Code::DuplicateCaseId,
                "",
                message,
                "ids that differ in more than upper and lower case",
            );
        }
    }
    checked.findings = Some(document.finish());
    checked
}

/// Checks every `failure-meta.v1` document that an artifact links to or the manifest lists, each once.
fn check_metas(checked: &[Checked], listed: &Value, folder: &RunFolder) -> Vec<Vec<Finding>> {
    let mut metas: BTreeMap<String, (Option<&str>, Option<&Href>)> = BTreeMap::new();
    for (_, item) in items(listed, "items").filter(|(_, item)| item["kind"] == "failure_meta") {
        if let Some(href) = item["href"].as_str() {
            metas.insert(href.to_owned(), (item["case_id"].as_str(), None));
        }
    }
    for case in checked {
        if let Some((meta, body)) = &case.meta {
            metas.insert(meta.to_string(), (Some(&case.stem), body.as_ref()));
        }
    }
    // What cannot be followed has a finding where it is linked from.
    metas.retain(|href, _| href.parse::<Href>().is_ok_and(|href| folder.measure(&href).is_ok()));
    let metas: Vec<_> = metas.into_iter().collect();
    metas
        .par_iter()
        .map(|(href, (case_id, body))| {
            let mut document = Document::inside(folder.path(), href);
            if document.is_json && meta::check(&document.value, &mut document.findings) {
                meta::check_folder(&document.value, *case_id, *body, folder, &mut document.findings);
            }
            document.finish()
        })
        .collect()
}
