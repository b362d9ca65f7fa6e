//! Rules for `run.json`, alone and against the artifacts of its folder, for its labels, and for `evaluation.json`.

use std::collections::{HashMap, HashSet};

use camino::Utf8Path;
use counterproof_artifact::evaluation::Verdict;
use counterproof_artifact::schema::Kind;
use counterproof_artifact::{CaseId, Side, pointer};
use serde_json::Value;

use super::assets;
use crate::document::{count, items};
use crate::finding::{Findings, quote};
use crate::rules::names;
use crate::{Code, contract_schema};

/// The side and the run id in the path of a run folder: `runs/<side>/<runId>`.
#[derive(Debug, Default)]
pub(crate) struct FolderNames {
    pub(crate) side: Option<Side>,
    /// Set only in the layout of the contract: a copied folder may have any name.
    pub(crate) run_id: Option<String>,
}

impl FolderNames {
    pub(crate) fn from_path(folder: &Utf8Path) -> Self {
        // A relative path such as `.` does not name the folders of the layout.
        let folder = folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned());
        let side = |path: &Utf8Path| path.file_name().and_then(|name| name.parse::<Side>().ok());
        match folder.parent().and_then(side) {
            Some(above) => Self { side: Some(above), run_id: folder.file_name().map(str::to_owned) },
            None => Self { side: side(&folder), run_id: None },
        }
    }
}

/// Checks the document alone. Returns false if it is another kind of document.
pub(crate) fn check(run: &Value, place: &FolderNames, findings: &mut Findings) -> bool {
    if !contract_schema::check(Kind::Run, run, findings) {
        return false;
    }
    names::run_id(&run["run_id"], "/run_id", findings);
    if let (Some(folder), Some(id)) = (&place.run_id, run["run_id"].as_str())
        && folder != id
    {
        let message = format!("the run id is {}, but the folder is named {}", quote(id), quote(folder));
        findings.add(Code::RunIdDiffers, "/run_id", message, quote(folder));
    }
    if let Some(side) = place.side {
        names::side(&run["version"], "/version", side, "folder", findings);
    }
    names::time(&run["generated_at"], "/generated_at", findings);
    names::time(&run["accepted"]["at"], "/accepted/at", findings);
    names::run_id(&run["accepted"]["from_run_id"], "/accepted/from_run_id", findings);
    for (index, mark) in items(&run["accepted"]["review"], "marks") {
        names::case_id(&mark["case_id"], &format!("/accepted/review/marks/{index}/case_id"), findings);
    }
    assets::check_relative_path(&run["cases_path"], "/cases_path", findings);
    assets::check_relative_path(&run["cases_path_as_passed"], "/cases_path_as_passed", findings);
    assets::check_relative_path(&run["out_dir"], "/out_dir", findings);

    let mut keys: HashMap<String, usize> = HashMap::new();
    for (index, id) in items(run, "selected_case_ids") {
        let pointer = format!("/selected_case_ids/{index}");
        names::case_id(id, &pointer, findings);
        let Some(id) = id.as_str() else { continue };
        if let Some(earlier) = keys.get(&collision_key(id)) {
            let message = format!("{} names the same file as `/selected_case_ids/{earlier}`", quote(id));
            findings.add(Code::DuplicateCaseId, pointer, message, "an id that is unique, ignoring case");
        } else {
            keys.insert(collision_key(id), index);
        }
    }
    true
}

/// [`CaseId::collision_key`], also for invalid ids.
pub(crate) fn collision_key(id: &str) -> String {
    id.parse::<CaseId>().map_or_else(|_| id.to_lowercase(), |id| id.collision_key())
}

/// The status of an artifact, if it could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArtifactStatus {
    Ok,
    RunnerError,
    Unknown,
}

/// Checks the selection and the stats against the artifacts, which are keyed by file stem.
pub(crate) fn check_folder(run: &Value, artifacts: &HashMap<&str, ArtifactStatus>, findings: &mut Findings) {
    for (index, id) in items(run, "selected_case_ids") {
        if let Some(id) = id.as_str().filter(|id| !artifacts.contains_key(id)) {
            let message = format!("the selected case {} has no artifact", quote(id));
            let expected = format!("the file {}", quote(&format!("{id}.json")));
            findings.add(Code::CaseFileMissing, format!("/selected_case_ids/{index}"), message, expected);
        }
    }
    stats(run, artifacts, findings);
}

