//! `counterproof guard secrets`: manages the file of secrets.

use std::io::{self, IsTerminal as _, Read as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, one_line};
use counterproof_guard::identity::process_variable;
use counterproof_guard::secrets::{SecretRef, SecretStore, SecretStoreError, SecretValue};
use jiff::Timestamp;
use serde_json::json;

use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::streams::to_json;

pub(super) use run_secrets as run;

/// Manage the file of secrets for servers.
///
/// Only its owner can read the file. No command prints a value. Bindings with `"source": "file"` refer to its secrets by name.
///
/// Exit code 0: done. 2: invalid arguments or values, or a file that other users can access. 3: the file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    /// File of secrets [default: `SUB_SECRETS_PATH`, or counterproof/secrets.json in the folder of configurations]
    #[arg(long, global = true, value_name = "FILE")]
    store: Option<Utf8PathBuf>,

    /// Print the result as one JSON document
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(AddArgs),
    List(ListArgs),
    Remove(RemoveArgs),
}

pub(crate) fn run_secrets(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let store = open(args.store.as_deref())?;
    match &args.command {
        Command::Add(command) => add(command, &store, args.json, streams),
        Command::List(command) => list(command, &store, args.json, streams),
        Command::Remove(command) => remove(command, &store, args.json, streams),
    }
}

const MAX_BYTES: u64 = 1 << 20;

/// Store a secret, or replace its value.
///
/// The value is read from standard input, without the line end after it, or from an environment variable. It cannot be an argument:
/// other users can see the arguments of a process.
#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// Name of the secret, as bindings refer to it
    #[arg(value_name = "NAME")]
    name: SecretRef,

    /// Read the value from this environment variable
    #[arg(long, value_name = "VARIABLE")]
    from_env: Option<String>,
}

fn add(args: &AddArgs, store: &SecretStore, is_json: bool, streams: &mut Streams) -> Result<Exit, CommandError> {
    let (value, source) = match &args.from_env {
        Some(variable) => (from_variable(variable)?, format!("env:{variable}")),
        None => (from_stdin(&args.name)?, "stdin".to_owned()),
    };
    // Before it is stored: a value that cannot be masked would be in every recording.
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
    // As bytes, so that invalid UTF-8 has the same message from both sources.
    checked(value.into_encoded_bytes(), &format!("environment variable `{variable}`"))
}

fn from_stdin(name: &SecretRef) -> Result<SecretValue, CommandError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        // The terminal would show what is typed.
        return Err(CommandError::usage("the value of a secret is not read from a terminal").hint(format!(
            "run `read -rs VALUE && printf %s \"$VALUE\" | counterproof guard secrets add {}`",
            crate::resume_command::quoted(name.as_str())
        )));
    }
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the value is longer, without reading all of it.
    let read = stdin.lock().take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| CommandError::io(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CommandError::usage(format!("the value has more than {MAX_BYTES} bytes")));
    }
    // One line end belongs to `echo` or to the editor. More of them belong to the value.
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

const CHARS: usize = 60;

/// List the names of the secrets, with their origins and dates. Values are not printed.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {}

fn list(_args: &ListArgs, store: &SecretStore, is_json: bool, streams: &mut Streams) -> Result<Exit, CommandError> {
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

/// Remove a secret.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Name of the secret
    #[arg(value_name = "NAME")]
    name: SecretRef,
}

fn remove(args: &RemoveArgs, store: &SecretStore, is_json: bool, streams: &mut Streams) -> Result<Exit, CommandError> {
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

fn open(path: Option<&Utf8Path>) -> Result<SecretStore, CommandError> {
    if let Some(path) = path {
        return Ok(SecretStore::new(path));
    }
    SecretStore::from_environment(process_variable).ok_or_else(|| {
        CommandError::usage("cannot find the file of secrets: the home folder is unknown").hint("pass `--store FILE`")
    })
}

fn store_error(error: SecretStoreError) -> CommandError {
    let hint = error.hint();
    let error = if error.is_io() { CommandError::io(error) } else { CommandError::usage(error) };
    hint.into_iter().fold(error, CommandError::hint)
}
