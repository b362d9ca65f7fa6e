//! The artifact of a case that was not asked, because the run had given the agent up. A case is never silently missing.

use std::num::NonZeroU32;

use counterproof_artifact::{Case, CaseId, Extra, Nullable, Outcome, RunnerFailure};

use crate::event::FailureNote;
use crate::failure::fault::Reason;
use crate::record::attempt_recorder::Keeper;

/// What the events say of such a case.
pub(crate) const NOTE: FailureNote =
    FailureNote { class: Reason::NotRun.class(), name: Reason::NotRun.name(), status: None };

/// The artifact. The contract counts attempts from 1, so `attempt` names the one that was not made; `attempts` is empty.
pub(crate) fn artifact(keeper: &Keeper, case_id: CaseId, in_a_row: NonZeroU32) -> Case {
    let cases = if in_a_row.get() == 1 { "the case before".to_owned() } else { format!("{in_a_row} cases in a row") };
    let failure = RunnerFailure {
        class: NOTE.class,
        url: keeper.url.clone(),
        attempt: 1_u64.into(),
        timeout_ms: Some(keeper.timeout_ms.into()),
        latency_ms: None,
        status: None,
        status_text: None,
        error_name: Some(NOTE.name.to_owned()),
        error_message: Some(format!("the case was not asked: {cases} ended as if the agent were down")),
        body_snippet: None,
        full_body_saved_to: None,
        full_body_meta_saved_to: Nullable::Null,
        extra: Extra::new(),
    };
    Case {
        case_id,
        version: keeper.run.side(),
        workflow_id: None,
        attempts: Some(Vec::new()),
        outcome: Outcome::RunnerError(failure),
        extra: Extra::new(),
    }
}
