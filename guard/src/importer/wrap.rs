//! Wraps the servers of a configuration into the guard, and unwraps them.
//!
//! `command` becomes the guard, and the command of the server becomes one of its arguments, after `--`. Everything else of an entry
//! stays.

use serde::Serialize;

use super::Client;
use super::config_tree::{Language, Node, NodeValue, SyntaxError};
use super::servers::{Program, ServerKind, servers};
use super::text_edits::TextEdits;
use super::{json_tree, toml_tree};
use crate::agent_run;

/// The command of the shim, before its options.
const SUBCOMMAND: [&str; 2] = ["guard", "shim"];

/// The option with the name of the server. One argument with its value: a name may start with `-`.
const SERVER_NAME: &str = "--server-name=";

/// The end of the options of the shim.
const END_OF_OPTIONS: &str = "--";

/// The command by which a client starts the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShimCommand {
    /// The program.
    pub program: String,
    /// Options of the shim for every server, such as `--policy` and its value.
    pub options: Vec<String>,
}

/// What happened to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerChange {
    /// The name of the server.
    pub name: String,
    /// The project that the server belongs to, in a file with several projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What happened.
    pub status: ServerStatus,
    /// Why nothing happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What happened to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    /// It starts through the guard now.
    Wrapped,
    /// It starts without the guard again.
    Unwrapped,
    /// It stayed as it was.
    Skipped,
}

/// A changed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Changed {
    /// The new text; `None` if nothing changes.
    pub(super) text: Option<String>,
    pub(super) servers: Vec<ServerChange>,
    /// Whether the old text has servers that start through the guard.
    pub(super) had_wrapped: bool,
}

pub(super) fn parse(text: &str, language: Language) -> Result<Node, SyntaxError> {
    let root = match language {
        Language::Json => json_tree::parse(text)?,
        Language::Toml => toml_tree::parse(text)?,
    };
    if matches!(root.value, NodeValue::Object(_)) {
        return Ok(root);
    }
    Err(SyntaxError { message: "the configuration is not an object".to_owned(), span: root.span })
}

/// Wraps every server that is a program.
pub(super) fn wrap(client: Client, text: &str, language: Language, shim: &ShimCommand) -> Result<Changed, SyntaxError> {
    change(client, text, language, |edits, name, program| match is_wrapped(program) {
        Wrapping::Ours(_) => Err("it starts through the guard already"),
        Wrapping::Foreign => Err("it starts through another shim"),
        Wrapping::None if wrap_program(edits, client, name, program, shim) => Ok(ServerStatus::Wrapped),
        Wrapping::None => Err("`args` cannot be inserted; write its table without dotted keys"),
    })
}

/// Unwraps every server that starts through the guard.
pub(super) fn unwrap(client: Client, text: &str, language: Language) -> Result<Changed, SyntaxError> {
    change(client, text, language, |edits, _, program| match is_wrapped(program) {
        Wrapping::Ours(command) => {
            unwrap_program(edits, program, command);
            Ok(ServerStatus::Unwrapped)
        }
        Wrapping::Foreign | Wrapping::None => Err("it does not start through the guard"),
    })
}

fn change(
    client: Client,
    text: &str,
    language: Language,
    mut edit: impl FnMut(&mut TextEdits<'_>, &str, &Program<'_>) -> Result<ServerStatus, &'static str>,
) -> Result<Changed, SyntaxError> {
    let root = parse(text, language)?;
    let mut edits = TextEdits::new(text, language);
    let mut changes = Vec::new();
    let mut had_wrapped = false;
    for server in root.as_object().map(|root| servers(client, root)).unwrap_or_default() {
        let edited = match &server.kind {
            ServerKind::Program(program) => {
                had_wrapped |= matches!(is_wrapped(program), Wrapping::Ours(_));
                edit(&mut edits, server.name, program)
            }
            ServerKind::Remote => Err("it is reached over the network; `guard proxy` guards such servers"),
            ServerKind::Invalid(reason) => Err(*reason),
        };
        let (status, reason) = match edited {
            Ok(status) => (status, None),
            Err(reason) => (ServerStatus::Skipped, Some(reason.to_owned())),
        };
        let (name, project) = (server.name.to_owned(), server.project.map(str::to_owned));
        changes.push(ServerChange { name, project, status, reason });
    }
    let text = (!edits.is_empty()).then(|| edits.apply());
    Ok(Changed { text, servers: changes, had_wrapped })
}

