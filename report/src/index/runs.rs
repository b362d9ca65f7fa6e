//! The compared runs: who they are, and the settings that differ.

use std::collections::BTreeMap;

use counterproof_artifact::evaluation::{ComparedRun, Evaluation};
use counterproof_artifact::{Count, Run, Sides, Stats};

use crate::view::changes::{self, ChangesView};
use crate::view::display::{self, Budget};

/// Characters of a commit that identify it.
const COMMIT_CHARS: usize = 8;

/// A run in the first line of the page: `2026-11-28, 5f86691b, gpt-5`.
pub(crate) fn caption(run: &ComparedRun, document: Option<&Run>) -> String {
    let date = run.generated_at.get(..10).map(str::to_owned);
    let commit = run.repo_commit.as_ref().map(|commit| commit.chars().take(COMMIT_CHARS).collect::<String>());
    let model = document.and_then(Run::model).map(str::to_owned);
    let parts: Vec<_> = [date, commit, model].into_iter().flatten().map(|part| display::visible(&part)).collect();
    parts.join(", ")
}

/// The field of the stats with the number of cases by status.
const STATUSES: &str = "statuses";

/// Fields that identify a run or describe its course. Every other field is a setting.
const NOT_SETTINGS: [&str; 14] = [
    "schema_version",
    "run_id",
    "group_id",
    "repeat",
    "version",
    "generated_at",
    "out_dir",
    "selected_case_ids",
    "expectation_digests",
    "runner_version",
    "repo_commit",
    "dirty",
    "stats",
    "accepted",
];

#[derive(Debug, Clone)]
pub(crate) struct FactView {
    pub(crate) name: &'static str,
    pub(crate) baseline: String,
    pub(crate) new: String,
}

/// The facts of both runs, from the evaluation and from the run documents if they are known.
pub(crate) fn facts(evaluation: &Evaluation, documents: Option<Sides<&Run>>) -> Vec<FactView> {
    let compared = Sides { baseline: &evaluation.baseline, new: &evaluation.new };
    let fact = |name, value: fn(&ComparedRun) -> String| fact_view(name, compared.map(value));
    let mut facts = vec![
        fact("Run", |run| run.run_id.to_string()),
        fact("Started", |run| run.generated_at.clone()),
        fact("Commit", commit),
        fact("Runner", |run| run.runner_version.clone()),
        fact("Cases selected", |run| display::number(run.cases_selected)),
    ];
    if let Some(documents) = documents {
        facts.push(fact_view("Result", documents.map(stats)));
        if documents.iter().any(|(_, run)| run.accepted.is_some()) {
            facts.push(fact_view("Accepted", documents.map(accepted)));
        }
    }
    facts
}

fn fact_view(name: &'static str, Sides { baseline, new }: Sides<String>) -> FactView {
    FactView { name, baseline: display::visible(&baseline), new: display::visible(&new) }
}

/// When and why a run was accepted as the baseline.
fn accepted(run: &Run) -> String {
    let Some(accepted) = &run.accepted else { return "no".to_owned() };
    let by = accepted.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let marks = accepted.review.as_ref().map(|review| format!(" ({})", review.summary())).unwrap_or_default();
    format!("{}{by}: {}{marks}", accepted.at, accepted.reason)
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
    let count = |count: &Count, word: &str| format!("{} {}", display::number(count.get()), display::visible(word));
    // Recorded runs have a status for each case instead of counts of answers.
    let mut parts: Vec<_> = if let Some(statuses) = statuses(stats) {
        statuses.iter().map(|(status, number)| count(number, status)).collect()
    } else {
        let counted = [(stats.cases_completed, "answered"), (stats.cases_failed, "failed")];
        counted.into_iter().filter_map(|(number, word)| Some(count(&number?, word))).collect()
    };
    parts.extend(stats.duration_ms.as_ref().map(|millis| format!("in {}", display::duration(millis.as_f64()))));
    parts.join(", ")
}

/// How many cases ended with each status, for recorded runs.
fn statuses(stats: &Stats) -> Option<BTreeMap<String, Count>> {
    serde_json::from_value(stats.extra.get(STATUSES)?.clone()).ok()
}

pub(crate) fn different_settings(documents: Sides<&Run>) -> ChangesView {
    let comparable = |run: &Run| Run { base_url: without_local_port(&run.base_url), ..run.clone() };
    let documents = documents.map(comparable);
    let documents = Sides::new(&documents.baseline, &documents.new);
    let changes = counterproof_evaluator::different_settings(documents, |field| !NOT_SETTINGS.contains(&field));
    changes::changes_view(&changes, &Budget::for_page())
}

/// Returns a base URL without its port if the host is this machine. The port of an agent that was started is any free one.
fn without_local_port(url: &str) -> String {
    for host in ["http://127.0.0.1", "http://localhost", "http://[::1]"] {
        if let Some(rest) = url.strip_prefix(host).and_then(|rest| rest.strip_prefix(':')) {
            return format!("{host}{}", rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
        }
    }
    url.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
    fn the_port_of_this_machine_is_not_a_setting() {
        let at = |url: &str| Run { base_url: url.to_owned(), ..run("a", 1, 1) };
        let changes =
            |baseline: &str, new: &str| different_settings(Sides { baseline: &at(baseline), new: &at(new) }).list.len();
        assert_eq!(changes("http://127.0.0.1:4001/v1", "http://127.0.0.1:4002/v1"), 0);
        assert_eq!(changes("http://127.0.0.1:4001/v1", "http://127.0.0.1:4002/v2"), 1);
        assert_eq!(changes("http://agent:4001", "http://agent:4002"), 1);
    }

    #[test]
    fn recorded_runs_have_their_statuses_instead_of_answers() {
        let result = |value: Value| stats(&Run { stats: serde_json::from_value(value).unwrap(), ..run("a", 1, 1) });
        let counted = json!({"cases_completed": 3, "cases_failed": 0});
        assert_eq!(result(counted), "3 answered, 0 failed");
        let recorded = json!({"cases_completed": 3, "cases_failed": 0, "statuses": {"SUCCEEDED": 1, "FAILED": 2}});
        assert_eq!(result(recorded), "2 FAILED, 1 SUCCEEDED");
    }

    #[test]
    fn the_identity_of_a_run_or_group_is_not_a_setting() {
        assert!(different_settings(Sides { baseline: &run("a", 1, 3), new: &run("b", 2, 3) }).list.is_empty());
        assert_eq!(different_settings(Sides { baseline: &run("a", 1, 3), new: &run("b", 1, 5) }).list.len(), 1);
    }
}
