//! `counterproof contract history`: everything that happened to a contract.

use std::fmt::Write as _;

use counterproof_artifact::Exit;
use counterproof_contracts::ContractId;
use counterproof_contracts::store::Record;
use serde_json::{Value, json};

use super::failure::Failure;
use super::project::Project;
use super::text;
use crate::streams::Streams;

/// Show all versions of a contract and everything that happened to them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contract
    #[arg(value_name = "ID")]
    id: ContractId,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
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
                    Record::Transition(it) => (text::transition(it), &it.details),
                    Record::Note(it) => (text::note(it), &it.details),
                    Record::Contract(_) => continue,
                };
                let _ = writeln!(lines, "  {line}");
                for detail in text::details(details) {
                    let _ = writeln!(lines, "    {detail}");
                }
            }
        }
        lines
    })?;
    Ok(Exit::Done)
}
