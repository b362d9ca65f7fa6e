//! The artifact of a case that was skipped because the agent looked down. Every selected case has an artifact.

use std::num::NonZeroU32;

use counterproof_artifact::{Case, CaseId, Extra, Nullable, Outcome, RunnerFailure};

use super::attempt_recorder::AttemptRecorder;
use crate::event::FailureNote;
use crate::failure::Reason;

/// The failure of a skipped case, as events report it.
pub(crate) const SKIPPED: FailureNote =
    FailureNote { class: Reason::NotRun.class(), name: Reason::NotRun.name(), status: None };

/// Returns the artifact of a skipped case. The contract counts attempts from 1, so `attempt` is 1 although `attempts` is empty.
pub(crate) fn skipped_case(recorder: &AttemptRecorder, case_id: CaseId, consecutive: NonZeroU32) -> Case {
    let failures = if consecutive.get() == 1 { "failure" } else { "consecutive failures" };
    let failure = RunnerFailure {
        class: SKIPPED.class,
        url: recorder.url.clone(),
        attempt: 1_u64.into(),
        timeout_ms: Some(recorder.timeout_ms.into()),
        latency_ms: None,
        status: None,
        status_text: None,
        error_name: Some(SKIPPED.name.to_owned()),
        error_message: Some(format!("the case was not run: the agent looks down after {consecutive} {failures}")),
        body_snippet: None,
        full_body_saved_to: None,
        full_body_meta_saved_to: Nullable::Null,
        extra: Extra::new(),
    };
    Case {
        case_id,
        version: recorder.run.side(),
        workflow_id: None,
        attempts: Some(Vec::new()),
        usage: None,
        outcome: Outcome::RunnerError(failure),
        extra: Extra::new(),
    }
}
