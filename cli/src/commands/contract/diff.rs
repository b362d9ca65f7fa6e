//! `counterproof contract diff`: the differences between two versions.

use std::fmt::Write as _;

use counterproof_artifact::Exit;
use counterproof_contracts::ContractKey;
use counterproof_contracts::documents::changes;
use serde_json::{Value, json};

use super::project::Project;
use super::run_reporter::Failure;
use crate::streams::Streams;
use crate::streams::to_json_line;

/// Show the differences between two versions of contracts.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// First version, such as `shop/refund/001@1`
    #[arg(value_name = "ID@V")]
    before: ContractKey,

    /// Second version
    #[arg(value_name = "ID@V")]
    after: ContractKey,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = project.open(streams)?;
    let document = |key: &ContractKey| -> Result<Value, Failure> {
        serde_json::to_value(store.contract(key)?).map_err(Failure::io)
    };
    let changes = changes(&document(&args.before)?, &document(&args.after)?);
    project.print(streams, &json!({ "changes": changes }), || {
        if changes.is_empty() {
            return "no differences".to_owned();
        }
        changes.iter().fold(String::new(), |mut text, change| {
            let _ = writeln!(text, "{}", change.pointer);
            for (sign, value) in [('-', &change.before), ('+', &change.after)] {
                if let Some(value) = value {
                    let _ = writeln!(text, "  {sign} {}", to_json_line(value));
                }
            }
            text
        })
    })?;
    Ok(Exit::Done)
}
