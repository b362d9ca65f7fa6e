//! How a request reaches the agent: over HTTP, or on the standard input of a program.

use crate::http::client::{AgentClient, ClientError};
use crate::process::agent_process::Watched;
use crate::settings::run_settings::Settings;
use crate::settings::target::Target;

/// How a request reaches the agent.
pub(crate) enum Transport {
    /// To a server.
    Http(Box<AgentClient>),
    /// To a program that is started for it.
    Process(Watched),
}

impl Transport {
    /// The way to the settings' target; a server is asked at `path` below its base URL.
    pub(crate) fn new(settings: &Settings, path: &str) -> Result<Self, ClientError> {
        Ok(match &settings.target {
            Target::Http(base) => Transport::Http(Box::new(AgentClient::new(settings, base, path)?)),
            Target::Command(command) => {
                Transport::Process(Watched { command: command.clone(), supervisor: settings.supervisor.clone() })
            }
        })
    }
}
