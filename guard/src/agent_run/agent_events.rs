//! The events of the agent itself: its start and its end. The shims below it record its calls.

use std::ffi::OsStr;
use std::time::Duration;

use counterproof_ledger::event::{AGENT_SOURCE, EventBody, RunEnd, RunStart, RunStatus, RunSummary, SOURCE_KIND};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{AgentEnd, AgentRunError};
use crate::policy::Policy;
use crate::process_exit;

/// Returns the first event of an agent. Its arguments are not recorded, because they may be secret.
pub fn agent_started(program: &OsStr, policy: &Policy) -> EventBody {
    let meta = [(SOURCE_KIND, AGENT_SOURCE.to_owned()), ("program", program.to_string_lossy().into_owned())];
    let meta: Map<_, _> = meta.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    EventBody::RunStart {
        run: RunStart {
            started_at: Timestamp::now(),
            mode: policy.mode(),
            policy: policy.reference(),
            meta: Some(meta),
        },
    }
}

/// Returns the last event of an agent, which ran for `elapsed`. It counts no calls, because the shims do.
pub fn agent_ended(end: &Result<AgentEnd, AgentRunError>, elapsed: Duration) -> EventBody {
    let (status, exit) = match end {
        Ok(end) => (end.status(), process_exit::ended(end.ending)),
        Err(error) => (RunStatus::Failed, process_exit::not_started(error)),
    };
    let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let summary = RunSummary { duration_ms, ..RunSummary::default() };
    EventBody::RunEnd { run: RunEnd { ended_at: Timestamp::now(), status, summary, exit: Some(exit) } }
}

#[cfg(test)]
mod tests {
    use counterproof_ledger::event::Termination;
    use counterproof_safe_run::{Ending, StartError};
    use serde_json::json;

    use super::*;

    /// Returns the status and the exit of the last event.
    fn ended(end: &Result<AgentEnd, AgentRunError>) -> (Value, Value) {
        let event = serde_json::to_value(agent_ended(end, Duration::from_millis(7))).unwrap();
        assert_eq!(event["run"]["summary"]["duration_ms"], 7);
        assert_eq!(event["run"]["summary"]["calls_total"], 0);
        (event["run"]["status"].clone(), event["run"]["exit"].clone())
    }

    fn end(ending: Ending, is_cancelled: bool) -> AgentEnd {
        AgentEnd { ending, termination: None, is_cancelled, left_behind: 0 }
    }

    #[test]
    fn the_start_has_the_program_and_the_policy_and_no_arguments() {
        let event = serde_json::to_value(agent_started(OsStr::new("/bin/agent"), &Policy::observe_only())).unwrap();
        assert_eq!((&event["type"], &event["run"]["mode"]), (&json!("run_start"), &json!("observe")));
        assert_eq!(event["run"]["meta"], json!({"kind": "agent", "program": "/bin/agent"}));
        assert_eq!(event["run"]["policy"]["policy_hash"], "none");
    }

    #[test]
    fn an_agent_succeeds_only_with_exit_code_0() {
        let status = |ending| ended(&Ok(end(ending, false)));
        assert_eq!(status(Ending::Exited(0)), (json!("SUCCEEDED"), json!({"code": 0})));
        assert_eq!(status(Ending::Exited(3)), (json!("FAILED"), json!({"code": 3})));
        assert_eq!(status(Ending::Killed(11)), (json!("FAILED"), json!({"signal": 11})), "a crash");
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        let not_started = AgentRunError::Start(StartError::Command { program: "x".to_owned(), source });
        let (status, exit) = ended(&Err(not_started));
        assert_eq!(status, "FAILED");
        assert_eq!(exit, json!({"not_started": "failed to start `x`: entity not found"}));
    }

    #[test]
    fn a_signal_to_the_guard_cancels_the_run_and_a_rule_terminates_it() {
        let interrupted = end(Ending::Exited(0), true);
        assert_eq!(ended(&Ok(interrupted.clone())), (json!("CANCELLED"), json!({"code": 0})));
        assert_eq!(ended(&Ok(end(Ending::Killed(2), true))).0, "CANCELLED");
        let loop_found = Termination { terminate_code: "LOOP".to_owned(), terminate_message: "x".to_owned() };
        let terminated = AgentEnd { termination: Some(loop_found), ..interrupted };
        assert_eq!(ended(&Ok(terminated)).0, "TERMINATED");
    }
}
