//! Hints about the failures of a run, derived from their reasons and from the artifact of the first failed case.

use camino::Utf8Path;
use counterproof_artifact::CaseId;
use counterproof_evaluator::text;
use counterproof_runner::{Reason, Summary, Target};
use serde_json::Value;

use crate::connect_error::{CERTIFICATE_HINT, PROXY_HINT, recorded_failure};
use crate::reporter::FailureSummary;

/// Maximum number of characters of a quoted pointer or message.
const MAX_QUOTED_CHARS: usize = 160;

/// Returns the exit code or signal of the failed agent program, with a leading space; an empty string if it is zero or unknown.
pub(super) fn program_exit(folder: &Utf8Path, case_id: &CaseId) -> String {
    let failure = recorded_failure(folder, case_id);
    let number = failure.as_ref().and_then(|failure| {
        let field = ["exit_code", "signal"].into_iter().find_map(|field| failure.extra.get(field));
        field.and_then(Value::as_i64).filter(|number| *number != 0)
    });
    number.map(|number| format!(" {number}")).unwrap_or_default()
}

/// Returns the hints for the failures of a run.
pub(super) fn hints(target: &Target, summary: &Summary, failures: &FailureSummary) -> Vec<String> {
    let mut hints: Vec<_> = first_stderr(summary, failures).into_iter().collect();
    hints.extend(first_violation(summary, failures));
    if matches!(target, Target::Http(_)) && failures.common_status(summary.counts.selected) == Some(404) {
        hints.push("every case failed with status 404; check that the path of `--base-url` is correct".to_owned());
    }
    if matches!(target, Target::Command(_)) && failures.has(Reason::NotJson) {
        hints.push(
            "an agent program must write only the answer to standard output, and logs to standard error".to_owned(),
        );
    }
    if failures.has(Reason::Tls) {
        hints.push(CERTIFICATE_HINT.to_owned());
    }
    if failures.has(Reason::ProxyFailed) {
        hints.push(PROXY_HINT.to_owned());
    }
    if failures.has(Reason::BodyTooLarge) {
        hints.push("raise the size limits with `--max-body-bytes` and `--max-answer-bytes`".to_owned());
    }
    hints
}

/// Points to the standard error of the first case if all cases failed for the same reason: it usually has the cause.
fn first_stderr(summary: &Summary, failures: &FailureSummary) -> Option<String> {
    let reason = failures.common_reason(summary.counts.selected)?;
    let case_id = failures.first_attempted()?;
    let failure = recorded_failure(&summary.folder, case_id)?;
    let file = failure.extra.get("stderr_saved_to")?.as_str()?;
    let file = summary.folder.join(file);
    Some(format!("every case failed as `{reason}`; see the standard error of {case_id}: {file}"))
}

/// Quotes the first violation of the first case if the answers of all cases violate the contract: the others are likely the same.
fn first_violation(summary: &Summary, failures: &FailureSummary) -> Option<String> {
    let reason = failures.common_reason(summary.counts.selected)?;
    if reason != Reason::ContractViolated.name() {
        return None;
    }
    let case_id = failures.first_attempted()?;
    let failure = recorded_failure(&summary.folder, case_id)?;
    let violation = failure.extra.get("violations")?.get(0)?;
    let pointer = violation.get("pointer")?.as_str()?;
    // The pointer of the whole answer is empty.
    let at =
        if pointer.is_empty() { String::new() } else { format!(" at {}", text::one_line(pointer, MAX_QUOTED_CHARS)) };
    let message = text::one_line(violation.get("message")?.as_str()?, MAX_QUOTED_CHARS);
    let file = summary.folder.join(format!("{case_id}.json"));
    Some(format!(
        "every case failed as `{reason}`; the first violation of {case_id}{at}: {message}; see \
         `runner_failure.violations` in {file}"
    ))
}
