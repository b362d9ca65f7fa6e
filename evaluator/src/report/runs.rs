//! What was compared: the two runs side by side, and the settings in which they differ.

use counterproof_artifact::Run;
use counterproof_artifact::evaluation::{ComparedRun, Evaluation};
use serde_json::Value;

use super::changes::{self, ChangesShown};
use super::shown::{self, Budget};
use crate::diff::json;

/// What names a run or its group, or tells how it went; everything else is a setting.
const NOT_SETTINGS: [&str; 13] = [
    "schema_version",
    "run_id",
    "group_id",
    "repeat",
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

/// The facts of both runs: those that the evaluation keeps, and those that only the run documents tell.
pub(super) fn facts(evaluation: &Evaluation, documents: Option<[&Run; 2]>) -> Vec<FactShown> {
    let fact = |name, of: fn(&ComparedRun) -> String| shown_fact(name, [&evaluation.baseline, &evaluation.new].map(of));
    let mut facts = vec![
        fact("Run", |run| run.run_id.to_string()),
        fact("Started", |run| run.generated_at.clone()),
        fact("Commit", commit),
        fact("Runner", |run| run.runner_version.clone()),
        fact("Cases selected", |run| shown::number(run.cases_selected)),
    ];
    if let Some(documents) = documents {
        facts.push(shown_fact("How it went", documents.map(stats)));
        if documents.iter().any(|run| run.accepted.is_some()) {
            facts.push(shown_fact("Accepted", documents.map(accepted)));
        }
    }
    facts
}

fn shown_fact(name: &'static str, [baseline, new]: [String; 2]) -> FactShown {
    FactShown { name, baseline: shown::visible(&baseline), new: shown::visible(&new) }
}

/// When a run was made the baseline, and why.
fn accepted(run: &Run) -> String {
    let Some(accepted) = &run.accepted else { return "no".to_owned() };
    let by = accepted.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    format!("{}{by}: {}", accepted.at, accepted.reason)
}

fn commit(run: &ComparedRun) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(id: &str, repeat: u32, repeats: u32) -> Run {
        serde_json::from_value(json!({
            "schema_version": "run.v1", "run_id": format!("{id}-r{repeat}"), "version": "new",
            "generated_at": "2026-01-01T00:00:00Z", "base_url": "http://a", "cases_path": "c.json", "out_dir": "..",
            "selected_case_ids": [], "runner_version": "v", "group_id": id, "repeat": repeat, "repeats": repeats,
        }))
        .unwrap()
    }

    #[test]
    fn what_names_a_run_or_its_group_is_no_setting() {
        assert!(settings_that_differ(&run("a", 1, 3), &run("b", 2, 3)).places.is_empty());
        assert_eq!(settings_that_differ(&run("a", 1, 3), &run("b", 1, 5)).places.len(), 1);
    }
}
