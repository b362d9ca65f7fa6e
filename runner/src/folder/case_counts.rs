//! What one artifact contributes to the counts of its run.

use counterproof_artifact::{Case, Outcome};

use crate::event::Counts;
use crate::failure::Reason;

pub(crate) fn counts_of(artifact: &Case) -> Counts {
    let attempts = artifact.attempts.as_ref().map_or(0, Vec::len);
    let failed = usize::from(matches!(artifact.outcome, Outcome::RunnerError(_)));
    let skipped = usize::from(was_skipped(artifact));
    let retried = usize::from(attempts > 1);
    Counts { answered: 1 - failed, failed, retried, attempts, skipped, ..Counts::default() }
}

/// Reports whether the case was skipped because the agent looked down. It then counts as missing.
pub(crate) fn was_skipped(artifact: &Case) -> bool {
    let Outcome::RunnerError(failure) = &artifact.outcome else { return false };
    failure.error_name.as_deref() == Some(Reason::NotRun.name())
}
