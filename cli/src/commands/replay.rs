//! `counterproof replay`: sends a recorded request again and compares the answer with the recorded one.

use std::env;
use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Case, CaseId, Exit, Href, escape_invisible};
use counterproof_cases::{CaseSpec, Expected, Input, Metadata};
use counterproof_evaluator::{
    Artifact, ComparedRun, Differences, Rules, WithEvidence, action_message, first_divergence, follow_evidence,
    output_message,
};
use counterproof_runner::{
    AgentCommand, BaseUrl, Environment, Header, HeaderError, REQUEST_HREF, ResolveRule, SavedRequest, Secret, Settings,
    Silent,
};
use counterproof_store::{ASSETS_FOLDER, RunReader, confined_path};

use crate::agent_args::agent_options;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::connect_error::connect_error;
use crate::request_command;
use crate::streams::Streams;
use crate::value_parsers::duration;

/// Send the recorded request of a case again and show how the answer differs.
///
/// Takes an artifact with a saved request, sends the request once, and writes nothing. In the output, baseline is the recorded
/// answer and new is the current one.
///
/// Exit code 0: the answers are equivalent. 1: they differ, or there is no answer. 2: the artifact has no request that can be sent.
/// 3: a file could not be read, or the agent could not be reached.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Artifact of the case, in its run folder
    #[arg(value_name = "CASE.json")]
    case: Utf8PathBuf,

    /// Base URL of the agent [default: the base URL of the run]
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(long, value_name = "URL")]
    base_url: Option<Secret>,

    /// Run this program instead of calling a server. Required if the run used a program, because its arguments are never stored
    #[arg(long, value_name = "CMD", conflicts_with = "base_url")]
    agent_cmd: Option<Secret>,

    /// Send this header with the request; can be repeated
    ///
    /// A value of `env:VARIABLE` is read from the environment. Pass the headers of the run again, because their values are not stored.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    headers: Vec<Secret>,

    /// Connect to ADDRESS:PORT for requests to HOST; HOST is the host of the base URL
    #[arg(long, value_name = "HOST:ADDRESS:PORT", conflicts_with = "agent_cmd")]
    resolve: Vec<ResolveRule>,

    /// Configuration file with `[agent]`, `[risk]`, `[secrets]` and the comparison rules [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,

    /// Timeout of the request, such as 15s or 500ms
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    timeout: Duration,

    /// Print a shell command that sends the request, and send nothing
    ///
    /// The command is a `curl` call with `$NAME` in place of each header value; with --agent-cmd, a pipeline to the program.
    #[arg(long)]
    curl: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let recorded = RecordedCase::read(&args.case)?;
    if args.curl {
        streams.print_line(args.shell_command(&recorded.request)?)?;
        return Ok(Exit::Done);
    }
    if recorded.request.masked {
        streams.warn("the saved request has a redacted secret, so it differs from the request that was sent");
    }
    let temporary = tempfile::tempdir().map_err(CommandError::io)?;
    let out = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| CommandError::io("the path of the temporary folder is not UTF-8"))?;
    let config = Config::load(args.config.as_deref())?;
    let settings = args.settings(&recorded, out, &config)?;
    let cases = [placeholder_case(&recorded.case_id)];
    let summary = counterproof_runner::run(&settings, &cases, Environment::from_system(), &mut Silent)
        .map_err(CommandError::io)?;
    if !summary.reached {
        return Err(connect_error(&settings.target, &summary.folder, Some(&recorded.case_id)));
    }
    let replayed = RunReader::open(&summary.folder).map_err(CommandError::io)?;
    let baseline = ComparedRun::new(recorded.reader).load(&recorded.case_id);
    let new = ComparedRun::new(replayed).load(&recorded.case_id);
    print_differences(&baseline, &new, &config.rules, streams)
}

/// A recorded case with its saved request.
struct RecordedCase {
    folder: Utf8PathBuf,
    reader: RunReader,
    case_id: CaseId,
    request: SavedRequest,
}

impl RecordedCase {
    fn read(path: &Utf8Path) -> Result<Self, CommandError> {
        let case: Case = serde_json::from_slice(&read(path)?).map_err(|error| {
            CommandError::usage(format!("`{path}` is not the artifact of a case: {error}"))
                .hint(format!("list all violations with `counterproof validate {path}`"))
        })?;
        let folder = match path.parent() {
            Some(folder) if folder != "" => folder.to_owned(),
            _ => ".".into(),
        };
        let no_request = || {
            CommandError::usage(format!("`{path}` has no saved request"))
                .hint("run the case again without `--no-keep-requests`")
        };
        let href = case.extra.get(REQUEST_HREF).and_then(|href| href.as_str()).ok_or_else(no_request)?;
        let href: Href = href.parse().map_err(CommandError::usage)?;
        if !href.as_str().starts_with(&format!("{ASSETS_FOLDER}/")) {
            return Err(no_request());
        }
        let file = confined_path::resolve(&folder, href.as_str()).map_err(CommandError::io)?;
        let request = serde_json::from_slice(&read(&file)?)
            .map_err(|error| CommandError::usage(format!("`{file}` is not a saved request: {error}")))?;
        let reader = RunReader::open(&folder).map_err(CommandError::io)?;
        Ok(Self { folder, reader, case_id: case.case_id, request })
    }
}