/// How a server starts.
enum Wrapping {
    /// Through the guard; the index of its own command in the arguments.
    Ours(usize),
    /// Through the shim of another program with the same arguments.
    Foreign,
    /// Directly.
    None,
}

fn is_wrapped(program: &Program<'_>) -> Wrapping {
    let args: Vec<&str> = program.args.into_iter().flat_map(|(_, items)| items).filter_map(Node::as_text).collect();
    let Some(end) = args.iter().position(|arg| *arg == END_OF_OPTIONS) else { return Wrapping::None };
    let (options, command) = (&args[..end], args.get(end + 1));
    if command.is_none() || !options.iter().any(|option| option.starts_with("--server-name")) {
        return Wrapping::None;
    }
    if options.starts_with(&SUBCOMMAND) { Wrapping::Ours(end + 1) } else { Wrapping::Foreign }
}

fn wrap_program(
    edits: &mut TextEdits<'_>,
    client: Client,
    name: &str,
    program: &Program<'_>,
    shim: &ShimCommand,
) -> bool {
    let mut values: Vec<String> = SUBCOMMAND.iter().map(|word| edits.quote(word)).collect();
    values.push(edits.quote(&format!("{SERVER_NAME}{name}")));
    values.extend(shim.options.iter().map(|option| edits.quote(option)));
    values.push(edits.quote(END_OF_OPTIONS));
    // The command is moved as it is written: a client may replace variables in it.
    values.push(edits.source(&program.command.value).to_owned());
    let layout = program.entry.layout;
    match program.args {
        Some((list, items)) => edits.insert_at_start(list, items, &values),
        None => {
            if !edits.insert_after(layout, program.command, "args", &format!("[{}]", values.join(", "))) {
                return false;
            }
        }
    }
    edits.replace(program.command.value.span.clone(), edits.quote(&shim.program));
    if client == Client::Codex {
        pass_variables(edits, program);
    }
    true
}

/// Names the variables of a run in the entry. Codex passes no other variables to a server than those that it names.
fn pass_variables(edits: &mut TextEdits<'_>, program: &Program<'_>) {
    let list = program.entry.get("env_vars");
    let named = list.and_then(Node::as_list).unwrap_or_default();
    let is_missing = |name: &&str| !named.iter().any(|it| it.as_text() == Some(name));
    let missing: Vec<String> =
        agent_run::VARIABLES.into_iter().filter(is_missing).map(|name| edits.quote(name)).collect();
    match list {
        Some(list) if list.as_list().is_some() && !missing.is_empty() => edits.insert_at_start(list, named, &missing),
        Some(_) => {}
        None => {
            let layout = program.entry.layout;
            edits.insert_after(layout, program.command, "env_vars", &format!("[{}]", missing.join(", ")));
        }
    }
}

fn unwrap_program(edits: &mut TextEdits<'_>, program: &Program<'_>, command: usize) {
    let Some((_, items)) = program.args else { return };
    let source = edits.source(&items[command]);
    edits.replace(program.command.value.span.clone(), source);
    edits.remove_from_start(items, command + 1);
    let variables = program.entry.get("env_vars").and_then(Node::as_list).unwrap_or_default();
    let is_ours = |node: &&Node| node.as_text().is_some_and(|name| agent_run::VARIABLES.contains(&name));
    edits.remove_from_start(variables, variables.iter().take_while(is_ours).count());
}
