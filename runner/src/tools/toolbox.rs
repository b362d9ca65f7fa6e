//! Finds the result of a call: in the case, then from a command, then from an MCP server.

use counterproof_store::write::WriteError;
use serde_json::{Map, Value};

use super::canned::{ToolOutput, canned};
use super::program;
use crate::agent::{RequestedCall, ToolDefinition};
use crate::body_sink::BodyDestination;
use crate::failure::{Fault, Reason};
use crate::process::AgentProgram;
use crate::settings::{AttemptLimits, Settings};

/// The tools of a run. All cases share them.
pub(crate) struct Toolbox {
    commands: Vec<(String, AgentProgram)>,
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
            commands: specs.iter().map(|spec| (spec.name.clone(), program(&spec.command))).collect(),
            definitions: specs.iter().map(definition).collect(),
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
