//! `counterproof guard secrets remove`: removes a secret.

use counterproof_artifact::Exit;
use counterproof_guard::secrets::{SecretRef, SecretStore};
use serde_json::json;

use super::open_store::store_error;
use crate::command_error::CommandError;
use crate::json_text::to_json;
use crate::streams::Streams;

/// Remove a secret.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the secret
    #[arg(value_name = "NAME")]
    name: SecretRef,
}

/// Runs the command.
pub(super) fn run(
    args: &Args,
    store: &SecretStore,
    is_json: bool,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    if !store.remove(&args.name).map_err(store_error)? {
        let message = format!("no secret is named `{}` in {}", args.name, store.path());
        return Err(CommandError::usage(message).hint("`counterproof guard secrets list` lists the names"));
    }
    if is_json {
        let document = json!({"name": args.name, "change": "removed", "store": store.path()});
        streams.print_document(&to_json(&document))?;
    } else {
        streams.print_line(format_args!("removed `{}` from {}", args.name, store.path()))?;
    }
    Ok(Exit::Done)
}
