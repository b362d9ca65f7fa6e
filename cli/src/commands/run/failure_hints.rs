//! What helps with the failures of a run, from their names and from the artifacts of the first of them.

use camino::Utf8Path;
use counterproof_artifact::CaseId;
use counterproof_runner::{Reason, Summary, Target};
use serde_json::Value;

use crate::connect_error;
use crate::reporter::Failures;

/// How the program that failed in a case ended: its exit code or signal, behind a space; empty where it did not end by itself.
pub(super) fn ended(folder: &Utf8Path, case_id: &CaseId) -> String {
    let failure = connect_error::failure(folder, case_id);
    let number = failure.as_ref().and_then(|failure| {
        let ending = ["exit_code", "signal"].into_iter().find_map(|field| failure.extra.get(field));
        ending.and_then(Value::as_i64).filter(|number| *number != 0)
    });
    number.map(|number| format!(" {number}")).unwrap_or_default()
}

/// What can be said of all failures together.
pub(super) fn all(target: &Target, summary: &Summary, failures: &Failures) -> Vec<String> {
    let mut hints: Vec<_> = stderr_of_first(summary, failures).into_iter().collect();
    if matches!(target, Target::Command(_)) && failures.has(Reason::NotJson) {
        hints.push("a program's standard output has to hold the answer alone; logs go to standard error".to_owned());
    }
    if failures.has(Reason::BodyTooLarge) {
        hints.push("`--max-body-bytes` and `--max-answer-bytes` say how large an answer may be".to_owned());
    }
    hints
}

/// Where every case failed the same way, the first of them has usually said why.
fn stderr_of_first(summary: &Summary, failures: &Failures) -> Option<String> {
    let name = failures.all_as_one(summary.counts.selected)?;
    let case_id = failures.first_asked()?;
    let failure = connect_error::failure(&summary.folder, case_id)?;
    let file = failure.extra.get("stderr_saved_to")?.as_str()?;
    Some(format!("every case failed as `{name}`; {case_id} wrote to its standard error: {}", summary.folder.join(file)))
}
