//! The ids of an export: valid for any run of the ledger, and equal for equal runs.

use counterproof_artifact::{CaseId, NameError, RunId, derived_id};
use serde_json::Value;

use crate::query::RunRecord;

/// The label of a workload that names the case.
pub const CASE_LABEL: &str = "case_id";

/// The case of a run whose agent is not known.
const UNNAMED: &str = "session";

/// Returns the case of a run: the label `case_id` of its workload, else its agent, else `session`.
pub fn case_id(run: &RunRecord) -> Result<CaseId, NameError> {
    let workload: Value =
        run.workload_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let label = workload["labels"][CASE_LABEL].as_str().filter(|label| !label.is_empty());
    let name = label.or_else(|| agent(run)).unwrap_or(UNNAMED);
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

/// Returns the name of the agent, if it is known.
pub(super) fn agent(run: &RunRecord) -> Option<&str> {
    run.agent_id.as_deref().filter(|agent| !agent.is_empty() && *agent != "unknown")
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
    fn names_that_are_no_ids_give_different_valid_ids() {
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
