//! The kinds of agents and CI systems, and the text of each file.

use counterproof_cases::CASES_SCHEMA_SOURCE;

use super::ci::{CiKind, ci_file};
use crate::config::CONFIG_SCHEMA_SOURCE;

/// The kind of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum AgentKind {
    /// An HTTP endpoint of any shape
    #[default]
    Http,
    /// A model behind an OpenAI-compatible endpoint
    Openai,
    /// A program that is started for each case
    Command,
    /// A model that calls the tools of MCP servers
    Mcp,
}

/// A file to write.
#[derive(Debug)]
pub(crate) struct InitFile {
    pub(crate) path: &'static str,
    pub(crate) text: String,
}

/// The lines of `.gitignore`. The baseline is part of the repository, other runs are not.
pub(crate) const IGNORED: [&str; 6] =
    ["/runs/*", "!/runs/baseline/", "/report/", "/history/", "/nights/", "/.counterproof/sessions/"];

/// Returns the files of a project, in the order in which they are printed.
pub(crate) fn all(agent: AgentKind, ci: CiKind) -> Vec<InitFile> {
    let config = match agent {
        AgentKind::Http => include_str!("agents/http.toml"),
        AgentKind::Openai => include_str!("agents/openai.toml"),
        AgentKind::Command => include_str!("agents/command.toml"),
        AgentKind::Mcp => include_str!("agents/mcp.toml"),
    };
    let cases = match agent {
        AgentKind::Openai => include_str!("agents/cases_with_tools.yaml"),
        AgentKind::Http | AgentKind::Command | AgentKind::Mcp => include_str!("agents/cases.yaml"),
    };
    let file = |path, text: &str| InitFile { path, text: text.to_owned() };
    let mut files = vec![
        file("cases.yaml", cases),
        file("counterproof.toml", config),
        file(".counterproof/schemas/cases.v1.schema.json", CASES_SCHEMA_SOURCE),
        file(".counterproof/schemas/config.v1.schema.json", CONFIG_SCHEMA_SOURCE),
    ];
    files.extend(ci_file(ci).map(|(path, text)| file(path, text)));
    files
}

/// Returns what a person does after `init`.
pub(crate) const fn next_step(agent: AgentKind) -> &'static str {
    match agent {
        AgentKind::Http => {
            "next: set `base_url` in counterproof.toml to the address of your agent, look at one answer with \
             `counterproof try`, then run `counterproof check`"
        }
        AgentKind::Openai => "next: set `base_url` and `model` in counterproof.toml, then run `counterproof check`",
        AgentKind::Command => "next: set `command` in counterproof.toml, then run `counterproof check`",
        AgentKind::Mcp => {
            "next: set `base_url` and `model`, and the command of your MCP server, in counterproof.toml, then run \
             `counterproof check`"
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::config::Config;
    use crate::config_file::ConfigFile;

    #[test]
    fn every_configuration_is_valid() {
        for agent in AgentKind::value_variants() {
            let files = all(*agent, CiKind::None);
            let config = files.iter().find(|file| file.path == "counterproof.toml").unwrap();
            let file = ConfigFile::parse(config.path.into(), config.text.clone()).unwrap();
            Config::parse(&file).unwrap_or_else(|error| panic!("{agent:?}: {error:?}"));
        }
    }

    #[test]
    fn the_commented_lines_of_every_configuration_are_valid() {
        for agent in AgentKind::value_variants() {
            let files = all(*agent, CiKind::None);
            let config = files.iter().find(|file| file.path == "counterproof.toml").unwrap();
            // A line that is commented out starts without a space, or is an alternative to an active one.
            for line in
                config.text.lines().filter_map(|line| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")))
            {
                toml::from_str::<toml::Table>(line).unwrap_or_else(|error| panic!("{agent:?}: {line}: {error}"));
            }
        }
    }
}
