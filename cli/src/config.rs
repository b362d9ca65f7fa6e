//! `counterproof.toml`: the settings of a project, as opposed to those of one command.

use std::collections::BTreeMap;
use std::ops::Range;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{RiskLevel, Sides};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::{
    Expectations, GateRules, Request, RuleError, RuleProblem, RuleTables, Rules, SideRuns, SignalSettings, Thresholds,
};
use counterproof_runner::{McpSpec, ToolSpec};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::command_error::CommandError;
use crate::config_file::{ConfigFile, InvalidConfig, Leaf};
use crate::side_table::SideTables;

/// The JSON Schema `config.v1`.
pub(crate) const CONFIG_SCHEMA_SOURCE: &str = include_str!("../../schemas/config.v1.schema.json");

/// The tables of `counterproof.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The rules of the gate: the allowed number of cases per verdict.
    pub(crate) gate: GateRules,
    /// The thresholds for comparisons with several runs per side.
    pub(crate) statistics: Thresholds,
    /// Request fields that are the same for all cases.
    pub(crate) agent: AgentConfig,
    pub(crate) risk: BTreeMap<String, RiskLevel>,
    pub(crate) signals: SignalSettings,
    pub(crate) secrets: Secrets,
    /// The agents of both sides.
    pub(crate) side: SideTables,
    /// The tools that the runner executes for a model.
    pub(crate) tools: Vec<ToolSpec>,
    /// The MCP servers whose tools the runner executes for a model.
    pub(crate) mcp: Vec<McpSpec>,
    /// The defaults of options. `layers` reads and validates them.
    run: IgnoredAny,
    compare: CompareConfig,
    /// The folder that the commands of the file refer to.
    #[serde(skip)]
    pub(crate) folder: Utf8PathBuf,
    /// The compiled rules of comparison.
    #[serde(skip)]
    pub(crate) rules: Rules,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CompareConfig {
    rule: RuleTables,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Secrets {
    /// Environment variables that hold secrets. Variables that are not set are ignored.
    pub(crate) env: Vec<String>,
}

/// The table `[agent]`: request fields of the OpenAI protocols, and what is known about the agent.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentConfig {
    /// Whether the agent does the same whenever it is asked the same.
    pub(crate) deterministic: bool,
    pub(crate) model: Option<String>,
    pub(crate) system_prompt: Option<String>,
    /// The tools that the agent may call, in the form that the protocol defines.
    pub(crate) tools: Option<Vec<Value>>,
    /// Additional request fields.
    pub(crate) request: Map<String, Value>,
}

impl Config {
    /// Reads the named file, or the default file if it exists.
    pub(crate) fn load(named: Option<&Utf8Path>) -> Result<Self, CommandError> {
        Self::of_file(&ConfigFile::read(named)?)
    }

    /// Interprets a file that was read.
    pub(crate) fn of_file(file: &ConfigFile) -> Result<Self, CommandError> {
        Self::parse(file).map_err(|error| error.into_command_error(&file.path, &file.text))
    }

    /// A comparison under these settings.
    pub(crate) fn request<'c>(
        &self,
        cases: &'c [CaseSpec],
        sides: Sides<SideRuns>,
    ) -> Result<Request<'c>, CommandError> {
        Ok(Request {
            baseline: sides.baseline,
            new: sides.new,
            cases,
            expectations: Expectations::compile(cases).map_err(CommandError::usage)?,
            rules: self.rules.clone(),
            limits: self.gate.clone(),
            thresholds: self.statistics.clone(),
            is_deterministic: self.agent.deterministic,
            signals: self.signals.clone(),
            is_alone: false,
        })
    }

    pub(crate) fn parse(file: &ConfigFile) -> Result<Self, InvalidConfig> {
        let text = file.text.as_str();
        let mut config: Self = toml::from_str(text).map_err(|error| InvalidConfig::from_toml(&error, file))?;
        config.rules =
            std::mem::take(&mut config.compare.rule).compile(text).map_err(|error| invalid_rule(&error, file))?;
        config.folder = file.folder().to_owned();
        for command in config.tools.iter_mut().filter_map(|tool| tool.command.as_mut()) {
            *command = command.clone().in_folder(&config.folder);
        }
        for server in &mut config.mcp {
            server.command = server.command.clone().in_folder(&config.folder);
        }
        Ok(config)
    }
}

