//! Wraps the servers of a configuration into the guard, and unwraps them.
//!
//! `command` becomes the guard, and the command of the server becomes one of its arguments, after `--`. Everything else of an entry
//! stays. A server that starts through the guard already gets the options that the import states and that it lacks.

use serde::{Deserialize, Serialize};

use super::Client;
use super::config_tree::{self, Language, Node, NodeValue, Object, Property, SyntaxError, TextEdits};
use crate::agent_run;

const SUBCOMMAND: [&str; 2] = ["guard", "shim"];

/// The option with the name of the server. One argument with its value: a name may start with `-`.
const SERVER_NAME: &str = "--server-name=";

const CLIENT: &str = "--client=";

/// The names of the variables that Codex passes to a server.
const VARIABLE_NAMES: &str = "env_vars";

const END_OF_OPTIONS: &str = "--";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShimCommand {
    pub program: String,
    /// Options of the shim for every server, such as `--policy` and its value.
    pub options: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerChange {
    pub name: String,
    /// The project that the server belongs to, in a file with several projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub status: ServerStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    Wrapped,
    /// It started through the guard already, with other options.
    Updated,
    Unwrapped,
    Skipped,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigChange {
    pub(super) text: Option<String>,
    pub(super) servers: Vec<ServerChange>,
    pub(super) other_client: Option<Client>,
    pub(super) had_wrapped: bool,
    pub(super) added: Vec<AddedVariables>,
}

/// The variables that an import added to the entry of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AddedVariables {
    pub(super) server: String,
    pub(super) names: Vec<String>,
    pub(super) is_new_list: bool,
}

pub(super) fn parse(text: &str, language: Language) -> Result<Node, SyntaxError> {
    let root = match language {
        Language::Json => config_tree::parse_json(text)?,
        Language::Toml => config_tree::parse_toml(text)?,
    };
    if matches!(root.value, NodeValue::Object(_)) {
        return Ok(root);
    }
    Err(SyntaxError { message: "the configuration is not an object".to_owned(), span: root.span })
}

pub(super) fn wrap(
    client: Client,
    text: &str,
    language: Language,
    shim: &ShimCommand,
) -> Result<ConfigChange, SyntaxError> {
    let mut added = Vec::new();
    let changed = change(client, text, language, |edits, name, program| match is_wrapped(program) {
        Wrapping::Ours(command) => {
            let options = update_options(edits, program, command, shim);
            if options.is_empty() {
                return Err("it starts through the guard already");
            }
            Ok((ServerStatus::Updated, Some(format!("new value of {}", options.join(", ")))))
        }
        Wrapping::Foreign => Err("it starts through another shim"),
        Wrapping::None if wrap_program(edits, program, &arguments(client, name, shim), &shim.program) => {
            if client == Client::Codex {
                added.extend(pass_variables(edits, name, program));
            }
            Ok((ServerStatus::Wrapped, None))
        }
        Wrapping::None => Err("there is no place for `args`; write its table without dotted keys"),
    })?;
    Ok(ConfigChange { added, ..changed })
}

/// Unwraps every server that starts through the guard, and removes the variables that the import added.
pub(super) fn unwrap(
    client: Client,
    text: &str,
    language: Language,
    added: &[AddedVariables],
) -> Result<ConfigChange, SyntaxError> {
    change(client, text, language, |edits, name, program| match is_wrapped(program) {
        Wrapping::Ours(command) => {
            unwrap_program(edits, program, command);
            if let Some(added) = added.iter().find(|added| added.server == name) {
                remove_variables(edits, program, added);
            }
            Ok((ServerStatus::Unwrapped, None))
        }
        Wrapping::Foreign | Wrapping::None => Err("it does not start through the guard"),
    })
}

fn change(
    client: Client,
    text: &str,
    language: Language,
    mut edit: impl FnMut(&mut TextEdits<'_>, &str, &Program<'_>) -> Result<(ServerStatus, Option<String>), &'static str>,
) -> Result<ConfigChange, SyntaxError> {
    let root = parse(text, language)?;
    let mut edits = TextEdits::new(text, language);
    let mut changes = Vec::new();
    let mut had_wrapped = false;
    // All or nothing: a configuration of which a part cannot be read is not edited.
    let found = root.as_object().map(|root| servers(client, root)).transpose()?;
    for server in found.unwrap_or_default() {
        let edited = match &server.kind {
            ServerKind::Program(program) => {
                had_wrapped |= matches!(is_wrapped(program), Wrapping::Ours(_));
                edit(&mut edits, server.name, program)
            }
            ServerKind::Remote => Err("it is reached over the network; `guard proxy` guards such servers"),
            ServerKind::Invalid(reason) => Err(*reason),
        };
        let (status, reason) = edited.unwrap_or_else(|reason| (ServerStatus::Skipped, Some(reason.to_owned())));
        let (name, project) = (server.name.to_owned(), server.project.map(str::to_owned));
        changes.push(ServerChange { name, project, status, reason });
    }
    let text = (!edits.is_empty()).then(|| edits.apply());
    let other_client = root.as_object().filter(|_| changes.is_empty()).and_then(|root| other_client(client, root));
    Ok(ConfigChange { text, servers: changes, other_client, had_wrapped, added: Vec::new() })
}

enum Wrapping {
    /// Through the guard; the index of its own command in the arguments.
    Ours(usize),
    /// Through the shim of another program with the same arguments.
    Foreign,
    None,
}

fn is_wrapped(program: &Program<'_>) -> Wrapping {
    let args: Vec<&str> = program.args.into_iter().flat_map(|(_, items)| items).filter_map(Node::as_text).collect();
    let Some(end) = args.iter().position(|arg| *arg == END_OF_OPTIONS) else { return Wrapping::None };
    let (options, command) = (&args[..end], args.get(end + 1));
    if command.is_none() || !options.iter().any(|option| option.starts_with("--server-name")) {
        return Wrapping::None;
    }
    // By its arguments and not by its path, which differs after an update.
    if options.starts_with(&SUBCOMMAND) {
        Wrapping::Ours(end + 1)
    } else if program.command.value.as_text().is_some_and(is_shim) {
        Wrapping::Foreign
    } else {
        Wrapping::None
    }
}

/// True for the name of a program that is a shim. Other programs can have an option `--server-name` as well.
fn is_shim(command: &str) -> bool {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    ["shim", "sub", "subluminal"].into_iter().any(|word| stem.split(['-', '_']).any(|part| part == word))
}

/// Gives a shim the options of the import. Returns the names of those that it lacked, or that had another value.
fn update_options(edits: &mut TextEdits<'_>, program: &Program<'_>, command: usize, shim: &ShimCommand) -> Vec<String> {
    // Other options, which the user may have added, stay.
    let Some((_, items)) = program.args else { return Vec::new() };
    let end = command - 1;
    let mut updated = Vec::new();
    let mut missing = Vec::new();
    for option in shim.options.chunks_exact(2) {
        let (name, value) = (&option[0], &option[1]);
        match find_option(&items[SUBCOMMAND.len()..end], name) {
            OptionMatch::Value(node) if node.as_text() == Some(value) => continue,
            OptionMatch::Value(node) => edits.replace(node.span.clone(), edits.quote(value)),
            OptionMatch::Joined(_, old) if old == value => continue,
            OptionMatch::Joined(node, _) | OptionMatch::WithoutValue(node) => {
                edits.replace(node.span.clone(), edits.quote(&format!("{name}={value}")));
            }
            OptionMatch::Nowhere => missing.extend([edits.quote(name), edits.quote(value)]),
        }
        updated.push(format!("`{name}`"));
    }
    if !missing.is_empty() {
        edits.insert_before(items, end, &missing);
    }
    updated
}

enum OptionMatch<'a> {
    Value(&'a Node),
    /// One argument with its value: `--name=value`.
    Joined(&'a Node, &'a str),
    /// Another option, or nothing, comes after it, so that the shim would not start.
    WithoutValue(&'a Node),
    Nowhere,
}

fn find_option<'a>(arguments: &'a [Node], name: &str) -> OptionMatch<'a> {
    // The shim takes no value that starts with `-` from the next argument.
    let is_value = |node: &&Node| node.as_text().is_some_and(|text| text == "-" || !text.starts_with('-'));
    let found = arguments.iter().enumerate().find_map(|(index, node)| {
        let rest = node.as_text()?.strip_prefix(name)?;
        if let Some(value) = rest.strip_prefix('=') {
            return Some(OptionMatch::Joined(node, value));
        }
        let value = arguments.get(index + 1).filter(is_value);
        rest.is_empty().then(|| value.map_or(OptionMatch::WithoutValue(node), OptionMatch::Value))
    });
    found.unwrap_or(OptionMatch::Nowhere)
}

