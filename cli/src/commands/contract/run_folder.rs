//! The run folder that a run of contracts leaves for `compare`.

use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{RunId, Side, with_causes};
use counterproof_contracts::Contract;
use counterproof_contracts::execution::VerificationStatus;
use counterproof_contracts::run_many::{ContractEnd, RunStep};
use counterproof_export::Destination;
use counterproof_export::contracts::{CASES_FILE, CaseRun, CaseRunError, write_cases};
use counterproof_redaction::Redactor;

use super::project::now;
use super::run_reporter::Failure;
use crate::streams::WRITER;

/// A run folder under construction.
pub(super) struct RunFolder {
    run: CaseRun,
    cases: Utf8PathBuf,
    error: Mutex<Option<CaseRunError>>,
}

/// A finished run folder.
#[derive(Debug)]
pub(super) struct WrittenRun {
    pub(super) folder: Utf8PathBuf,
    pub(super) cases: Utf8PathBuf,
}

impl RunFolder {
    /// Creates the run folder and the cases file.
    pub(super) fn create<'c>(
        out: &Utf8Path,
        side: Side,
        run_id: Option<RunId>,
        redactor: &Redactor,
        contracts: impl Iterator<Item = &'c Contract>,
    ) -> Result<Self, Failure> {
        let started_at = now();
        let run_id = if let Some(id) = run_id {
            id
        } else {
            // With the process, because two runs may start in the same millisecond.
            let time = started_at.strftime("%Y%m%dT%H%M%S%3fZ");
            format!("{time}-{}", std::process::id()).parse().map_err(Failure::io)?
        };
        // Before the run folder is created: a cases file that cannot be written leaves nothing behind.
        write_cases(out, redactor, contracts).map_err(Failure::io)?;
        let destination =
            Destination { out, side, run_id: &run_id, writer: WRITER.to_owned(), is_deterministic: false };
        let run = CaseRun::create(&destination, started_at, redactor.clone()).map_err(|error| match error {
            CaseRunError::Create(counterproof_store::CreateError::Exists(_)) => {
                Failure::refused("usage", error).hint("choose another ID with `--run-id`")
            }
            other => Failure::io(other),
        })?;
        Ok(Self { run, cases: out.join(CASES_FILE), error: Mutex::default() })
    }

    /// Writes the case of a contract that has ended. The first error is returned by [`RunFolder::finish`].
    pub(super) fn observe(&self, step: &RunStep<'_>) {
        let RunStep::Ended(selected, end) = step else { return };
        let not_executed = |code: &str, reason: &str| self.run.add_not_executed(&selected.contract, code, reason);
        let added = match end {
            // A contract that was met before was not executed: there is nothing new to compare.
            ContractEnd::Executed(execution) if execution.verdict == VerificationStatus::AlreadyMet => Ok(()),
            ContractEnd::Executed(execution) => self.run.add(execution),
            ContractEnd::Refused(error) => not_executed(error.code(), &with_causes(error)),
            ContractEnd::Blocked { by, .. } => not_executed("blocked", &format!("its dependency `{by}` is not met")),
            ContractEnd::NotBegun | ContractEnd::Interrupted => not_executed("interrupted", "the run was interrupted"),
        };
        // The other contracts go on: their results do not depend on this folder.
        if let Err(error) = added {
            self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Returns where the run folder and the cases file are.
    pub(super) fn planned(&self) -> WrittenRun {
        WrittenRun { folder: self.run.folder().to_owned(), cases: self.cases.clone() }
    }

    /// Completes the run folder.
    pub(super) fn finish(self) -> Result<(), Failure> {
        if let Some(error) = self.error.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            return Err(Failure::io(error));
        }
        self.run.finish().map(drop).map_err(Failure::io)
    }
}
