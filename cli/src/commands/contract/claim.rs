//! `counterproof contract claim`: takes a ready contract.

use counterproof_artifact::Exit;
use counterproof_contracts::store::NewTransition;
use counterproof_contracts::{Actor, ContractKey, Details, State};

use super::failure::Failure;
use super::project::{Project, agent_name, edit, now};
use super::text;
use crate::streams::Streams;

/// Claim a ready contract for an agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contract
    #[arg(value_name = "ID[@V]")]
    contract: ContractKey,

    /// Name of the agent that will own the contract
    #[arg(long, value_name = "NAME", value_parser = agent_name)]
    owner: Actor,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
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
    project.print(streams, &made, || format!("{}@{}  {}", made.id, made.version, text::transition(&made)))?;
    Ok(Exit::Done)
}
