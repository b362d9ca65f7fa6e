//! The result of a run of contracts, as text and as JSON.

use counterproof_artifact::with_causes;
use counterproof_contracts::execution::{RollbackOutcome, Verdict};
use counterproof_contracts::run_many::{ContractEnd, Selected};
use counterproof_evaluator::text;
use serde_json::{Value, json};

use super::failure::Failure;
use super::project::Project;
use super::run_folder::WrittenRun;
use crate::shell;
use crate::streams::Streams;

/// Returns how a contract ended, in one or two words.
pub(super) fn end_word(end: &ContractEnd) -> &'static str {
    match end {
        ContractEnd::Executed(execution) => match execution.verdict {
            Verdict::Met => "met",
            Verdict::AlreadyMet => "met before",
            Verdict::AwaitsApproval => "needs approval",
            Verdict::NotMet => "not met",
            Verdict::Interrupted => "interrupted",
        },
        ContractEnd::Refused(_) => "not run",
        ContractEnd::Blocked { .. } => "blocked",
        ContractEnd::NotBegun => "not begun",
        ContractEnd::Interrupted => "interrupted",
    }
}

/// Returns why a contract is not met, and what was done about it, one sentence each.
pub(super) fn reasons(end: &ContractEnd) -> Vec<String> {
    match end {
        ContractEnd::Executed(execution) => {
            let mut lines = execution.reasons.clone();
            if let Some(rollback) = &execution.rollback {
                let word = match rollback.outcome {
                    RollbackOutcome::RolledBack => "rolled back",
                    RollbackOutcome::Refused => "rollback refused",
                    RollbackOutcome::Failed => "rollback failed",
                };
                lines.push(format!("{word}: {}", rollback.message));
                lines.extend(rollback.way_back.as_ref().map(|way| format!("restore with: {way}")));
            }
            if execution.verdict == Verdict::AwaitsApproval {
                let id = &execution.contract.id;
                lines.push(format!("decide with `counterproof contract approve {id} --reason …`, or `reject`"));
            }
            let shows_evidence = !execution.verdict.is_met();
            lines.extend(execution.evidence.iter().filter(|_| shows_evidence).map(|path| format!("evidence: {path}")));
            lines
        }
        ContractEnd::Refused(error) => vec![with_causes(error)],
        ContractEnd::Blocked { by, state: None } => vec![format!("its dependency `{by}` is not met")],
        ContractEnd::Blocked { by, state: Some(state) } => vec![format!("its dependency `{by}` is {state}")],
        ContractEnd::NotBegun => Vec::new(),
        ContractEnd::Interrupted => vec!["the next run continues it".to_owned()],
    }
}

/// Prints the result.
pub(super) fn print(
    selected: &[Selected],
    ends: &[ContractEnd],
    written: &WrittenRun,
    project: &Project,
    streams: &mut Streams,
) -> Result<(), Failure> {
    let met = ends.iter().filter(|end| end.is_met()).count();
    let rows = selected.iter().zip(ends).map(|(selected, end)| {
        let mut row = json!({
            "id": selected.contract.id, "version": selected.contract.version, "result": end_word(end), "met": end.is_met(),
            "reasons": reasons(end),
        });
        match end {
            ContractEnd::Executed(execution) => {
                row["state"] = json!(execution.state);
                row["evidence"] = json!(execution.evidence);
            }
            ContractEnd::Refused(error) => row["code"] = json!(error.code()),
            ContractEnd::Blocked { .. } | ContractEnd::NotBegun | ContractEnd::Interrupted => {}
        }
        row
    });
    let document = json!({
        "met": met, "contracts": rows.collect::<Vec<Value>>(), "run": written.folder, "cases": written.cases,
    });
    project.print(streams, &document, || {
        format!(
            "{met} of {} met\nrun folder: {}\ncompare two runs: counterproof compare --cases {}",
            text::count(ends.len(), "contract", "contracts"),
            written.folder,
            shell::path(&written.cases)
        )
    })
}
