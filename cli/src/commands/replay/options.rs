//! What `counterproof replay` needs: its arguments, resolved with the environment and the configuration.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::escape_invisible;
use counterproof_runner::{
    AgentCommand, BaseUrl, Header, ResolveRule, SavedRequest, Secret, Settings, TrustedCertificates,
};

use super::args::Args;
use super::recorded_case::RecordedCase;
use crate::agent_args::agent_options;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::{certificates, environment, request_command};

/// The inputs of a replay.
#[derive(Debug)]
pub(super) struct ReplayOptions {
    /// The artifact of the case.
    pub(super) case: Utf8PathBuf,
    pub(super) action: Action,
    pub(super) target: TargetChoice,
}

/// What to do with the saved request.
#[derive(Debug)]
pub(super) enum Action {
    PrintCommand,
    Send(Box<SendOptions>),
}

/// The agent that gets the request.
#[derive(Debug)]
pub(super) enum TargetChoice {
    /// The agent of the recorded run.
    Recorded,
    BaseUrl(Secret),
    /// A program, as a command line.
    Program(Secret),
}

/// How the request is sent.
#[derive(Debug)]
pub(super) struct SendOptions {
    pub(super) config: Config,
    headers: Vec<Header>,
    secrets: Vec<Secret>,
    certificates: TrustedCertificates,
    resolve: Vec<ResolveRule>,
    timeout: Duration,
}

impl ReplayOptions {
    /// Resolves the arguments.
    pub(super) fn new(args: &Args) -> Result<Self, CommandError> {
        let target = match (&args.base_url, &args.agent_cmd) {
            (Some(base), _) => TargetChoice::BaseUrl(base.clone()),
            (None, Some(program)) => TargetChoice::Program(program.clone()),
            (None, None) => TargetChoice::Recorded,
        };
        // A printed command has `$NAME` in place of each header value, so it does not need the variables to be set.
        let action = if args.curl { Action::PrintCommand } else { Action::Send(Box::new(SendOptions::new(args)?)) };
        Ok(Self { case: args.case.clone(), action, target })
    }
}

impl SendOptions {
    fn new(args: &Args) -> Result<Self, CommandError> {
        let config = Config::load(args.config.as_deref())?;
        let headers = environment::headers(&args.headers).map_err(CommandError::usage)?;
        let secrets = environment::secrets(&args.secrets, &config.secrets)?;
        let certificates = certificates::trusted(args.ca_file.as_deref())?;
        Ok(Self { config, headers, secrets, certificates, resolve: args.resolve.clone(), timeout: args.timeout })
    }

    /// Returns the settings of a run in `out` that sends the saved request once.
    pub(super) fn settings(
        &self,
        recorded: &RecordedCase,
        target: &TargetChoice,
        out: &Utf8Path,
    ) -> Result<Settings, CommandError> {
        let run = recorded.reader.run();
        let base = match (target, recorded.request.program()) {
            (TargetChoice::BaseUrl(base), _) => base.expose(),
            // Not used: the program replaces the target below. A run against a program has no base URL to parse.
            (TargetChoice::Program(_), _) => "http://localhost",
            (TargetChoice::Recorded, Some(program)) => return Err(missing_program(program)),
            (TargetChoice::Recorded, None) => run.base_url.as_str(),
        };
        let base: BaseUrl = base.parse().map_err(|error| {
            CommandError::usage(error).hint("pass the address of the agent with `--base-url` or `--agent-cmd`")
        })?;
        let cases = recorded.folder.join(&run.cases_path);
        let mut settings = Settings::new(run.run_id.clone(), run.version, base, cases, out.to_owned());
        if let TargetChoice::Program(text) = target {
            settings.target = text.expose().parse::<AgentCommand>().map_err(CommandError::usage)?.into();
        }
        settings.protocol = recorded.request.protocol.parse().map_err(CommandError::usage)?;
        settings.agent = agent_options(&self.config.agent, &self.config.risk, None)?;
        // The recorded answer is redacted; without the same redaction, the secret would show as a difference.
        settings.secrets.clone_from(&self.secrets);
        settings.certificates = self.certificates.clone();
        certificates::check_environment(&settings.target)?;
        settings.resolve.clone_from(&self.resolve);
        settings.headers.clone_from(&self.headers);
        settings.timeout = self.timeout;
        // One attempt: a retried request would hide the failure that the user wants to see.
        settings.retry.retries = 0;
        settings.saved_request = Some(recorded.request.body.to_string().into_bytes());
        Ok(settings)
    }
}

impl TargetChoice {
    /// Returns the shell command that sends the request.
    pub(super) fn shell_command(&self, request: &SavedRequest) -> Result<String, CommandError> {
        match (self, request.program()) {
            (Self::Program(text), _) => {
                text.expose().parse::<AgentCommand>().map_err(CommandError::usage)?;
                let words = shell_words::split(text.expose()).map_err(CommandError::usage)?;
                Ok(request_command::pipeline(request, &words))
            }
            (_, Some(program)) => Err(missing_program(program)),
            (_, None) => Ok(request_command::curl_command(request)),
        }
    }
}

/// The error of a run against a program whose command line was not passed again.
fn missing_program(program: &str) -> CommandError {
    let program = escape_invisible(program);
    CommandError::usage(format!("the agent is the program `{program}`, whose arguments are not stored"))
        .hint("pass the command line of the run again with `--agent-cmd 'CMD'`")
}
