//! `counterproof contract list`: lists the latest versions of contracts.

use counterproof_artifact::{Exit, one_line};
use counterproof_contracts::State;
use serde_json::json;

use super::failure::Failure;
use super::project::Project;
use crate::json_text::to_json_line;
use crate::streams::Streams;

/// The longest summary in a list, in characters.
const SUMMARY_CHARS: usize = 160;

/// List the contracts with their states, in the order of their ids.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only contracts in this state
    #[arg(long, value_name = "STATE")]
    state: Option<State>,

    /// Only contracts of this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = project.open(streams)?;
    let mut listed = 0_u64;
    let mut printed = Ok(());
    if project.is_json {
        streams.print_document("{\"contracts\": [\n")?;
    }
    // Printed one by one: a store may have millions of contracts.
    store.for_each_latest(args.state, |status, contract| {
        if args.project.as_ref().is_some_and(|project| project != contract.project()) || printed.is_err() {
            return Ok(());
        }
        listed += 1;
        printed = if project.is_json {
            let row = json!({
                "id": status.id, "version": status.version, "state": status.state, "since": status.since,
                "owner": status.owner, "awaits_approval": status.awaits_approval, "project": contract.project(),
                "summary": contract.summary(),
            });
            streams.print_document(&format!("{}{}", if listed > 1 { ",\n" } else { "" }, to_json_line(&row)))
        } else {
            let owner = status.owner.as_deref().map_or_else(String::new, |owner| format!("  [{owner}]"));
            let waits = if status.awaits_approval { "  (needs approval)" } else { "" };
            let (state, id, version) = (status.state.as_str(), &status.id, status.version);
            streams.print_line(format_args!(
                "{state:<12} {id}@{version}{owner}{waits}  {}",
                one_line(contract.summary(), SUMMARY_CHARS)
            ))
        };
        Ok(())
    })?;
    printed?;
    if project.is_json {
        streams.print_document("\n]}\n")?;
    } else if listed == 0 {
        streams.print_line("no contracts")?;
    }
    Ok(Exit::Done)
}