fn arguments(client: Client, server_name: &str, shim: &ShimCommand) -> Vec<String> {
    let mut arguments: Vec<String> = SUBCOMMAND.map(str::to_owned).into();
    arguments.push(format!("{SERVER_NAME}{server_name}"));
    arguments.push(format!("{CLIENT}{}", client.agent_client().name()));
    arguments.extend(shim.options.iter().cloned());
    arguments.push(END_OF_OPTIONS.to_owned());
    arguments
}

fn wrap_program(edits: &mut TextEdits<'_>, program: &Program<'_>, arguments: &[String], shim: &str) -> bool {
    let mut values: Vec<String> = arguments.iter().map(|argument| edits.quote(argument)).collect();
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
    edits.replace(program.command.value.span.clone(), edits.quote(shim));
    true
}

/// Names the variables of a run in the entry, and returns what was added. Codex passes no other variables to a server than those that
/// it names.
fn pass_variables(edits: &mut TextEdits<'_>, server: &str, program: &Program<'_>) -> Option<AddedVariables> {
    let list = program.entry.get(VARIABLE_NAMES);
    let named = list.and_then(Node::as_list).unwrap_or_default();
    let is_missing = |name: &&str| !named.iter().any(|it| it.as_text() == Some(name));
    let missing: Vec<&str> = agent_run::VARIABLES.into_iter().filter(is_missing).collect();
    let quoted: Vec<String> = missing.iter().map(|name| edits.quote(name)).collect();
    match list {
        Some(list) if list.as_list().is_some() && !missing.is_empty() => edits.insert_at_start(list, named, &quoted),
        Some(_) => return None,
        None => {
            let (layout, value) = (program.entry.layout, format!("[{}]", quoted.join(", ")));
            if !edits.insert_after(layout, program.command, VARIABLE_NAMES, &value) {
                return None;
            }
        }
    }
    let added = missing.into_iter().map(str::to_owned).collect();
    Some(AddedVariables { server: server.to_owned(), names: added, is_new_list: list.is_none() })
}

