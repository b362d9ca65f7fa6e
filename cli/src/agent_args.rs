//! What the agent speaks and what it is told beside the cases: from the command line and from `counterproof.toml`.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use counterproof_artifact::RiskLevel;
use counterproof_runner::{AgentCommand, AgentOptions, Protocol, Secret, Settings};

use crate::command_error::CommandError;
use crate::config::{AgentConfig, Config};

/// Options about the agent that more than one command has.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// Ask this program instead of a server: started for every attempt, asked on its standard input, read from its standard
    /// output. Split like a shell's words; no shell runs it. Its arguments are never kept
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(long, value_name = "CMD", conflicts_with = "base_url")]
    pub(crate) agent_cmd: Option<Secret>,

    /// What the agent speaks; with an OpenAI form, the base URL ends where `/chat/completions` or `/responses` follows
    #[arg(long, value_name = "native|openai-chat|openai-responses", default_value_t)]
    pub(crate) protocol: Protocol,

    /// The model's name in requests of the OpenAI forms [default: `agent.model` of the configuration]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// The configuration with `[agent]`, `[risk]` and `[secrets]` [default: counterproof.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<Utf8PathBuf>,
}

impl AgentArgs {
    /// Sets what the options and the configuration say.
    pub(crate) fn apply(&self, config: Config, settings: &mut Settings) -> Result<(), CommandError> {
        settings.protocol = self.protocol;
        if let Some(text) = &self.agent_cmd {
            let command: AgentCommand = text.expose().parse().map_err(|error| {
                CommandError::usage(error).hint("write it like `--agent-cmd 'python agent.py --fast'`")
            })?;
            settings.target = command.into();
        }
        settings.agent = options(config.agent, config.risk, self.model.as_ref())?;
        Ok(())
    }
}

/// What the configuration says of the agent.
pub(crate) fn options(
    agent: AgentConfig,
    risk: BTreeMap<String, RiskLevel>,
    model: Option<&String>,
) -> Result<AgentOptions, CommandError> {
    let AgentConfig { model: configured, system_prompt, tools, request } = agent;
    let mut options = AgentOptions {
        model: model.cloned().or(configured),
        system_prompt,
        tools,
        risk: risk.into_iter().collect(),
        ..AgentOptions::default()
    };
    options.set_request(request).map_err(|error| {
        CommandError::usage(error).hint("`[agent]` has a setting for the model, the system prompt and the tools")
    })?;
    Ok(options)
}
