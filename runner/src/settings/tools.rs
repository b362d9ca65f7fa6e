//! The tools that the runner executes for a model: commands of `[[tools]]`, and MCP servers of `[[mcp]]`.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::target::{AgentCommand, AgentCommandError};

/// The tools of a run, and how often the model may be asked.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// The tools that are commands.
    pub commands: Vec<ToolSpec>,
    /// The MCP servers, which are started once for each run.
    pub servers: Vec<McpSpec>,
    /// The maximum number of requests until the model calls no more tools.
    pub max_turns: NonZeroU32,
    /// The program whose `guard shim` records and governs the calls of MCP servers. `None` starts the servers without it.
    pub guard: Option<PathBuf>,
}

impl Default for ToolSettings {
    /// No tools, and 10 requests.
    fn default() -> Self {
        const MAX_TURNS: NonZeroU32 = NonZeroU32::new(10).unwrap();
        Self { commands: Vec::new(), servers: Vec::new(), max_turns: MAX_TURNS, guard: None }
    }
}

impl ToolSettings {
    /// Returns true if no tool is configured.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.servers.is_empty()
    }
}

/// A tool that is a command. It gets the arguments as one JSON object on standard input.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawTool")]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// What the tool does, for the model.
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    pub parameters: Value,
    /// The command. Without it, the results come from the cases.
    pub command: Option<AgentCommand>,
}

/// An MCP server that talks over standard input and output.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawServer")]
pub struct McpSpec {
    /// The name of the server, in events and messages.
    pub name: String,
    /// The command.
    pub command: AgentCommand,
    /// The policy of the guard. Without it, every call is allowed and recorded.
    pub policy: Option<Utf8PathBuf>,
}

impl McpSpec {
    /// Returns the command that starts the server behind the guard.
    pub(crate) fn guarded(&self, guard: &Path) -> Result<AgentCommand, AgentCommandError> {
        let mut words = vec![guard.to_string_lossy().into_owned(), "guard".to_owned(), "shim".to_owned()];
        words.push(format!("--server-name={}", self.name));
        words.extend(self.policy.iter().map(|policy| format!("--policy={policy}")));
        words.extend(["--", self.command.program()].map(str::to_owned));
        words.extend(self.command.arguments().map(str::to_owned));
        let command: AgentCommand = shell_words::join(words).parse()?;
        let command = command.with_variables(self.command.variables().clone());
        // The guard runs in the folder of the server, so that the path of the policy starts there too.
        Ok(match self.command.folder() {
            Some(folder) => command.in_folder(folder),
            None => command,
        })
    }
}

/// The keys of `[[tools]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTool {
    name: String,
    description: Option<String>,
    #[serde(default, deserialize_with = "schema")]
    parameters: Option<Map<String, Value>>,
    command: Option<String>,
}

/// The keys of `[[mcp]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    name: String,
    command: String,
    policy: Option<Utf8PathBuf>,
}

/// An invalid entry of `[[tools]]` or `[[mcp]]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum ToolSpecError {
    #[error("`name` is empty; expected the name of {0}")]
    Name(&'static str),
    #[error("`command` is invalid: {0}")]
    Command(#[from] AgentCommandError),
}

fn schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Map<String, Value>>, D::Error> {
    // Read as a value first: the default message would name a type of this program.
    match Value::deserialize(deserializer)? {
        Value::Object(fields) => Ok(Some(fields)),
        _ => Err(serde::de::Error::custom(
            "expected the JSON Schema of the arguments, such as { type = \"object\", properties = { id = { type = \"string\" } } }",
        )),
    }
}

impl TryFrom<RawTool> for ToolSpec {
    type Error = ToolSpecError;

    fn try_from(raw: RawTool) -> Result<Self, ToolSpecError> {
        if raw.name.is_empty() {
            return Err(ToolSpecError::Name("the tool"));
        }
        let parameters = raw.parameters.map_or_else(|| json!({"type": "object"}), Value::Object);
        Ok(Self {
            name: raw.name,
            description: raw.description,
            parameters,
            command: raw.command.map(|command| command.parse()).transpose()?,
        })
    }
}

impl TryFrom<RawServer> for McpSpec {
    type Error = ToolSpecError;

    fn try_from(raw: RawServer) -> Result<Self, ToolSpecError> {
        if raw.name.is_empty() {
            return Err(ToolSpecError::Name("the server"));
        }
        Ok(Self { name: raw.name, command: raw.command.parse()?, policy: raw.policy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_without_parameters_takes_any_object() {
        let tool: ToolSpec = serde_json::from_value(json!({"name": "now", "command": "date -u"})).unwrap();
        assert_eq!(tool.parameters, json!({"type": "object"}));
    }

    #[test]
    fn errors_state_what_is_expected() {
        let error = |value: Value| serde_json::from_value::<ToolSpec>(value).unwrap_err().to_string();
        assert!(error(json!({"name": "", "command": "date"})).contains("`name` is empty"));
        assert!(error(json!({"name": "now", "command": "'date"})).contains("unclosed quote"));
        assert!(error(json!({"name": "now", "command": "date", "parameters": 1})).contains("JSON Schema"));
        assert!(error(json!({"name": "now", "command": "date", "timeout": 1})).contains("unknown field `timeout`"));
    }
}
