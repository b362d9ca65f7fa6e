//! `counterproof contract transition` and `claim`: change the state of a contract, and reserve one for an agent.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_contracts::execution::start_details;
use counterproof_contracts::store::NewTransition;
use counterproof_contracts::{Actor, ContractKey, Details, State};

use super::project::{self, Project, RUNS, agent_name, edit, existing_folder, now, protected};
use super::run_reporter::Failure;
use crate::streams::Streams;

/// Change the state of a contract.
///
/// An agent changes only contracts that it owns. A person may also cancel contracts and take over for an agent. The transitions that
/// follow from a check, such as `verifying` to `completed`, are made by `contract run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contract
    #[arg(value_name = "ID[@V]")]
    contract: ContractKey,

    /// New state
    #[arg(long, value_name = "STATE")]
    to: State,

    /// Who makes the transition: `agent:NAME` or `human:NAME`
    #[arg(long, value_name = "ACTOR")]
    actor: Actor,

    /// Why, in one sentence
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Folder in which the agent works, for `--to executing`: records what a rollback returns to
    #[arg(long, value_name = "DIR")]
    workdir: Option<Utf8PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    if args.actor == Actor::System {
        let message = "`system` is the program itself and cannot be passed";
        return Err(Failure::refused("not_allowed", message).hint("pass `agent:NAME` or `human:NAME`"));
    }
    if args.workdir.is_some() && args.to != State::Executing {
        return Err(Failure::refused("usage", "`--workdir` is only for `--to executing`"));
    }
    let store = project.open_for_changes()?;
    // The folder is read before the store is locked, so that no other process waits for it.
    let details = match &args.workdir {
        Some(workdir) => {
            let workdir = existing_folder(workdir)?;
            let protected = protected(store.path(), Utf8Path::new(RUNS));
            let contract = store.contract(&args.contract)?;
            start_details(&store, &contract, &workdir, &protected, now())?
        }
        None => Details::new(),
    };
    let request = NewTransition {
        key: args.contract.clone(),
        to: args.to,
        actor: args.actor.clone(),
        reason: args.reason.clone(),
        owner: None,
        details,
    };
    let made = edit(&store, streams)?.transition(request, now())?;
    project.print(streams, &made, || format!("{}@{}  {}", made.id, made.version, project::transition(&made)))?;
    Ok(Exit::Done)
}

/// Claim a ready contract for an agent.
#[derive(Debug, clap::Args)]
pub(crate) struct ClaimArgs {
    /// Contract
    #[arg(value_name = "ID[@V]")]
    contract: ContractKey,

    /// Name of the agent that will own the contract
    #[arg(long, value_name = "NAME", value_parser = agent_name)]
    owner: Actor,
}

/// Runs the command.
pub(super) fn run_claim(args: &ClaimArgs, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let request = NewTransition {
        key: args.contract.clone(),
        to: State::Claimed,
        actor: args.owner.clone(),
        reason: "claimed".to_owned(),
        owner: None,
        details: Details::new(),
    };
    let store = project.open_for_changes()?;
    let made = edit(&store, streams)?.transition(request, now())?;
    project.print(streams, &made, || format!("{}@{}  {}", made.id, made.version, project::transition(&made)))?;
    Ok(Exit::Done)
}
