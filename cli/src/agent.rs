//! What the agent speaks and what it is told beside the cases: from the command line and from `counterproof.toml`.

use camino::Utf8PathBuf;
use counterproof_runner::{AgentOptions, Protocol, Settings};

use crate::command_error::CommandError;
use crate::config::{AgentConfig, Config};

/// Options about the agent that more than one command has.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// What the agent speaks; with an OpenAI form, the base URL ends where `/chat/completions` or `/responses` follows
    #[arg(long, value_name = "native|openai-chat|openai-responses", default_value_t)]
    pub(crate) protocol: Protocol,

    /// The model's name in requests of the OpenAI forms [default: `agent.model` of the configuration]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// The configuration with `[agent]` and `[risk]` [default: counterproof.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<Utf8PathBuf>,
}

impl AgentArgs {
    /// Sets what the options and the configuration say.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<(), CommandError> {
        let config = Config::load(self.config.as_deref())?;
        settings.protocol = self.protocol;
        settings.agent = options(config, self.model.as_ref())?;
        Ok(())
    }
}

fn options(config: Config, model: Option<&String>) -> Result<AgentOptions, CommandError> {
    let AgentConfig { model: configured, system_prompt, tools, request } = config.agent;
    let mut options = AgentOptions {
        model: model.cloned().or(configured),
        system_prompt,
        tools,
        risk: config.risk.into_iter().collect(),
        ..AgentOptions::default()
    };
    options.set_request(request).map_err(|error| {
        CommandError::usage(error).hint("`[agent]` has a setting for the model, the system prompt and the tools")
    })?;
    Ok(options)
}
