//! `counterproof guard secrets list`: lists the names of secrets.

use counterproof_artifact::{Exit, one_line};
use counterproof_guard::secrets::SecretStore;
use serde_json::json;

use super::open_store::store_error;
use crate::command_error::CommandError;
use crate::json_text::to_json;
use crate::streams::Streams;

/// Longest text in a column, in characters.
const CHARS: usize = 60;

/// List the names of the secrets, with their origins and dates. Values are not printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(super) fn run(
    _args: &Args,
    store: &SecretStore,
    is_json: bool,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let secrets = store.list().map_err(store_error)?;
    if is_json {
        streams.print_document(&to_json(&json!({"store": store.path(), "secrets": secrets})))?;
        return Ok(Exit::Done);
    }
    if secrets.is_empty() {
        streams.print_line(format_args!("no secrets in {}", store.path()))?;
    }
    let column = |text: Option<&str>| one_line(text.unwrap_or("-"), CHARS);
    for secret in &secrets {
        let (source, updated_at) = (column(secret.source.as_deref()), column(secret.updated_at.as_deref()));
        streams.print_line(format_args!("{:<32}  {source:<24}  {updated_at}", column(Some(&secret.name))))?;
    }
    Ok(Exit::Done)
}
