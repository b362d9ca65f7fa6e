//! Options and configuration tables that describe the agent, and the command line that sends one recorded request to it.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use counterproof_artifact::RiskLevel;
use counterproof_guard::agent_run::{LEDGER, POLICY};
use counterproof_runner::{AgentCommand, AgentOptions, Protocol, SavedRequest, Secret, Settings, Variables};

use crate::command_error::CommandError;
use crate::config::{AgentConfig, Config};
use crate::resume_command::quoted;

/// Options about the agent that several commands share.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// Run this program for each attempt instead of calling a server
    ///
    /// The program reads the request from standard input and writes the answer to standard output. CMD is split into words like in a
    /// shell, but no shell runs it. Its arguments are not recorded. In what the program prints, arguments that look like secrets are
    /// redacted.
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(help_heading = "Target", long, value_name = "CMD", conflicts_with = "base_url")]
    pub(crate) agent_cmd: Option<Secret>,

    /// Protocol of the agent
    ///
    /// With the OpenAI protocols, the base URL is the part before `/chat/completions` or `/responses`. `http` is described by
    /// `[side.new.http]` in the configuration. With `text`, the agent gets the text of the user and answers with text.
    #[arg(
        help_heading = "Target",
        long,
        value_name = "native|openai-chat|openai-responses|anthropic-messages|agui|http|text",
        default_value_t
    )]
    pub(crate) protocol: Protocol,

    /// Fail a case whose answer lacks a part of the native protocol, instead of filling it in
    #[arg(long)]
    pub(crate) strict_wire: bool,

    /// Model name in requests of the OpenAI and Anthropic protocols [default: `agent.model` in the configuration]
    #[arg(help_heading = "Target", long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Configuration file [default: counterproof.toml, if it exists]
    #[arg(help_heading = "Target", long, value_name = "FILE")]
    pub(crate) config: Option<Utf8PathBuf>,
}

impl AgentArgs {
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
        settings.agent = agent_options(&settings.agent, &config.agent, &config.risk, self.model.as_ref())?;
        settings.tools.commands.clone_from(&config.tools);
        settings.tools.servers.clone_from(&config.mcp);
        // This program is the guard of the servers, so that their calls are recorded and governed. A system without `/proc`
        // does not know this program.
        if !settings.tools.servers.is_empty() {
            settings.tools.guard = Some(std::env::current_exe().map_err(CommandError::io)?);
            let variables = absolute_variables()?;
            for server in &mut settings.tools.servers {
                server.command = server.command.clone().with_variables(variables.clone());
            }
        }
        settings.agent.strict_wire = self.strict_wire;
        Ok(())
    }
}

/// Returns the variables of the guard that are paths. It runs in the folder of the configuration, and they start in this one.
fn absolute_variables() -> Result<Variables, CommandError> {
    let absolute = |name: &'static str| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty() && !value.contains("://"))?;
        Some((name, std::path::absolute(value).ok()?.to_str()?.to_owned()))
    };
    let paths: Vec<_> = [LEDGER, POLICY].into_iter().filter_map(absolute).collect();
    let entries = paths.iter().map(|(name, path)| (*name, path.as_str()));
    Variables::resolve(entries, |name| std::env::var(name)).map_err(CommandError::usage)
}

/// Builds the agent's options from the configuration. `model` overrides `agent.model`. The options of the side, such as `stream`,
/// are those of `base`.
pub(crate) fn agent_options(
    base: &AgentOptions,
    agent: &AgentConfig,
    risk: &BTreeMap<String, RiskLevel>,
    model: Option<&String>,
) -> Result<AgentOptions, CommandError> {
    let mut options = AgentOptions {
        model: model.or(agent.model.as_ref()).cloned(),
        system_prompt: agent.system_prompt.clone(),
        tools: agent.tools.clone(),
        risk: risk.iter().map(|(tool, level)| (tool.clone(), *level)).collect(),
        ..base.clone()
    };
    options.set_request(agent.request.clone()).map_err(|error| {
        CommandError::usage(error).hint(
            "set the model, the system prompt and the tools with `model`, `system_prompt` and `tools` in `[agent]`",
        )
    })?;
    Ok(options)
}

/// Returns the pipeline that sends the request to an agent program, given as its words.
pub(crate) fn pipeline(request: &SavedRequest, words: &[String]) -> String {
    format!("printf '%s\\n' {} | {}", quoted(&request.body_text()), shell_words::join(words))
}

/// Returns the `curl` command that sends the request to a server.
pub(crate) fn curl_command(request: &SavedRequest) -> String {
    let body = request.body_text();
    let mut lines = vec![
        // `--url`, because a URL from a file may look like an option. Without `--globoff`, curl expands brackets and braces in it.
        format!("curl --request {} --globoff --url {}", quoted(&request.method), quoted(&request.url)),
        format!("  --header {}", quoted(&format!("content-type: {}", request.content_type))),
    ];
    // The header is double-quoted so that the shell expands the variable. Names with other characters, such as the backtick,
    // would need escaping there and make no variable name.
    let is_plain =
        |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    for name in request.headers.iter().filter(is_plain) {
        let variable = name.to_ascii_uppercase().replace('-', "_");
        lines.push(format!("  --header \"{name}: ${variable}\""));
    }
    if !body.is_empty() {
        lines.push(format!("  --data-raw {}", quoted(&body)));
    }
    lines.join(" \\\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_configuration_keeps_the_options_of_the_side() {
        let base = AgentOptions { stream: true, strict_wire: true, ..AgentOptions::default() };
        let options =
            agent_options(&base, &AgentConfig::default(), &BTreeMap::new(), Some(&"old-model".to_owned())).unwrap();
        assert_eq!(options.model.as_deref(), Some("old-model"));
        assert!(options.stream && options.strict_wire);
    }

    fn request(url: &str) -> SavedRequest {
        SavedRequest {
            protocol: "native".to_owned(),
            url: url.to_owned(),
            headers: vec!["authorization".to_owned(), "x-`id`".to_owned()],
            method: "POST".to_owned(),
            content_type: "application/json".to_owned(),
            body: json!({"user": "it's $HOME"}),
            masked: false,
        }
    }

    #[test]
    fn requests_are_quoted_for_the_shell_and_header_values_are_variables() {
        let expected = "curl --request POST --globoff --url 'http://h/run-case?a&b' \\\n  --header 'content-type: application/json' \\\n  \
                        --header \"authorization: $AUTHORIZATION\" \\\n  --data-raw '{\"user\":\"it'\\''s $HOME\"}'";
        assert_eq!(curl_command(&request("http://h/run-case?a&b")), expected);
        assert!(
            curl_command(&request("-o/etc/passwd")).starts_with("curl --request POST --globoff --url -o/etc/passwd ")
        );
        let words = ["my agent", "--fast", "$KEY"].map(str::to_owned);
        let expected = "printf '%s\\n' '{\"user\":\"it'\\''s $HOME\"}' | 'my agent' --fast '$KEY'";
        assert_eq!(pipeline(&request("cmd:my agent"), &words), expected);
    }
}
