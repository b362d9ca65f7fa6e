//! What the artifact of a recorded run states about the processes that recorded it.

use counterproof_artifact::{Case, Content, Outcome};
use serde_json::Value;

use crate::values::text;

/// The field of an artifact with the facts of a recorded run.
const FIELD: &str = "recorded_run";

/// The kind of a source that records the calls of a server: a shim or a proxy of the guard.
const SERVER: &str = "server";

/// Maximum number of characters of a status, and of the end of an agent.
const STATUS_CHARS: usize = 40;
const AGENT_CHARS: usize = 120;

/// The status of a run that ended as it should.
const SUCCEEDED: &str = "SUCCEEDED";

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRun {
    /// True if a guard recorded the calls of a server, and can thus have refused some.
    pub has_guard: bool,
    /// How it ended: `FAILED (agent: exit code 1)`.
    pub ending: Option<String>,
    /// False if its status is known and not that of a success.
    pub succeeded: bool,
}

impl RecordedRun {
    /// Reads the facts of a case. Returns `None` for a case that is no recorded run.
    pub(super) fn read(case: &Case) -> Option<Self> {
        let facts = case.extra.get(FIELD)?;
        let has_guard = facts["sources"].as_array().into_iter().flatten().any(|source| source["kind"] == SERVER);
        let output = match &case.outcome {
            Outcome::Ok(answer) => Some(&answer.final_output.content),
            Outcome::RunnerError(_) => None,
        };
        let field = |name: &str| match output {
            Some(Content::Json(fields)) => fields.get(name).and_then(Value::as_str),
            _ => None,
        };
        let status = field("status");
        let ending = status.map(|status| {
            let agent = field("agent").map(|agent| format!(" (agent: {})", text::one_line(agent, AGENT_CHARS)));
            format!("{}{}", text::one_line(status, STATUS_CHARS), agent.unwrap_or_default())
        });
        Some(Self { has_guard, ending, succeeded: status.is_none_or(|status| status == SUCCEEDED) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(recorded: &Value, content: &Value) -> Option<RecordedRun> {
        let case = json!({
            "schema_version": "case.v1", "case_id": "c", "version": "new", "status": "ok", "proposed_actions": [],
            "events": [], "final_output": {"content_type": "json", "content": content}, "recorded_run": recorded,
        });
        RecordedRun::read(&serde_json::from_value(case).unwrap())
    }

    #[test]
    fn only_a_source_of_a_server_is_a_guard() {
        let has_guard = |recorded: &Value| read(recorded, &json!({})).unwrap().has_guard;
        assert!(has_guard(&json!({"sources": [{"kind": "agent"}, {"kind": "server"}]})));
        for recorded in [json!({"sources": [{"kind": "agent"}]}), json!({"sources": []}), json!({}), json!("run-1")] {
            assert!(!has_guard(&recorded), "{recorded}");
        }
    }

    #[test]
    fn the_ending_is_the_status_and_the_end_of_a_failed_agent() {
        let ending = |content: Value| {
            let run = read(&json!({}), &content).unwrap();
            (run.ending.unwrap_or_default(), run.succeeded)
        };
        assert_eq!(ending(json!({"status": "SUCCEEDED"})), ("SUCCEEDED".to_owned(), true));
        let failed = json!({"status": "FAILED", "agent": "exit code 1"});
        assert_eq!(ending(failed), ("FAILED (agent: exit code 1)".to_owned(), false));
        assert_eq!(ending(json!({"status": 7})), (String::new(), true));
    }
}
