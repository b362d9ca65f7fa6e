//! `counterproof guard secrets add`: stores a secret.

use std::io::{self, IsTerminal as _, Read as _};

use counterproof_artifact::Exit;
use counterproof_guard::secrets::{SecretRef, SecretStore, SecretValue};
use jiff::Timestamp;
use serde_json::json;

use super::open_store::store_error;
use crate::command_error::CommandError;
use crate::json_text::to_json;
use crate::streams::Streams;

/// Largest value in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Store a secret, or replace its value.
///
/// The value is read from standard input, without the line end after it, or from an environment variable. It cannot be an argument:
/// other users can see the arguments of a process.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the secret, as bindings refer to it
    #[arg(value_name = "NAME")]
    name: SecretRef,

    /// Read the value from this environment variable
    #[arg(long, value_name = "VARIABLE")]
    from_env: Option<String>,
}

/// Runs the command.
pub(super) fn run(
    args: &Args,
    store: &SecretStore,
    is_json: bool,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let (value, source) = match &args.from_env {
        Some(variable) => (from_variable(variable)?, format!("env:{variable}")),
        None => (from_stdin(&args.name)?, "stdin".to_owned()),
    };
    value.check_redactable().map_err(|error| CommandError::usage(format!("cannot store `{}`: {error}", args.name)))?;
    let is_replaced = store.add(&args.name, &value, &source, Timestamp::now()).map_err(store_error)?;
    let change = if is_replaced { "replaced" } else { "added" };
    if is_json {
        let document = json!({"name": args.name, "change": change, "store": store.path()});
        streams.print_document(&to_json(&document))?;
    } else {
        streams.print_line(format_args!("{change} `{}` in {}", args.name, store.path()))?;
    }
    Ok(Exit::Done)
}

fn from_variable(variable: &str) -> Result<SecretValue, CommandError> {
    let value = std::env::var_os(variable).ok_or_else(|| {
        CommandError::usage(format!("environment variable `{variable}` is not set"))
            .hint(format!("set `{variable}`, or pass the value on standard input"))
    })?;
    checked(value.into_encoded_bytes(), &format!("environment variable `{variable}`"))
}

fn from_stdin(name: &SecretRef) -> Result<SecretValue, CommandError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        // The terminal would show what is typed.
        return Err(CommandError::usage("the value of a secret is not read from a terminal").hint(format!(
            "run `read -rs VALUE && printf %s \"$VALUE\" | counterproof guard secrets add {}`",
            crate::shell::quoted(name.as_str())
        )));
    }
    let mut bytes = Vec::new();
    let read = stdin.lock().take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| CommandError::io(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CommandError::usage(format!("the value has more than {MAX_BYTES} bytes")));
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    checked(bytes, "standard input")
}

fn checked(bytes: Vec<u8>, origin: &str) -> Result<SecretValue, CommandError> {
    SecretValue::from_bytes(bytes).map_err(|error| CommandError::usage(format!("invalid secret in {origin}: {error}")))
}
