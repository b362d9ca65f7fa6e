//! Finds the servers in a configuration, and which of them are programs.

use super::Client;
use super::config_tree::{Node, NodeValue, Object, Property, SyntaxError};

/// A server in a configuration.
#[derive(Debug, Clone)]
pub(super) struct Server<'a> {
    pub(super) name: &'a str,
    /// The project that the server belongs to, in a file with several projects.
    pub(super) project: Option<&'a str>,
    /// Its name and its entry.
    pub(super) entry: &'a Property,
    pub(super) kind: ServerKind<'a>,
}

#[derive(Debug, Clone)]
pub(super) enum ServerKind<'a> {
    /// A program that the client starts.
    Program(Program<'a>),
    /// A server that the client reaches over the network.
    Remote,
    /// An entry that the client cannot start either, and why.
    Invalid(&'static str),
}

#[derive(Debug, Clone)]
pub(super) struct Program<'a> {
    /// The entry of the server.
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
