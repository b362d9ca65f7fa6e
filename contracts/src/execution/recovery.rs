//! Continues after an execution that was killed, and checks that this one may begin.

use super::began::{ExecutionStart, PROCESS, host_name, interruption, was_interrupted};
use super::steps::Steps;
use super::undo::resume_rollback;
use super::{Environment, ExecutionError, RollbackSummary, RunSettings};
use crate::contract::ContractKey;
use crate::lifecycle::{Details, State};
use crate::record::NoteKind;
use crate::store::{Store, VersionHistory};

/// The reason of the transitions after the death of a process.
const DIED: &str = "the process that executed the contract died";

/// What an execution begins with.
#[derive(Debug)]
pub(super) enum Recovered {
    /// The contract can be executed.
    Executable(Box<VersionHistory>),
    /// Another execution has completed it in the meantime.
    Completed,
    /// The rollback of a killed execution was completed.
    RolledBack(State, RollbackSummary),
}

/// Brings a contract into a state from which it can be executed.
///
/// The caller holds the contract. So a step that another process of this machine began and did not finish was killed.
pub(super) fn recover(
    store: &Store,
    steps: &Steps<'_>,
    key: &ContractKey,
    settings: &RunSettings,
    environment: &Environment,
) -> Result<Recovered, ExecutionError> {
    loop {
        let version = store.version(key)?;
        let state = version.state();
        check_claim(&version, key, settings)?;
        let by_program = is_by_program(&version);
        match state {
            State::Completed => return Ok(Recovered::Completed),
            State::RolledBack | State::Cancelled => {
                return Err(ExecutionError::Ended { id: key.id.clone(), state });
            }
            State::Claimed if by_program => steps.by_system(State::Ready, DIED, interruption())?,
            State::Executing if by_program => steps.by_system(State::Failed, DIED, interruption())?,
            State::Verifying if by_program && !awaits_approval(&version) => {
                steps.by_system(State::Failed, DIED, interruption())?;
            }
            State::RollingBack => {
                let (state, summary) = resume_rollback(&version, settings, steps, store, environment)?;
                return Ok(Recovered::RolledBack(state, summary));
            }
            State::Failed if version.open_notes().any(|note| note.kind == NoteKind::NotRolledBack) => {
                return Err(ExecutionError::NeedsDecision { id: key.id.clone() });
            }
            State::Failed => steps.by_owner(State::Ready, "another attempt", Details::new())?,
            State::Pending | State::Ready | State::Claimed | State::Executing | State::Verifying => {
                return Ok(Recovered::Executable(Box::new(version)));
            }
        }
    }
}

/// Checks that the owner, the machine and the working directory of a begun execution are those of this one.
fn check_claim(version: &VersionHistory, key: &ContractKey, settings: &RunSettings) -> Result<(), ExecutionError> {
    let (id, state) = (key.id.clone(), version.state());
    if matches!(state, State::Pending | State::Ready) || state.is_terminal() {
        return Ok(());
    }
    if let Some(owner) = version.owner().filter(|owner| *owner != settings.owner) {
        return Err(ExecutionError::Foreign { id, state, owner: owner.to_owned() });
    }
    let Some(start) = ExecutionStart::last(version).filter(|_| state != State::Claimed) else { return Ok(()) };
    let is_active = state != State::Failed;
    if let Some(process) = start.process.filter(|process| is_active && process.host != host_name()) {
        return Err(ExecutionError::OtherMachine { id, state, host: process.host });
    }
    if start.workdir != settings.workdir && (is_active || was_interrupted(version)) {
        return Err(ExecutionError::OtherWorkdir { id, workdir: start.workdir });
    }
    Ok(())
}

/// True if a program executed the contract, in contrast to an agent that works on its own.
fn is_by_program(version: &VersionHistory) -> bool {
    match version.state() {
        State::Claimed => version.transitions().next_back().is_some_and(|claim| claim.details.contains_key(PROCESS)),
        _ => ExecutionStart::last(version).is_some_and(|start| start.process.is_some()),
    }
}

fn awaits_approval(version: &VersionHistory) -> bool {
    version.open_notes().any(|note| note.kind == NoteKind::ApprovalRequested)
}
