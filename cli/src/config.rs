//! `counterproof.toml`: the settings that belong to a project rather than to one call.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::RiskLevel;
use counterproof_evaluator::gate::GateLimits;
use counterproof_evaluator::rules::{Rules, WrittenRules};
use counterproof_evaluator::statistics::Thresholds;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::command_error::CommandError;

/// The file that is looked for in the working folder.
const DEFAULT_PATH: &str = "counterproof.toml";

/// The settings of a project.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// How many cases of each kind may go out.
    pub(crate) gate: GateLimits,
    /// What counts as worse where a side has several runs.
    pub(crate) statistics: Thresholds,
    /// What the agent is told beside the cases.
    pub(crate) agent: AgentConfig,
    /// How risky the agent's tools are, by name.
    pub(crate) risk: BTreeMap<String, RiskLevel>,
    /// What runs keep out of every file.
    pub(crate) secrets: Secrets,
    /// How two runs are compared.
    compare: CompareConfig,
    /// What is not compared to the letter.
    #[serde(skip)]
    pub(crate) rules: Rules,
}

/// How two runs are compared.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CompareConfig {
    /// The rules of comparison, as they are written.
    rule: WrittenRules,
}

/// What runs keep out of every file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Secrets {
    /// Environment variables that hold secrets. One that is not set holds none.
    pub(crate) env: Vec<String>,
}

/// What an agent that speaks an OpenAI form is told beside the cases.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentConfig {
    /// The model's name.
    pub(crate) model: Option<String>,
    /// What the agent is told before all else.
    pub(crate) system_prompt: Option<String>,
    /// The tools that the agent may call, as the protocol writes them.
    pub(crate) tools: Option<Vec<Value>>,
    /// Further fields of the request.
    pub(crate) request: Map<String, Value>,
}

impl Secrets {
    /// The variables that are set, with their values.
    pub(crate) fn values(&self, environment: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        let set = |variable: &String| Some((variable.clone(), environment(variable)?));
        self.env.iter().filter_map(set).collect()
    }
}

impl Config {
    /// Reads the named file, or the default one if it is there.
    pub(crate) fn load(named: Option<&Utf8Path>) -> Result<Self, CommandError> {
        let path = named.map_or_else(|| Utf8PathBuf::from(DEFAULT_PATH), Utf8Path::to_owned);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CommandError::io(format!("failed to read `{path}`: {error}"))),
        };
        Self::parse(&text).map_err(|error| {
            CommandError::usage(format!("`{path}` is not a configuration that can be used\n{error}"))
                .hint("docs/configuration.md lists every setting")
        })
    }

    /// Takes the settings from a text; what is said of a bad one names its line.
    fn parse(text: &str) -> Result<Self, String> {
        // The error names line, column and field, and shows the line itself.
        let mut config: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        config.rules = std::mem::take(&mut config.compare.rule).compile(text).map_err(|error| error.to_string())?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_in_the_docs_can_be_read() {
        for docs in [include_str!("../../docs/configuration.md"), include_str!("../../docs/protocols.md")] {
            for block in docs.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
                Config::parse(block).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}
