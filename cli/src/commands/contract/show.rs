//! `counterproof contract show` and `history`: one version of a contract with its state, and all of its transitions.

use std::fmt::Write as _;

use counterproof_artifact::Exit;
use counterproof_contracts::store::Record;
use counterproof_contracts::{ContractId, ContractKey, State, StateChange};
use serde_json::{Value, json};

use super::project::{self, Project};
use super::run_reporter::Failure;
use crate::streams::Streams;
use crate::streams::to_json;

/// Show a contract: its state, what it waits for, and the document.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contract, or one version of it: `shop/refund/001`, `shop/refund/001@2`
    #[arg(value_name = "ID[@V]")]
    contract: ContractKey,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = project.open(streams)?;
    let version = store.version(&args.contract)?;
    let status = store.status(&args.contract.id)?;
    // A status is about the latest version, and the argument can name an older one.
    let latest = status.as_ref().filter(|status| status.version == version.contract.version);
    let open = latest.map_or(Ok(Vec::new()), |status| store.open_dependencies(status))?;
    let next: Vec<State> = latest.map_or_else(Vec::new, |status| StateChange::targets(status.state).collect());
    let last = version.transitions().next_back();
    let document = json!({
        "contract": version.contract, "state": version.state(), "latest": latest.is_some(), "owner": version.owner(),
        "awaits_approval": latest.is_some_and(|status| status.awaits_approval),
        "open_dependencies": open.iter().map(|(id, state)| json!({"id": id, "state": state})).collect::<Vec<Value>>(),
        "next": next, "last_transition": last,
    });
    project.print(streams, &document, || {
        let contract = &version.contract;
        let mut text = format!("{}@{}  {}\n{}\n", contract.id, contract.version, version.state(), contract.summary());
        if let (None, Some(status)) = (latest, &status) {
            let _ = writeln!(text, "superseded by version {}", status.version);
        }
        if let Some(owner) = version.owner() {
            let _ = writeln!(text, "owner: {owner}");
        }
        if latest.is_some_and(|status| status.awaits_approval) {
            let _ = writeln!(text, "needs approval: counterproof contract approve {} --reason …", contract.id);
        }
        for (id, state) in &open {
            let _ = writeln!(text, "waits for: {id} ({state})");
        }
        if let Some(last) = last {
            let _ = writeln!(text, "last: {}", project::transition(last));
        }
        if !next.is_empty() {
            let next: Vec<&str> = next.iter().map(|state| state.as_str()).collect();
            let _ = writeln!(text, "possible next states: {}", next.join(", "));
        }
        text + "\n" + &to_json(contract)
    })?;
    Ok(Exit::Done)
}

/// Show all versions of a contract and everything that happened to them.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Contract
    #[arg(value_name = "ID")]
    id: ContractId,
}

/// Runs the command.
pub(super) fn run_history(args: &HistoryArgs, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let history = project.open(streams)?.history(&args.id)?;
    let event = |record: &Record| match record {
        Record::Transition(it) => json!({ "transition": it }),
        Record::Note(it) => json!({ "note": it }),
        Record::Contract(_) => Value::Null,
    };
    let versions = history.versions.iter().map(|version| {
        json!({
            "version": version.contract.version, "created_at": version.contract.created_at, "state": version.state(),
            "events": version.records.iter().map(event).collect::<Vec<_>>(),
        })
    });
    let document = json!({ "id": args.id, "versions": versions.collect::<Vec<_>>() });
    project.print(streams, &document, || {
        let mut lines = format!("{}\n", args.id);
        for version in &history.versions {
            let (number, state) = (version.contract.version, version.state());
            let _ = writeln!(lines, "version {number}, created {}: {state}", version.contract.created_at);
            for record in &version.records {
                let (line, details) = match record {
                    Record::Transition(it) => (project::transition(it), &it.details),
                    Record::Note(it) => (project::note(it), &it.details),
                    // The contract is the version itself and not something that happened to it.
                    Record::Contract(_) => continue,
                };
                let _ = writeln!(lines, "  {line}");
                for detail in project::details(details) {
                    let _ = writeln!(lines, "    {detail}");
                }
            }
        }
        lines
    })?;
    Ok(Exit::Done)
}
