//! Continues after an execution that was killed, and checks that this one may begin.

use super::began::{ExecutionStart, PROCESS, interruption};
use super::steps::Steps;
use super::undo::resume_rollback;
use super::{ExecutionError, RunSettings};
use crate::contract::ContractKey;
use crate::lifecycle::{Details, State};
use crate::record::NoteKind;
use crate::store::{Store, VersionHistory};

/// The reason of transitions away from a step that nobody will finish.
const DIED: &str = "the process that executed the contract died";

/// Brings a contract into a state from which it can be executed, and returns it.
///
/// The caller holds the contract. So a step that another process began and did not finish was killed.
pub(super) fn recover(
    store: &Store,
    steps: &Steps<'_>,
    key: &ContractKey,
    settings: &RunSettings,
) -> Result<VersionHistory, ExecutionError> {
    loop {
        let version = store.version(key)?;
        let (state, owner) = (version.state(), version.owner());
        let is_foreign = owner.is_some_and(|owner| owner != settings.owner);
        if is_foreign && !matches!(state, State::Pending | State::Ready) && !state.is_terminal() {
            let owner = owner.unwrap_or_default().to_owned();
            return Err(ExecutionError::Foreign { id: key.id.clone(), state, owner });
        }
        let by_program = is_by_program(&version);
        match state {
            State::Completed | State::RolledBack | State::Cancelled => {
                return Err(ExecutionError::Ended { id: key.id.clone(), state });
            }
            State::Claimed if by_program => steps.by_system(State::Ready, DIED, interruption())?,
            State::Executing if by_program => steps.by_system(State::Failed, DIED, interruption())?,
            State::Verifying if by_program && !awaits_approval(&version) => {
                steps.by_system(State::Failed, DIED, interruption())?;
            }
            State::RollingBack => resume_rollback(&version, settings, steps, store)?,
            State::Failed => steps.by_owner(State::Ready, "another attempt", Details::new())?,
            State::Pending | State::Ready | State::Claimed | State::Executing | State::Verifying => {
                return Ok(version);
            }
        }
    }
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
