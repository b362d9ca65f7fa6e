//! `counterproof.toml`: the settings of a project, as opposed to those of one command.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::RiskLevel;
use counterproof_evaluator::{GateLimits, Rules, Thresholds, WrittenRules};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::command_error::CommandError;

/// The configuration file that is read from the working folder by default.
const DEFAULT_PATH: &str = "counterproof.toml";

/// The tables of `counterproof.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The rules of the gate: the allowed number of cases per verdict.
    pub(crate) gate: GateLimits,
    /// The thresholds for comparisons with several runs per side.
    pub(crate) statistics: Thresholds,
    /// Request fields that are the same for all cases.
    pub(crate) agent: AgentConfig,
    /// Risk levels by tool name or pattern.
    pub(crate) risk: BTreeMap<String, RiskLevel>,
    /// Secrets to redact from every file.
    pub(crate) secrets: Secrets,
    /// Settings of the comparison.
    compare: CompareConfig,
    /// The compiled rules of comparison.
    #[serde(skip)]
    pub(crate) rules: Rules,
}

/// The table `[compare]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CompareConfig {
    /// The rules of comparison, as written.
    rule: WrittenRules,
}

/// The table `[secrets]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Secrets {
    /// Environment variables that hold secrets. Variables that are not set are ignored.
    pub(crate) env: Vec<String>,
}

/// The table `[agent]`: request fields of the OpenAI protocols.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentConfig {
    /// The model's name.
    pub(crate) model: Option<String>,
    /// The system prompt.
    pub(crate) system_prompt: Option<String>,
    /// The tools that the agent may call, in the form that the protocol defines.
    pub(crate) tools: Option<Vec<Value>>,
    /// Additional request fields.
    pub(crate) request: Map<String, Value>,
}

impl Secrets {
    /// Returns the variables that are set, with their values.
    pub(crate) fn values(&self, environment: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        let set = |variable: &String| Some((variable.clone(), environment(variable)?));
        self.env.iter().filter_map(set).collect()
    }
}

impl Config {
    /// Reads the named file, or the default file if it exists.
    pub(crate) fn load(named: Option<&Utf8Path>) -> Result<Self, CommandError> {
        let path = named.map_or_else(|| Utf8PathBuf::from(DEFAULT_PATH), Utf8Path::to_owned);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CommandError::io(format!("failed to read `{path}`: {error}"))),
        };
        Self::parse(&text).map_err(|error| {
            CommandError::usage(format!("invalid configuration `{path}`\n{error}"))
                .hint("see docs/configuration.md for all settings")
        })
    }

    /// Parses a configuration. Errors name line and column.
    fn parse(text: &str) -> Result<Self, String> {
        let mut config: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        config.rules = std::mem::take(&mut config.compare.rule).compile(text).map_err(|error| error.to_string())?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_in_the_docs_are_valid() {
        for docs in [include_str!("../../docs/configuration.md"), include_str!("../../docs/protocols.md")] {
            for block in docs.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
                Config::parse(block).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}