fn remove_variables(edits: &mut TextEdits<'_>, program: &Program<'_>, added: &AddedVariables) {
    let listed = program.entry.get(VARIABLE_NAMES).and_then(Node::as_list).unwrap_or_default();
    let is_added = |node: &&Node| node.as_text().is_some_and(|name| added.names.iter().any(|added| added == name));
    // Only the first ones, where the import has put them. The user may have listed the same ones further down.
    let count = listed.iter().take_while(is_added).count();
    if added.is_new_list && count == listed.len() && edits.remove_property(program.entry, VARIABLE_NAMES) {
        return;
    }
    edits.remove_from_start(listed, count);
}

fn unwrap_program(edits: &mut TextEdits<'_>, program: &Program<'_>, command: usize) {
    let Some((_, items)) = program.args else { return };
    let source = edits.source(&items[command]);
    edits.replace(program.command.value.span.clone(), source);
    edits.remove_from_start(items, command + 1);
}

#[derive(Debug, Clone)]
pub(super) struct Server<'a> {
    pub(super) name: &'a str,
    /// The project that the server belongs to, in a file with several projects.
    pub(super) project: Option<&'a str>,
    pub(super) entry: &'a Property,
    pub(super) kind: ServerKind<'a>,
}

#[derive(Debug, Clone)]
pub(super) enum ServerKind<'a> {
    Program(Program<'a>),
    Remote,
    /// An entry that the client cannot start either, and why.
    Invalid(&'static str),
}

#[derive(Debug, Clone)]
pub(super) struct Program<'a> {
    pub(super) entry: &'a Object,
    pub(super) command: &'a Property,
    /// The list of arguments, if there is one, with its items, which are texts.
    pub(super) args: Option<(&'a Node, &'a [Node])>,
}

/// The keys of maps of servers at the top of a configuration.
const TOP_KEYS: [&str; 2] = ["mcpServers", "mcp_servers"];

/// Finds all servers, in the order of the text. Fails if a map of servers is not an object.
pub(super) fn servers(client: Client, root: &Object) -> Result<Vec<Server<'_>>, SyntaxError> {
    let mut found = Vec::new();
    for key in TOP_KEYS {
        add_all(root.property(key), None, &mut found)?;
    }
    if client == Client::VsCode {
        add_all(root.property("servers"), None, &mut found)?;
        // The settings of older versions.
        add_all(root.get("mcp").and_then(Node::as_object).and_then(|mcp| mcp.property("servers")), None, &mut found)?;
    }
    if client == Client::ClaudeCode {
        let projects = root.get("projects").and_then(Node::as_object);
        for project in projects.into_iter().flat_map(|projects| &projects.properties) {
            let map = project.value.as_object().and_then(|fields| fields.property("mcpServers"));
            add_all(map, Some(&project.name), &mut found)?;
        }
    }
    Ok(found)
}