fn stats(run: &Value, artifacts: &HashMap<&str, ArtifactStatus>, findings: &mut Findings) {
    let stats = &run["stats"];
    let selected: HashSet<&str> = items(run, "selected_case_ids").filter_map(|(_, id)| id.as_str()).collect();
    let mut differ = |field: &str, says: u64, expected: &[u64], what: &str| {
        if !expected.contains(&says) {
            let expected: Vec<String> = expected.iter().map(|count| format!("`{count}`")).collect();
            let message = format!("`{field}` is {says}, but {what}");
            findings.add(Code::StatsDiffer, format!("/stats/{field}"), message, expected.join(" or "));
        }
    };
    if let Some(total) = count(&stats["cases_total"])
        && let Some(cases) = run["selected_case_ids"].as_array().map(Vec::len)
    {
        differ("cases_total", total, &[cases as u64], &format!("{cases} cases are selected"));
    }
    // An artifact that was not selected has its finding, and the stats do not include it.
    let ended: Vec<ArtifactStatus> =
        artifacts.iter().filter(|(id, _)| selected.contains(**id)).map(|(_, ended)| *ended).collect();
    if ended.contains(&ArtifactStatus::Unknown) {
        // An unreadable artifact has its own finding; how it would count is unknown.
        return;
    }
    let all = ended.len() as u64;
    let failed = ended.iter().filter(|ended| **ended == ArtifactStatus::RunnerError).count() as u64;
    if let Some(says) = count(&stats["cases_failed"]) {
        differ("cases_failed", says, &[failed], &format!("{failed} of {all} artifacts are runner errors"));
    }
    if let Some(says) = count(&stats["cases_completed"]) {
        // The contract does not state whether a failure counts as completed: both are accepted.
        let (ok, what) = (all - failed, format!("{} of {all} artifacts are answers", all - failed));
        let readings = [ok, all];
        differ("cases_completed", says, &readings[..if ok == all { 1 } else { 2 }], &what);
    }
}

/// Checks the document alone. Returns false if it is another kind of document.
pub(crate) fn check_labels(labels: &Value, findings: &mut Findings) -> bool {
    if !contract_schema::check(Kind::Labels, labels, findings) {
        return false;
    }
    for (id, _) in labels["solved"].as_object().into_iter().flatten() {
        names::case_id(&Value::from(id.as_str()), &pointer::child("/solved", id), findings);
    }
    true
}

pub(crate) fn check_labels_of_run(run: &Value, labels: &Value, findings: &mut Findings) {
    let selected: HashSet<&str> = items(run, "selected_case_ids").filter_map(|(_, id)| id.as_str()).collect();
    let labelled = labels["solved"].as_object().into_iter().flatten().map(|(id, _)| id);
    for id in labelled.filter(|id| !selected.contains(id.as_str())) {
        let message = format!("the case {} is not among the run's `selected_case_ids`", quote(id));
        findings.add(Code::CaseNotSelected, pointer::child("/solved", id), message, "a label of a selected case");
    }
}

/// Checks the document. Returns false if it is another kind of document.
pub(crate) fn check_evaluation(evaluation: &Value, findings: &mut Findings) -> bool {
    if !contract_schema::check(Kind::Evaluation, evaluation, findings) {
        return false;
    }
    for side in ["baseline", "new"] {
        names::run_id(&evaluation[side]["run_id"], &format!("/{side}/run_id"), findings);
        names::time(&evaluation[side]["generated_at"], &format!("/{side}/generated_at"), findings);
    }
    let mut actual: HashMap<&str, u64> = HashMap::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, case) in items(evaluation, "cases") {
        names::case_id(&case["case_id"], &format!("/cases/{index}/case_id"), findings);
        if let Some(verdict) = case["verdict"].as_str() {
            *actual.entry(verdict).or_default() += 1;
        }
        if let Some(id) = case["case_id"].as_str()
            && let Some(earlier) = seen.insert(id, index)
        {
            let message = format!("the case is already listed at `/cases/{earlier}`");
            findings.add(Code::DuplicateCaseId, format!("/cases/{index}/case_id"), message, "each case at most once");
        }
    }
    for verdict in Verdict::ALL {
        let word = verdict.as_str();
        let actual = actual.get(word).copied().unwrap_or_default();
        let said = &evaluation["counts"][word];
        // The counts may leave out a verdict that no case has.
        if said.is_null() && actual == 0 {
            continue;
        }
        if count(said).is_none_or(|said| said != actual) {
            let pointer = if said.is_null() { "/counts".to_owned() } else { format!("/counts/{word}") };
            let message = format!("{actual} cases are `{word}`, but the count is {said}");
            findings.add(Code::CountsDiffer, pointer, message, format!("`{actual}`"));
        }
    }
    true
}