/// The rules know the line of an error, but not its bytes. The key that a message names first is the wrong one, if it is set.
fn invalid_rule(error: &RuleError, file: &ConfigFile) -> InvalidConfig {
    let message = error.problem.to_string();
    let in_rule = |leaf: &&Leaf| leaf.line >= error.line && leaf.key.starts_with("compare.rule[");
    let rule = file.leaves.iter().find(in_rule).and_then(|leaf| leaf.key.split_once("].")).map(|(rule, _)| rule);
    let wrong = rule.zip(message.split('`').nth(1)).and_then(|(rule, key)| file.leaf(&format!("{rule}].{key}")));
    // Without an effect, a rule may be empty, and the keys are those of the next.
    let wrong = wrong.filter(|_| !matches!(error.problem, RuleProblem::NoEffect));
    let span = wrong.map_or_else(|| line_span(&file.text, error.line), |leaf| leaf.span.clone());
    InvalidConfig { span: Some(span), message }
}

/// Returns the byte range of a line, counted from 1.
fn line_span(text: &str, line: usize) -> Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let length = text.get(start..).and_then(|rest| rest.lines().next()).map_or(0, str::len);
    start..start + length
}

/// Returns the keys that a table lists when it gets an unknown one.
#[cfg(test)]
pub(crate) fn known_keys(text: &str) -> Vec<String> {
    let error = toml::from_str::<Config>(text).unwrap_err();
    let mut keys: Vec<_> = error.message().split('`').skip(3).step_by(2).map(str::to_owned).collect();
    keys.sort();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_the_keys_of_the_tables() {
        let schema: Value = serde_json::from_str(CONFIG_SCHEMA_SOURCE).unwrap();
        let keys = |pointer: &str| {
            let properties = schema.pointer(pointer).and_then(Value::as_object).unwrap();
            let mut keys: Vec<_> = properties.keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(keys("/properties"), known_keys("unknown = 1"));
        assert_eq!(keys("/$defs/side/properties"), known_keys("[side.new]\nunknown = 1"));
        assert_eq!(keys("/properties/agent/properties"), known_keys("[agent]\nunknown = 1"));
        let mut run: Vec<_> = crate::layers::RUN_KEYS.map(str::to_owned).into();
        run.sort();
        assert_eq!(keys("/properties/run/properties"), run);
    }

    #[test]
    fn the_configurations_in_the_docs_are_valid() {
        for docs in [
            include_str!("../../docs/configuration.md"),
            include_str!("../../docs/protocols.md"),
            include_str!("../../docs/http-agents.md"),
            include_str!("../../docs/agents.md"),
            include_str!("../../docs/agent-process.md"),
            include_str!("../../docs/tool-loops.md"),
        ] {
            for block in docs.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
                let file = ConfigFile::parse("docs".into(), block.to_owned()).unwrap();
                Config::parse(&file).unwrap_or_else(|error| panic!("{error:?}"));
            }
        }
    }

    #[test]
    fn the_docs_have_the_lines_of_the_examples() {
        let docs = include_str!("../../docs/agents.md");
        for (config, agent) in [
            (include_str!("../../examples/fastapi/counterproof.toml"), ""),
            (
                include_str!("../../examples/langgraph/counterproof.toml"),
                include_str!("../../examples/langgraph/agent.py"),
            ),
            (
                include_str!("../../examples/pydantic-ai/counterproof.toml"),
                include_str!("../../examples/pydantic-ai/agent.py"),
            ),
            (
                include_str!("../../examples/openai-agents/counterproof.toml"),
                include_str!("../../examples/openai-agents/agent.py"),
            ),
            (include_str!("../../examples/crewai/counterproof.toml"), include_str!("../../examples/crewai/agent.py")),
        ] {
            let (_, side) = config.split_once("\n\n").unwrap();
            let (side, _) = side.split_once("\n\n[risk]").unwrap();
            assert!(docs.contains(&format!("```toml\n{side}\n```")), "{side}");
            // The lines after the comment are those that were added.
            let added = agent.split_once("__main__").map_or("", |(_, rest)| rest);
            for line in added.lines().skip(2) {
                let line = line.strip_prefix("    ").unwrap();
                assert!(docs.lines().any(|documented| documented == line), "{line}");
            }
        }
    }
}
