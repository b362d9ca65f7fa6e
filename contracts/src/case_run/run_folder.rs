//! The run folder of the executions.

use std::collections::BTreeSet;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{AssetKind, CaseId, Extra, Run, RunId, Side, Stats};
use counterproof_redaction::Redactor;
use counterproof_store::write::WriteError;
use counterproof_store::{CreateError, RunWriter, read_file};
use jiff::Timestamp;

use super::case::{CaseContext, WORKFLOW, executed, not_executed};
use crate::contract::Contract;
use crate::execution::Execution;

/// A run folder that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CaseRunError {
    /// The folder could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A record could not be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The id of a contract is no case id.
    #[error(transparent)]
    Name(#[from] counterproof_artifact::NameError),
}

/// What the run folder says about itself.
#[derive(Debug, Clone)]
pub struct RunIdentity {
    /// The side of the comparison.
    pub side: Side,
    /// The id, which is the name of the folder.
    pub run_id: RunId,
    /// The program and its version.
    pub writer: String,
    /// The cases file, relative to the run folder.
    pub cases_path: String,
    /// The time of the start.
    pub started_at: Timestamp,
    /// Masks secrets in the cases.
    pub redactor: Redactor,
}

/// A run folder under construction. Threads can share it.
#[derive(Debug)]
pub struct CaseRun {
    writer: RunWriter,
    identity: RunIdentity,
    finished: Mutex<Finished>,
}

#[derive(Debug, Default)]
struct Finished {
    cases: BTreeSet<CaseId>,
    failed: u64,
}

impl CaseRun {
    /// Creates `<out>/<side>/<run id>/`, which must not exist.
    pub fn create(out: &Utf8Path, identity: RunIdentity) -> Result<Self, CaseRunError> {
        let writer = RunWriter::create(out, identity.side, &identity.run_id)?;
        Ok(Self { writer, identity, finished: Mutex::default() })
    }

    pub fn folder(&self) -> &Utf8Path {
        self.writer.folder()
    }

    /// Writes the case of an execution, with the records of its commands.
    pub fn add(&self, execution: &Execution) -> Result<(), CaseRunError> {
        let case_id = execution.contract.id.case_id()?;
        if let Some(folder) = &execution.evidence {
            let agent = execution.agent.iter().map(|agent| &agent.evidence);
            let attempts = execution.verification.iter().flat_map(|report| &report.attempts);
            for files in agent.chain(attempts.map(|attempt| &attempt.evidence)) {
                let path = folder.join(&files.log);
                let bytes = read_file::read(&path, read_file::MAX_LARGE_BYTES)
                    .map_err(|source| CaseRunError::Read { path: path.clone(), source })?;
                let name = format!("{case_id}.{}.txt", files.log);
                self.writer.write_asset(&name, AssetKind::Other, Some(&case_id), &bytes)?;
            }
        }
        let context = CaseContext { case_id: &case_id, side: self.identity.side, redactor: &self.identity.redactor };
        self.writer.write_case(&executed(execution, context))?;
        self.finish_case(case_id, 0);
        Ok(())
    }

    /// Writes the case of a contract that could not be executed.
    pub fn add_not_executed(&self, contract: &Contract, code: &str, reason: &str) -> Result<(), CaseRunError> {
        let case_id = contract.id.case_id()?;
        let context = CaseContext { case_id: &case_id, side: self.identity.side, redactor: &self.identity.redactor };
        let case = not_executed(reason, code, self.identity.started_at, contract.summary(), context);
        self.writer.write_case(&case)?;
        self.finish_case(case_id, 1);
        Ok(())
    }

    fn finish_case(&self, case_id: CaseId, failed: u64) {
        let mut finished = self.finished.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        finished.cases.insert(case_id);
        finished.failed += failed;
    }

    /// Completes the folder. Returns its path.
    pub fn finish(self) -> Result<Utf8PathBuf, CaseRunError> {
        let Self { writer, identity, finished } = self;
        let Finished { cases, failed } = finished.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let started_at = identity.started_at.to_string();
        writer.write_manifest(&started_at)?;
        let total = cases.len() as u64;
        let run = Run {
            base_url: WORKFLOW.to_owned(),
            cases_path: identity.cases_path,
            selected_case_ids: cases.into_iter().collect(),
            stats: Some(Stats {
                cases_total: Some(total.into()),
                cases_completed: Some((total - failed).into()),
                cases_failed: Some(failed.into()),
                duration_ms: None,
                extra: Extra::new(),
            }),
            ..Run::new(identity.run_id, identity.side, started_at, identity.writer)
        };
        writer.write_run(&run)?;
        Ok(writer.folder().to_owned())
    }
}
