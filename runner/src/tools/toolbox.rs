//! Finds the result of a call: in the case, then from a command, then from an MCP server.

use std::collections::HashMap;
use std::time::Duration;

use counterproof_store::write::WriteError;
use serde_json::{Map, Value};

use super::canned::{ToolOutput, canned};
use super::mcp::{McpError, McpServer};
use super::program;
use crate::agent::{RequestedCall, ToolDefinition};
use crate::body_sink::BodyDestination;
use crate::failure::{Fault, Reason};
use crate::process::AgentProgram;
use crate::settings::{AttemptLimits, Settings};

/// The tools of a run. All cases share them.
pub(crate) struct Toolbox {
    commands: Vec<(String, AgentProgram)>,
    servers: Vec<McpServer>,
    /// The tools of servers: the name that the model calls, the server, and its own name of the tool.
    routes: HashMap<String, (usize, String)>,
    /// The definitions of all tools, with unique names.
    definitions: Vec<ToolDefinition>,
}

/// What a call needs of its run.
#[derive(Clone, Copy)]
pub(crate) struct ToolContext<'run> {
    pub(crate) limits: AttemptLimits,
    pub(crate) destination: BodyDestination<'run>,
}

impl Toolbox {
    pub(crate) fn new(settings: &Settings) -> Self {
        let specs = &settings.tools.commands;
        let program = |command: &crate::settings::AgentCommand| AgentProgram {
            command: command.clone(),
            request_end: b"\n",
            supervisor: settings.supervisor.clone(),
        };
        let definition = |spec: &crate::settings::ToolSpec| ToolDefinition {
            name: spec.name.clone(),
            description: spec.description.clone(),
            parameters: spec.parameters.clone(),
        };
        Self {
            commands: specs
                .iter()
                .filter_map(|spec| Some((spec.name.clone(), program(spec.command.as_ref()?))))
                .collect(),
            servers: Vec::new(),
            routes: HashMap::new(),
            definitions: specs.iter().map(definition).collect(),
        }
    }

    /// Starts the MCP servers, which end with the toolbox, and adds their tools.
    pub(crate) async fn start_servers(&mut self, settings: &Settings, limit: Duration) -> Result<(), McpError> {
        let mut found = Vec::new();
        for spec in &settings.tools.servers {
            let (server, tools) = McpServer::start(spec, settings, limit).await?;
            found.extend(tools.into_iter().map(|tool| (self.servers.len(), tool)));
            self.servers.push(server);
        }
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (_, tool) in &found {
            *counts.entry(tool.name.clone()).or_default() += 1;
        }
        for (server, tool) in found {
            let is_shared = counts.get(&tool.name).is_some_and(|count| *count > 1);
            let name =
                if is_shared { format!("{}__{}", self.servers[server].name, tool.name) } else { tool.name.clone() };
            // A command precedes a server.
            if self.definitions.iter().all(|known| known.name != name) {
                self.routes.insert(name.clone(), (server, tool.name.clone()));
                self.definitions.push(ToolDefinition { name, ..tool });
            }
        }
        Ok(())
    }

    /// Starts the MCP servers again that ended in an earlier case.
    pub(crate) async fn restart_servers(&self) {
        for server in &self.servers {
            server.restart_if_ended().await;
        }
    }

    pub(crate) fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Returns the result of a call. `given` are the results of the turn and of the case. The inner error is a call without a
    /// result, which the case fails with.
    pub(crate) async fn call(
        &self,
        call: &RequestedCall,
        given: [&Map<String, Value>; 2],
        context: &ToolContext<'_>,
    ) -> Result<Result<ToolOutput, Fault>, WriteError> {
        let given = given.iter().filter_map(|results| results.get(&call.tool));
        let has_entries = given.clone().next().is_some();
        if let Some(output) = given.into_iter().find_map(|given| canned(given, &call.arguments)) {
            return Ok(Ok(output));
        }
        if let Some((_, program)) = self.commands.iter().find(|(name, _)| *name == call.tool) {
            let result = program::call(program, &call.arguments, context).await?;
            return Ok(result.map_err(|fault| {
                let message = format!("the tool `{}` has no result: {}", call.tool, fault.message);
                Fault::new(Reason::NoToolResult, message)
            }));
        }
        if let Some((server, tool)) = self.routes.get(&call.tool) {
            let server = &self.servers[*server];
            return Ok(server.call(tool, &call.arguments, context.limits.timeout).await.map_err(|error| {
                Fault::new(Reason::NoToolResult, format!("the tool `{}` has no result: {error}", call.tool))
            }));
        }
        Ok(Err(no_result(&call.tool, has_entries)))
    }
}

/// Returns the fault of a call without a result, with the line to add.
fn no_result(tool: &str, has_entries: bool) -> Fault {
    let message = if has_entries {
        format!(
            "no entry of `tool_results.{tool}` has the arguments of this call: add `- {{arguments: {{…}}, result: …}}`, or \
             `- result: …` for all other calls"
        )
    } else {
        format!(
            "the tool `{tool}` has no result: add `tool_results: {{{tool}: …}}` to the case, or a `[[tools]]` entry with \
             `name = \"{tool}\"` and a `command`"
        )
    };
    Fault::new(Reason::NoToolResult, message)
}