/// Returns a client that reads the servers of a configuration in which another client finds none.
pub(super) fn other_client(client: Client, root: &Object) -> Option<Client> {
    // The other clients read the same keys as the first of these.
    let mut others = [Client::VsCode, Client::ClaudeCode].into_iter().filter(|other| *other != client);
    others.find(|other| servers(*other, root).is_ok_and(|found| !found.is_empty()))
}

fn add_all<'a>(
    map: Option<&'a Property>,
    project: Option<&'a str>,
    found: &mut Vec<Server<'a>>,
) -> Result<(), SyntaxError> {
    let Some(property) = map else { return Ok(()) };
    let Some(map) = property.value.as_object() else {
        let message = format!("`{}` is not an object: it has to map names to servers", property.name);
        return Err(SyntaxError { message, span: property.name_span.clone() });
    };
    found.extend(map.properties.iter().map(|entry| Server {
        name: &entry.name,
        project,
        entry,
        kind: kind(&entry.value),
    }));
    Ok(())
}

fn kind(entry: &Node) -> ServerKind<'_> {
    let NodeValue::Object(entry) = &entry.value else { return ServerKind::Invalid("the entry is not an object") };
    let transport = entry.get("type").or_else(|| entry.get("transport")).and_then(Node::as_text);
    let has_address = ["url", "httpUrl", "serverUrl"].into_iter().any(|key| entry.get(key).is_some());
    // A stated transport counts before the fields.
    let is_remote = match transport {
        Some("stdio" | "local") => false,
        Some("http" | "sse" | "ws" | "streamable-http" | "streamableHttp" | "remote") => true,
        _ => has_address && entry.get("command").is_none(),
    };
    if is_remote {
        return ServerKind::Remote;
    }
    let Some(command) = entry.property("command") else { return ServerKind::Invalid("`command` is missing") };
    if has_address {
        return ServerKind::Invalid("it has both `command` and an address");
    }
    match command.value.as_text() {
        Some("") => return ServerKind::Invalid("`command` is empty"),
        Some(_) => {}
        None => return ServerKind::Invalid("`command` is not a text"),
    }
    let args = match entry.get("args") {
        None => None,
        Some(args) => match args.as_list() {
            Some(items) if args.as_texts().is_some() => Some((args, items)),
            _ => return ServerKind::Invalid("`args` is not a list of texts"),
        },
    };
    ServerKind::Program(Program { entry, command, args })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_every_shape_get_the_new_value_once() {
        let shim = ShimCommand { program: "c".to_owned(), options: vec!["--policy".to_owned(), "/p.yaml".to_owned()] };
        for (options, expected) in [
            (r#""--policy""#, r#""--policy=/p.yaml""#),
            (r#""--policy", "--ledger", "/l.db""#, r#""--policy=/p.yaml", "--ledger", "/l.db""#),
            (r#""--ledger", "/l.db", "--policy""#, r#""--ledger", "/l.db", "--policy=/p.yaml""#),
            (r#""--policy=""#, r#""--policy=/p.yaml""#),
            (r#""--policy", "-""#, r#""--policy", "/p.yaml""#),
            (r#""--policy", """#, r#""--policy", "/p.yaml""#),
            (r#""--policy-file", "/x""#, r#""--policy-file", "/x", "--policy", "/p.yaml""#),
            (r#""--policy", "/p.yaml""#, r#""--policy", "/p.yaml""#),
        ] {
            let config = |options: &str| {
                format!(
                    r#"{{"mcpServers": {{"a": {{"command": "c", "args": ["guard", "shim", "--server-name=a", {options}, "--", "x"]}}}}}}"#
                )
            };
            let new = wrap(Client::Cursor, &config(options), Language::Json, &shim).unwrap().text;
            let new = new.unwrap_or_else(|| config(options));
            assert_eq!(new, config(expected));
            assert_eq!(wrap(Client::Cursor, &new, Language::Json, &shim).unwrap().text, None, "{new}");
            let restored = unwrap(Client::Cursor, &new, Language::Json, &[]).unwrap().text.unwrap();
            assert_eq!(restored, r#"{"mcpServers": {"a": {"command": "x", "args": []}}}"#);
        }
    }
}
