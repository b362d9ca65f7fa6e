//! Rules about `run.json`: by itself, and held against the artifacts of its folder.

use std::collections::{HashMap, HashSet};

use camino::Utf8Path;
use serde_json::Value;

use super::excerpt::quote;
use super::finding::Findings;
use super::value::{count, items};
use super::{Code, hrefs, names, shape};
use counterproof_artifact::schema::Kind;
use counterproof_artifact::{CaseId, Side};

/// What the names of a run folder and of the folder above it say: `runs/<side>/<runId>`.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) side: Option<Side>,
    /// Only in the layout of the contract. A copied folder may be called otherwise.
    pub(super) run_id: Option<String>,
}

impl Place {
    pub(super) fn of(folder: &Utf8Path) -> Self {
        let folder = folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned());
        let side = |path: &Utf8Path| path.file_name().and_then(|name| name.parse::<Side>().ok());
        match folder.parent().and_then(side) {
            Some(above) => Self { side: Some(above), run_id: folder.file_name().map(str::to_owned) },
            None => Self { side: side(&folder), run_id: None },
        }
    }
}

/// The document by itself. False where it is another document.
pub(super) fn check(run: &Value, place: &Place, findings: &mut Findings) -> bool {
    if !shape::check(Kind::Run, run, findings) {
        return false;
    }
    names::run_id(&run["run_id"], "/run_id", findings);
    if let (Some(folder), Some(id)) = (&place.run_id, run["run_id"].as_str())
        && folder != id
    {
        let message = format!("the run is called {}, and its folder {}", quote(id), quote(folder));
        findings.add(Code::RunIdDiffers, "/run_id", message, quote(folder));
    }
    if let Some(side) = place.side {
        names::side(&run["version"], "/version", side, "folder", findings);
    }
    names::time(&run["generated_at"], "/generated_at", findings);
    names::time(&run["accepted"]["at"], "/accepted/at", findings);
    names::run_id(&run["accepted"]["from_run_id"], "/accepted/from_run_id", findings);
    hrefs::relative(&run["cases_path"], "/cases_path", findings);
    hrefs::relative(&run["out_dir"], "/out_dir", findings);

    let mut keys: HashMap<String, usize> = HashMap::new();
    for (index, id) in items(run, "selected_case_ids") {
        let pointer = format!("/selected_case_ids/{index}");
        names::case_id(id, &pointer, findings);
        let Some(id) = id.as_str() else { continue };
        if let Some(earlier) = keys.get(&collision_key(id)) {
            let message = format!("{} names the same file as `/selected_case_ids/{earlier}`", quote(id));
            findings.add(
                Code::DuplicateCaseId,
                pointer,
                message,
                "an id that no other equals, upper and lower case aside",
            );
        } else {
            keys.insert(collision_key(id), index);
        }
    }
    true
}

/// As [`CaseId::collision_key`], for ids that may be none.
pub(super) fn collision_key(id: &str) -> String {
    id.parse::<CaseId>().map_or_else(|_| id.to_lowercase(), |id| id.collision_key())
}

/// How an artifact ended, as far as can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Ok,
    RunnerError,
    Unknown,
}

/// The selection and the stats, held against the artifacts that are there, by the stems of their files.
pub(super) fn check_folder(run: &Value, artifacts: &HashMap<&str, Ended>, findings: &mut Findings) {
    for (index, id) in items(run, "selected_case_ids") {
        if let Some(id) = id.as_str().filter(|id| !artifacts.contains_key(id)) {
            let message = format!("the selected case {} has no artifact", quote(id));
            let expected = format!("the file {}", quote(&format!("{id}.json")));
            findings.add(Code::CaseFileMissing, format!("/selected_case_ids/{index}"), message, expected);
        }
    }
    stats(run, artifacts, findings);
}

fn stats(run: &Value, artifacts: &HashMap<&str, Ended>, findings: &mut Findings) {
    let stats = &run["stats"];
    let selected: HashSet<&str> = items(run, "selected_case_ids").filter_map(|(_, id)| id.as_str()).collect();
    let mut differ = |field: &str, says: u64, expected: &[u64], what: &str| {
        if !expected.contains(&says) {
            let expected: Vec<String> = expected.iter().map(|count| format!("`{count}`")).collect();
            let message = format!("`{field}` is {says}, and {what}");
            findings.add(Code::StatsDiffer, format!("/stats/{field}"), message, expected.join(" or "));
        }
    };
    if let Some(total) = count(&stats["cases_total"])
        && let Some(cases) = run["selected_case_ids"].as_array().map(Vec::len)
    {
        differ("cases_total", total, &[cases as u64], &format!("{cases} cases are selected"));
    }
    let ended: Vec<Ended> =
        artifacts.iter().filter(|(id, _)| selected.contains(**id)).map(|(_, ended)| *ended).collect();
    if ended.contains(&Ended::Unknown) {
        // What an unreadable artifact would count as is not known; it has a finding of its own.
        return;
    }
    let all = ended.len() as u64;
    let failed = ended.iter().filter(|ended| **ended == Ended::RunnerError).count() as u64;
    if let Some(says) = count(&stats["cases_failed"]) {
        differ("cases_failed", says, &[failed], &format!("{failed} of {all} artifacts are runner errors"));
    }
    if let Some(says) = count(&stats["cases_completed"]) {
        // The contract does not say whether a failure counts as completed: both readings are taken.
        let (ok, what) = (all - failed, format!("{} of {all} artifacts are answers", all - failed));
        let readings = [ok, all];
        differ("cases_completed", says, &readings[..if ok == all { 1 } else { 2 }], &what);
    }
}
