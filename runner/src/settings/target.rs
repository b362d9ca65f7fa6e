//! The agent of a run: a server with a base URL, or a program that is started for each attempt.

use std::fmt;
use std::str::FromStr;

use counterproof_artifact::PROGRAM;

use super::base_url::BaseUrl;
use super::secret::Secret;

/// The agent of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An HTTP server.
    Http(BaseUrl),
    /// A program that is started for each attempt.
    Command(AgentCommand),
}

impl Target {
    /// Returns the agent as files and messages show it: the base URL without secrets, or `cmd:` and the program's file name.
    pub fn recorded(&self) -> String {
        match self {
            Target::Http(base) => base.recorded().to_owned(),
            Target::Command(command) => command.recorded(),
        }
    }
}

impl From<BaseUrl> for Target {
    fn from(base: BaseUrl) -> Self {
        Target::Http(base)
    }
}

impl From<AgentCommand> for Target {
    fn from(command: AgentCommand) -> Self {
        Target::Command(command)
    }
}

/// A program with its arguments. No output shows the arguments, because they may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentCommand {
    program: String,
    arguments: Vec<Secret>,
}

/// An invalid command. The messages do not quote it, because it may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentCommandError {
    /// The text is empty.
    #[error("the agent's command is empty")]
    Empty,
    /// A quote is not closed.
    #[error("the agent's command has an unclosed quote")]
    Quote,
}

impl FromStr for AgentCommand {
    type Err = AgentCommandError;

    /// Splits at white space, with quotes and backslashes as in a POSIX shell. No shell runs, and nothing is expanded.
    fn from_str(text: &str) -> Result<Self, AgentCommandError> {
        let mut words = shell_words::split(text).map_err(|_| AgentCommandError::Quote)?.into_iter();
        let program = words.next().filter(|program| !program.is_empty()).ok_or(AgentCommandError::Empty)?;
        Ok(Self { program, arguments: words.map(Secret::from).collect() })
    }
}

impl AgentCommand {
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(Secret::expose)
    }

    fn recorded(&self) -> String {
        // The folder of the program is specific to this machine, and no path in a run folder is absolute.
        let name = self.program.rsplit(['/', '\\']).next().unwrap_or_default();
        format!("{PROGRAM}{name}")
    }
}

impl fmt::Debug for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentCommand({}, {} arguments)", self.program, self.arguments.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_like_a_shell_does_but_nothing_is_expanded() {
        let command: AgentCommand = r#"/opt/agent --key 's3 cret' "a b" c\ d $HOME * > x"#.parse().unwrap();
        assert_eq!(command.program(), "/opt/agent");
        let arguments: Vec<_> = command.arguments().collect();
        assert_eq!(arguments, ["--key", "s3 cret", "a b", "c d", "$HOME", "*", ">", "x"]);
        assert_eq!(Target::from(command).recorded(), "cmd:agent");
    }

    #[test]
    fn no_output_shows_the_arguments() {
        let command: AgentCommand = "agent --key s3cret".parse().unwrap();
        assert!(!format!("{command:?}").contains("s3cret"));
        for text in ["", "  ", "'s3cret", "''"] {
            assert!(!text.parse::<AgentCommand>().unwrap_err().to_string().contains("s3cret"));
        }
    }
}
