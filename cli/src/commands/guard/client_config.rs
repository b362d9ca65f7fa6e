//! The configuration of a client that `import` and `restore` change.

use camino::Utf8PathBuf;
use counterproof_guard::identity::process_variable;
use counterproof_guard::importer::{Client, ImportError, Platform, ServerChange, ServerStatus};

use crate::command_error::CommandError;
use crate::streams::{OutputError, Streams};

/// The client and its configuration.
#[derive(Debug, clap::Args)]
pub(super) struct ClientConfig {
    /// Client: claude-code, claude-desktop, codex, cursor, vscode or gemini
    #[arg(value_name = "CLIENT")]
    pub(super) client: Client,

    /// Configuration to change [default: that of the user]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,
}

impl ClientConfig {
    /// Returns the path of the configuration.
    pub(super) fn path(&self) -> Result<Utf8PathBuf, CommandError> {
        if let Some(path) = &self.config {
            return Ok(path.clone());
        }
        self.client.user_file(Platform::current(), process_variable).ok_or_else(|| {
            CommandError::usage(format!("the configuration of {} is unknown: no home folder is set", self.client))
                .hint("pass `--config FILE`")
        })
    }

    /// Converts an error. If the configuration of the user is missing, a hint names that of a project.
    pub(super) fn error(&self, error: ImportError) -> CommandError {
        let (is_missing, hint) = (matches!(error, ImportError::Missing { .. }), error.hint());
        let error = if error.is_io() { CommandError::io(error) } else { CommandError::usage(error) };
        let project = self.client.project_file().filter(|_| is_missing && self.config.is_none());
        let project = project.map(|file| format!("for the servers of a project, pass `--config {file}`"));
        hint.map(str::to_owned).into_iter().chain(project).fold(error, CommandError::hint)
    }

    /// Returns the words that name the client and the configuration in another command.
    pub(super) fn words(&self) -> String {
        let config = self.config.as_ref().map(|path| format!(" --config {}", crate::shell::quoted(path.as_str())));
        format!("{}{}", self.client, config.unwrap_or_default())
    }
}

/// Prints what happened to each server.
pub(super) fn print_servers(servers: &[ServerChange], streams: &mut Streams) -> Result<(), OutputError> {
    for server in servers {
        let status = match server.status {
            ServerStatus::Wrapped => "wrapped",
            ServerStatus::Updated => "updated",
            ServerStatus::Unwrapped => "unwrapped",
            ServerStatus::Skipped => "skipped",
        };
        let project = server.project.as_ref().map(|project| format!(" in {project}")).unwrap_or_default();
        let reason = server.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        streams.print_line(format_args!("{status:<9}  {}{project}{reason}", server.name))?;
    }
    Ok(())
}
