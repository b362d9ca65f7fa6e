//! Options and configuration tables that describe the agent.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use counterproof_artifact::RiskLevel;
use counterproof_runner::{AgentCommand, AgentOptions, Protocol, Secret, Settings};

use crate::command_error::CommandError;
use crate::config::{AgentConfig, Config};

/// Options about the agent that several commands share.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// Run this program for each attempt instead of calling a server
    ///
    /// The program reads the request from standard input and writes the answer to standard output. CMD is split into words like in a
    /// shell, but no shell runs it. Its arguments are not recorded. In what the program prints, arguments that look like secrets are
    /// redacted.
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(long, value_name = "CMD", conflicts_with = "base_url")]
    pub(crate) agent_cmd: Option<Secret>,

    /// Protocol of the agent
    ///
    /// With the OpenAI protocols, the base URL is the part before `/chat/completions` or `/responses`.
    #[arg(long, value_name = "native|openai-chat|openai-responses", default_value_t)]
    pub(crate) protocol: Protocol,

    /// Model name in requests of the OpenAI protocols [default: `agent.model` in the configuration]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Configuration file with `[agent]`, `[risk]` and `[secrets]` [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<Utf8PathBuf>,
}

impl AgentArgs {
    /// Sets the agent's protocol, program and options from the arguments and the configuration.
    pub(crate) fn apply(&self, config: &Config, settings: &mut Settings) -> Result<(), CommandError> {
        settings.protocol = self.protocol;
        settings.deterministic = config.agent.deterministic;
        if let Some(text) = &self.agent_cmd {
            let command: AgentCommand = text
                .expose()
                .parse()
                .map_err(|error| CommandError::usage(error).hint("example: `--agent-cmd 'python agent.py --fast'`"))?;
            settings.target = command.into();
        }
        settings.agent = agent_options(&config.agent, &config.risk, self.model.as_ref())?;
        Ok(())
    }
}

/// Builds the agent's options from the configuration. `model` overrides `agent.model`.
pub(crate) fn agent_options(
    agent: &AgentConfig,
    risk: &BTreeMap<String, RiskLevel>,
    model: Option<&String>,
) -> Result<AgentOptions, CommandError> {
    let mut options = AgentOptions {
        model: model.or(agent.model.as_ref()).cloned(),
        system_prompt: agent.system_prompt.clone(),
        tools: agent.tools.clone(),
        risk: risk.iter().map(|(tool, level)| (tool.clone(), *level)).collect(),
        ..AgentOptions::default()
    };
    options.set_request(agent.request.clone()).map_err(|error| {
        CommandError::usage(error).hint(
            "set the model, the system prompt and the tools with `model`, `system_prompt` and `tools` in `[agent]`",
        )
    })?;
    Ok(options)
}
