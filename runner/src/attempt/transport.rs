//! The transport of requests: HTTP, or the standard input of a program.

use crate::http::{AgentClient, ClientError};
use crate::process::AgentProgram;
use crate::settings::{Secret, Settings, Target};

/// The transport of requests.
pub(crate) enum Transport {
    Http(Box<AgentClient>),
    Program(AgentProgram),
}

impl Transport {
    /// Returns the texts that the transport sends in addition to the settings and that no output may contain.
    pub(crate) fn secrets(&self) -> &[Secret] {
        match self {
            Transport::Http(client) => client.secrets(),
            Transport::Program(_) => &[],
        }
    }

    /// Creates the transport to the settings' target. A server receives requests at `path` below its base URL.
    pub(crate) fn new(settings: &Settings, path: &str) -> Result<Self, ClientError> {
        Ok(match &settings.target {
            Target::Http(base) => Transport::Http(Box::new(AgentClient::new(settings, base, path)?)),
            Target::Command(command) => {
                Transport::Program(AgentProgram { command: command.clone(), supervisor: settings.supervisor.clone() })
            }
        })
    }
}
