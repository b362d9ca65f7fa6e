//! The run folder and the cases of exported runs.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Attempt, Case, CaseId, EventBody, Extra, NameError, Outcome, RunId, Side, derived_id};
use counterproof_ledger::query::RunRecord;
use counterproof_ledger::store::{EventStore, StoreError};
use counterproof_store::write::WriteError;
use counterproof_store::{CaseList, CaseListError, CreateError};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::recorded_run::{RecordedRun, RecordedStatus, SUCCEEDED};
use super::steps::{tool_call, tool_result};
use crate::cases_file::{self, CasesFileError, Existing};
use crate::run_builder::{Destination, RunBuilder, RunFacts, answer, attempt, millis};

/// The name of the cases file, in the folder of all runs.
pub const CASES_FILE: &str = "ledger.cases.json";

/// The label of a workload that names the case.
pub const CASE_LABEL: &str = "case_id";

/// The name of the agent in the run document, instead of a URL.
const PRODUCER: &str = "ledger";

/// The workflow of a run whose agent is not known.
const UNNAMED_WORKFLOW: &str = "agent";

/// The case of a run whose agent is not known.
const UNNAMED_CASE: &str = "session";

/// Runs that could not be exported. No run folder is left.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the runs `{first}` and `{second}` have the same case id `{case_id}`")]
    DuplicateCaseId { case_id: CaseId, first: String, second: String },
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