fn read(path: &Utf8Path) -> Result<Vec<u8>, CommandError> {
    fs::read(path).map_err(|error| CommandError::io(format!("failed to read `{path}`: {error}")))
}

impl Args {
    /// Returns the shell command that sends the request.
    fn shell_command(&self, request: &SavedRequest) -> Result<String, CommandError> {
        match (&self.agent_cmd, request.program()) {
            (Some(text), _) => {
                text.expose().parse::<AgentCommand>().map_err(CommandError::usage)?;
                let words = shell_words::split(text.expose()).map_err(CommandError::usage)?;
                Ok(request_command::pipeline(request, &words))
            }
            (None, Some(program)) => Err(missing_program(program)),
            (None, None) => Ok(request_command::curl_command(request)),
        }
    }

    fn settings(&self, recorded: &RecordedCase, out: &Utf8Path, config: &Config) -> Result<Settings, CommandError> {
        let run = recorded.reader.run();
        let base = match (&self.base_url, &self.agent_cmd, recorded.request.program()) {
            (Some(base), _, _) => base.expose(),
            // Not used: the program replaces the target below. A run against a program has no base URL to parse.
            (None, Some(_), _) => "http://localhost",
            (None, None, Some(program)) => return Err(missing_program(program)),
            (None, None, None) => run.base_url.as_str(),
        };
        let base: BaseUrl = base.parse().map_err(|error| {
            CommandError::usage(error).hint("pass the address of the agent with `--base-url` or `--agent-cmd`")
        })?;
        let headers = self.headers.iter().map(|text| Header::parse(text, |name| env::var(name).ok()));
        let headers = headers.collect::<Result<_, HeaderError>>().map_err(CommandError::usage)?;
        let cases = recorded.folder.join(&run.cases_path);
        let mut settings = Settings::new(run.run_id.clone(), run.version, base, cases, out.to_owned());
        if let Some(text) = &self.agent_cmd {
            settings.target = text.expose().parse::<AgentCommand>().map_err(CommandError::usage)?.into();
        }
        settings.protocol = recorded.request.protocol.parse().map_err(CommandError::usage)?;
        settings.agent = agent_options(&config.agent, &config.risk, None)?;
        // The recorded answer is redacted; without the same redaction, the secret would show as a difference.
        let values = config.secrets.values(|name| env::var(name).ok()).into_iter();
        settings.secrets = values.map(|(_, value)| Secret::from(value)).collect();
        settings.resolve.clone_from(&self.resolve);
        settings.headers = headers;
        settings.timeout = self.timeout;
        settings.retry.retries = 0;
        settings.saved_request = Some(recorded.request.body.to_string().into_bytes());
        Ok(settings)
    }
}

/// The error of a run against a program whose command line was not passed again.
fn missing_program(program: &str) -> CommandError {
    let program = escape_invisible(program);
    CommandError::usage(format!("the agent is the program `{program}`, whose arguments are not stored"))
        .hint("pass the command line of the run again with `--agent-cmd 'CMD'`")
}

/// Returns a case with the given ID and no content: the runner resends the saved request and reads only the ID.
fn placeholder_case(id: &CaseId) -> CaseSpec {
    CaseSpec {
        id: id.clone(),
        title: None,
        input: Input { user: String::new(), context: None, extra: counterproof_artifact::Extra::new() },
        expected: Expected::default(),
        metadata: Metadata::default(),
        suite: None,
        extra: counterproof_artifact::Extra::new(),
    }
}

fn print_differences(
    baseline: &Artifact,
    new: &Artifact,
    rules: &Rules,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let (Some(old), Some(other)) = (baseline.answer(), new.answer()) else {
        let message = first_divergence(baseline, new, None).map(|divergence| divergence.message);
        streams.print_line(message.unwrap_or_else(|| "one of the two artifacts violates the contract".to_owned()))?;
        return Ok(Exit::Findings);
    };
    let (old_evidence, new_evidence) = (follow_evidence(old), follow_evidence(other));
    let differences = Differences::between(
        WithEvidence { loaded: old, evidence: &old_evidence },
        WithEvidence { loaded: other, evidence: &new_evidence },
        rules,
    );
    if differences.is_empty() {
        streams.print_line("the answers are equivalent")?;
        return Ok(Exit::Done);
    }
    streams.print_line("the answers differ:")?;
    if let Some(first) = first_divergence(baseline, new, Some(&differences)) {
        streams.print_line(format_args!("  first divergence: {}", first.message))?;
    }
    for row in differences.actions.iter().filter(|row| !row.is_same()) {
        let sentence = action_message(row, &old.answer.proposed_actions, &other.answer.proposed_actions);
        streams.print_line(format_args!("  action: {sentence}"))?;
    }
    streams.print_line(format_args!("  {}", output_message(&differences.output)))?;
    Ok(Exit::Findings)
}
