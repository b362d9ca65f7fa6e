//! `counterproof contract approve` and `reject`: the decision of a person.

use counterproof_artifact::Exit;
use counterproof_contracts::store::NewTransition;
use counterproof_contracts::{Actor, ContractKey, Details, State, StoreError};

use super::project;
use super::project::{Project, edit, now, person};
use super::run_reporter::Failure;
use crate::streams::Streams;

/// Record the decision of a person about a contract.
///
/// `approve` completes a contract whose check passed and that requires an approval, and makes a failed contract ready for another
/// attempt. `reject` fails the first and cancels the second, and cancels every other contract that has not ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contract
    #[arg(value_name = "ID[@V]")]
    contract: ContractKey,

    /// Why, in one sentence
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// The person, as `human:NAME`; without it, the user of this process
    #[arg(long, value_name = "ACTOR")]
    actor: Option<Actor>,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Approve,
    Reject,
}

/// Runs the command.
pub(super) fn run(args: &Args, decision: Decision, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let actor = person(args.actor.as_ref())?;
    if !matches!(actor, Actor::Human(_)) {
        return Err(Failure::refused("not_allowed", format!("`{actor}` is not a person")).hint("pass `human:NAME`"));
    }
    let store = project.open_for_changes()?;
    // Locked before the state is read, since another process could change it in between.
    let mut editor = edit(&store, streams)?;
    let not_found = || StoreError::NotFound(args.contract.clone());
    let state = store.status(&args.contract.id)?.ok_or_else(not_found)?.state;
    let to = match (decision, state) {
        (Decision::Approve, State::Verifying) => State::Completed,
        (Decision::Approve, State::Failed) => State::Ready,
        (Decision::Reject, State::Verifying) => State::Failed,
        (Decision::Reject, _) => State::Cancelled,
        (Decision::Approve, other) => {
            let message = format!("`{}` is {other}, so there is nothing to approve", args.contract.id);
            let hint = "a person approves a contract that waits for an approval, or another attempt of a failed one";
            return Err(Failure::refused("invalid_transition", message).hint(hint));
        }
    };
    let request = NewTransition {
        key: args.contract.clone(),
        to,
        actor,
        reason: args.reason.clone(),
        owner: None,
        details: Details::new(),
    };
    let made = editor.transition(request, now())?;
    project.print(streams, &made, || format!("{}@{}  {}", made.id, made.version, project::transition(&made)))?;
    Ok(Exit::Done)
}