#[derive(Debug, Clone)]
pub struct SelectedRun {
    pub run: RunRecord,
    pub case_id: CaseId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRuns {
    pub folder: Utf8PathBuf,
    /// The cases, in the order of the runs.
    pub cases: Vec<ExportedCase>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedCase {
    pub case_id: CaseId,
    pub run_id: String,
    /// How the run ended, such as `SUCCEEDED`, `LOST` or `NOT_ENDED`.
    pub status: String,
    pub calls: usize,
    pub refused: u64,
    pub has_guard: bool,
    pub policies: BTreeSet<String>,
}

/// Exports recorded runs as a run folder. The folder appears complete or not at all. The
/// path of the cases file is relative to it.
pub fn export_runs(
    store: &mut dyn EventStore,
    selected: &[SelectedRun],
    destination: &Destination<'_>,
    cases_path: String,
) -> Result<ExportedRuns, ExportError> {
    // Before anything is written.
    reject_duplicates(selected)?;
    let builder = RunBuilder::staged(destination)?;
    let mut cases = Vec::new();
    for SelectedRun { run, case_id } in selected {
        // One run is in memory at a time: a night of runs has more events than fit.
        let recorded = RecordedRun::read(store, &run.run_id)?;
        builder.add_with_assets(case(run, &recorded, case_id.clone(), destination.side))?;
        cases.push(ExportedCase {
            case_id: case_id.clone(),
            run_id: run.run_id.clone(),
            status: RecordedStatus::of_run(run).as_str().to_owned(),
            calls: recorded.calls.len(),
            refused: run.refused,
            has_guard: recorded.sources.has_guard(),
            policies: recorded.sources.policies(),
        });
    }
    let started = selected.iter().filter_map(|selected| time(selected.run.started_at.as_deref()?)).min();
    let folder = builder.finish(RunFacts {
        producer: PRODUCER,
        cases_path,
        started_at: started.unwrap_or(Timestamp::UNIX_EPOCH),
        stats: statuses(&cases),
        extra: policies(&cases),
    })?;
    Ok(ExportedRuns { folder, cases })
}

fn reject_duplicates(selected: &[SelectedRun]) -> Result<(), ExportError> {
    let mut known = BTreeMap::new();
    for SelectedRun { run, case_id } in selected {
        // By the key and not by the id: some file systems do not distinguish upper and lower case.
        if let Some(first) = known.insert(case_id.collision_key(), run) {
            let (first, second) = (first.run_id.clone(), run.run_id.clone());
            return Err(ExportError::DuplicateCaseId { case_id: case_id.clone(), first, second });
        }
    }
    Ok(())
}

fn policies(cases: &[ExportedCase]) -> Extra {
    let policies: BTreeSet<_> = cases.iter().flat_map(|case| &case.policies).collect();
    Extra::from_iter((!policies.is_empty()).then(|| ("policies".to_owned(), json!(policies))))
}

fn statuses(cases: &[ExportedCase]) -> Extra {
    let mut statuses: BTreeMap<&str, u64> = BTreeMap::new();
    for case in cases {
        *statuses.entry(&case.status).or_default() += 1;
    }
    Extra::from_iter([("statuses".to_owned(), json!(statuses))])
}

/// Checks, before anything is exported, that cases can be added to the cases file in a folder.
pub fn check_cases(folder: &Utf8Path) -> Result<(), CaseListError> {
    CaseList::check(&folder.join(CASES_FILE))
}

/// Adds the cases of these runs to the cases file in a folder. With it, `compare` reports a run as worse if it does not succeed, or
/// if a policy refuses one of its calls.
pub fn write_cases(folder: &Utf8Path, selected: &[SelectedRun]) -> Result<(), CasesFileError> {
    cases_file::write(
        &folder.join(CASES_FILE),
        Existing::Keep,
        selected.iter().map(|SelectedRun { run, case_id }| {
            // A message about this expression shows the whole final output, and thus how the agent or a server ended.
            let expectation = format!("final_output.content == {{'status': '{SUCCEEDED}'}}");
            let case = json!({
                "id": case_id, "title": title(run), "input": {"user": title(run)},
                "expected": {"no_refused_calls": true, "expect": [{"name": "the run succeeds", "expr": expectation}]},
            });
            Ok((case_id.clone(), case))
        }),
    )
}

/// Returns the case of a run: the label `case_id` of its workload, else its agent, else `session`.
pub fn case_id(run: &RunRecord) -> Result<CaseId, NameError> {
    let workload: Value =
        run.workload_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    // The label comes first: one agent can work on many cases.
    let label = workload["labels"][CASE_LABEL].as_str().filter(|label| !label.is_empty());
    let name = label.or_else(|| agent(run)).unwrap_or(UNNAMED_CASE);
    match name.parse::<CaseId>() {
        Ok(id) if id.check_new().is_ok() => Ok(id),
        _ => derived_id("case", name, name).parse(),
    }
}

/// Returns the id of an exported run: that of the recorded run, or one that is derived from it if it cannot name a folder.
pub fn run_id(run: &RunRecord) -> Result<RunId, NameError> {
    match run.run_id.parse::<RunId>() {
        Ok(id) if id.check_new().is_ok() => Ok(id),
        _ => derived_id("run", &run.run_id, &run.run_id).parse(),
    }
}

fn agent(run: &RunRecord) -> Option<&str> {
    run.agent_id.as_deref().filter(|agent| !agent.is_empty() && *agent != "unknown")
}

fn case(run: &RunRecord, recorded: &RecordedRun, case_id: CaseId, side: Side) -> Case {
    let events = steps(recorded);
    let ended = run.last_event_at.as_deref().and_then(time).map(millis).unwrap_or_default();
    // The final output must be the last event, even if a call ended after the last stored event.
    let ended = events.iter().map(|(ts, _)| *ts).fold(ended, u64::max);
    let outcome = answer(events, ended, final_output(run, recorded));
    Case {
        case_id,
        version: side,
        workflow_id: Some(agent(run).unwrap_or(UNNAMED_WORKFLOW).to_owned()),
        attempts: only_attempt(run, &outcome).map(|attempt| vec![attempt]),
        usage: None,
        outcome,
        extra: Extra::from_iter([
            ("title".to_owned(), json!(title(run))),
            ("recorded_run".to_owned(), facts(run, recorded)),
        ]),
    }
}

fn only_attempt(run: &RunRecord, outcome: &Outcome) -> Option<Attempt> {
    let [started, ended] = [&run.started_at, &run.last_event_at].map(|text| text.as_deref().and_then(time));
    let started = started?;
    Some(attempt(started, ended.map(|ended| millis(ended).saturating_sub(millis(started))), outcome))
}

fn steps(recorded: &RecordedRun) -> Vec<(u64, EventBody)> {
    let mut steps = Vec::new();
    for (number, call) in (1_u64..).zip(&recorded.calls) {
        let Some(began) = call.began() else { continue };
        // The recorded ids are random, and would differ between any two runs.
        let call_id = format!("call-{number}");
        steps.push((began, number, false, EventBody::ToolCall(tool_call(call, call_id.clone()))));
        if let (Some(end), Some(ended)) = (call.end(), call.ended()) {
            steps.push((ended, number, true, EventBody::ToolResult(tool_result(call, end, call_id))));
        }
    }
    // A result whose time is that of its call comes after it.
    steps.sort_by(|one, other| (one.0, one.1, one.2).cmp(&(other.0, other.1, other.2)));
    steps.into_iter().map(|(key, _, _, body)| (key.millis(), body)).collect()
}

/// Returns how the run ended, and how the agent and the servers ended that did not succeed.
fn final_output(run: &RunRecord, recorded: &RecordedRun) -> Map<String, Value> {
    let status = RecordedStatus::of_run(run);
    let without_end = RecordedStatus::without_end(run);
    // Only those that failed: a list of all would differ as soon as an agent uses another server.
    let failed = recorded.sources.failed_servers(&without_end);
    let mut output = Map::from_iter([("status".to_owned(), json!(status.as_str()))]);
    output.extend(recorded.sources.failed_agent(&without_end).map(|agent| ("agent".to_owned(), json!(agent))));
    if !failed.is_empty() {
        output.insert("servers".to_owned(), Value::Object(failed));
    }
    output
}

/// Returns what a reader may want to know about the run, and what differs between any two runs. It is not compared.
fn facts(run: &RunRecord, recorded: &RecordedRun) -> Value {
    let call_ids: Vec<_> = recorded.calls.iter().map(|call| call.text("call_id")).collect();
    json!({
        "run_id": run.run_id,
        "agent_id": run.agent_id,
        "client": run.client,
        "env": run.env,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "sources": recorded.sources.facts(),
        "call_ids": call_ids,
    })
}

fn title(run: &RunRecord) -> String {
    agent(run).map_or_else(|| "Recorded run".to_owned(), |agent| format!("Recorded run of {agent}"))
}

/// Parses a time of the ledger. An artifact cannot state times before 1970.
fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().filter(|time| *time >= Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(agent: Option<&str>, workload: Option<&str>) -> RunRecord {
        let [agent_id, workload_json] = [agent, workload].map(|text| text.map(str::to_owned));
        RunRecord { agent_id, workload_json, ..RunRecord::default() }
    }

    #[test]
    fn the_label_names_the_case_before_the_agent_does() {
        let id = |agent, workload| case_id(&run(agent, workload)).unwrap().to_string();
        assert_eq!(id(Some("coder"), Some(r#"{"labels": {"case_id": "refund_001"}}"#)), "refund_001");
        assert_eq!(id(Some("coder"), Some(r#"{"labels": {"case_id": ""}}"#)), "coder");
        assert_eq!(id(Some("coder"), Some(r#"{"labels": {"case_id": 7}}"#)), "coder");
        assert_eq!(id(Some("coder"), Some("not JSON")), "coder");
        assert_eq!(id(Some("unknown"), None), "session");
        assert_eq!(id(None, None), "session");
    }

    #[test]
    fn names_that_are_not_ids_give_different_valid_ids() {
        let ids: Vec<_> = ["my agent", "my/agent", "run", "-rf", "退款", "a\u{202e}"]
            .map(|name| case_id(&run(Some(name), None)).unwrap())
            .into_iter()
            .collect();
        assert!(ids.iter().all(|id| id.check_new().is_ok()), "{ids:?}");
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len(), "{ids:?}");
        assert!(ids[0].as_str().starts_with("case-myagent-"), "{ids:?}");
    }

    #[test]
    fn a_recorded_run_id_that_cannot_name_a_folder_is_replaced() {
        let id =
            |text: &str| run_id(&RunRecord { run_id: text.to_owned(), ..RunRecord::default() }).unwrap().to_string();
        assert_eq!(id("run-7"), "run-7");
        assert!(id("../etc/passwd").starts_with("run-etcpasswd-"));
        assert!(id("-rf").starts_with("run--rf-"));
    }
}
