//! What was compared: the two runs side by side, and the settings in which they differ.

use counterproof_artifact::Run;
use serde_json::Value;

use super::changes::{self, ChangesShown};
use super::shown::{self, Budget};
use crate::diff::json;

/// What names a run or tells how it went; everything else is a setting.
const NOT_SETTINGS: [&str; 11] = [
    "schema_version",
    "run_id",
    "version",
    "generated_at",
    "out_dir",
    "selected_case_ids",
    "runner_version",
    "repo_commit",
    "dirty",
    "stats",
    "accepted",
];

/// A fact of both runs.
#[derive(Debug, Clone)]
pub(super) struct FactShown {
    /// What it is.
    pub(super) name: &'static str,
    /// The baseline's.
    pub(super) baseline: String,
    /// New's.
    pub(super) new: String,
}

/// The facts of both runs.
pub(super) fn facts(baseline: &Run, new: &Run) -> Vec<FactShown> {
    let fact = |name, of: fn(&Run) -> String| FactShown {
        name,
        baseline: shown::visible(&of(baseline)),
        new: shown::visible(&of(new)),
    };
    let mut facts = vec![
        fact("Run", |run| run.run_id.to_string()),
        fact("Started", |run| run.generated_at.clone()),
        fact("Commit", commit),
        fact("Runner", |run| run.runner_version.clone()),
        fact("Cases selected", |run| shown::number(run.selected_case_ids.len() as u64)),
        fact("How it went", stats),
    ];
    if baseline.accepted.is_some() || new.accepted.is_some() {
        facts.push(fact("Accepted", accepted));
    }
    facts
}

/// When a run was made the baseline, and why.
fn accepted(run: &Run) -> String {
    let Some(accepted) = &run.accepted else { return "no".to_owned() };
    let by = accepted.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    format!("{}{by}: {}", accepted.at, accepted.reason)
}

fn commit(run: &Run) -> String {
    match (&run.repo_commit, run.dirty) {
        (None, _) => "not recorded".to_owned(),
        (Some(commit), Some(true)) => format!("{commit}, with uncommitted changes"),
        (Some(commit), Some(false) | None) => commit.clone(),
    }
}

fn stats(run: &Run) -> String {
    let Some(stats) = &run.stats else { return "not finished".to_owned() };
    let counted = [(stats.cases_completed, "answered"), (stats.cases_failed, "failed")];
    let mut parts: Vec<_> = counted
        .into_iter()
        .filter_map(|(count, word)| Some(format!("{} {word}", shown::number(count?.get()))))
        .collect();
    parts.extend(stats.duration_ms.as_ref().map(|millis| format!("in {}", shown::duration(millis.as_f64()))));
    parts.join(", ")
}

/// The settings in which the runs differ.
pub(super) fn settings_that_differ(baseline: &Run, new: &Run) -> ChangesShown {
    let settings = |run: &Run| {
        let mut value = serde_json::to_value(run).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.retain(|key, _| !NOT_SETTINGS.contains(&key.as_str()));
        }
        value
    };
    changes::show(&json::diff(&settings(baseline), &settings(new)), &Budget::of_page())
}
