//! `counterproof replay`: sends a recorded request again and compares the answer with the recorded one.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Case, CaseId, Exit, Href, REQUEST_ASSET_HREF, escape_invisible};
use counterproof_cases::{CaseSpec, Expected, Input, Metadata};
use counterproof_evaluator::{Artifact, ComparedRun, Differences, Rules, WithEvidence, follow_evidence, messages};
use counterproof_runner::{
    AgentCommand, AgentOptions, BaseUrl, Environment, ResolveRule, SavedRequest, Secret, Settings, Silent,
};
use counterproof_store::{ASSETS_FOLDER, RunReader, confined_path, read_file};

use crate::agent_args::agent_options;
use crate::command_error::{CommandError, connect_error};
use crate::config::Config;
use crate::side_agent::SideAgent;
use crate::streams::Streams;
use crate::value_parsers::duration;
use crate::{agent_args, document_errors, environment, resume_command};

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

    /// Run this program instead of calling a server. Required if the run used a program, because its arguments are not recorded
    #[arg(long, value_name = "CMD", conflicts_with = "base_url")]
    agent_cmd: Option<Secret>,

    /// Send this header with the request; can be repeated
    ///
    /// A value of `env:VARIABLE` is read from the environment. Pass the headers of the run again, because their values are not stored.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    headers: Vec<Secret>,

    /// Redact the value of this environment variable; can be repeated. Pass the secrets of the run again
    ///
    /// The recorded answer is redacted. Without the same secrets, a repeated secret would show as a difference.
    #[arg(long = "secret", value_name = "env:VARIABLE")]
    secrets: Vec<Secret>,

    /// Also trust the certificates in this PEM file, such as the certificate of your own authority
    #[arg(long, value_name = "FILE", conflicts_with = "agent_cmd")]
    ca_file: Option<Utf8PathBuf>,

    /// Connect to ADDRESS:PORT for requests to HOST; HOST is the host of the base URL
    #[arg(long, value_name = "HOST:ADDRESS:PORT", conflicts_with = "agent_cmd")]
    resolve: Vec<ResolveRule>,

    /// Configuration file [default: counterproof.toml, if it exists]
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

/// Returns the settings of a run in `out` that sends the saved request once.
fn settings(args: &Args, config: &Config, recorded: &RecordedCase, out: &Utf8Path) -> Result<Settings, CommandError> {
    let run = recorded.reader.run();
    let base = match (&args.base_url, &args.agent_cmd, recorded.request.program()) {
        (Some(base), ..) => base.expose(),
        // Not used: the program replaces the target below. A run against a program has no base URL to parse.
        (None, Some(_), _) => "http://localhost",
        (None, None, Some(program)) => return Err(missing_program(program)),
        (None, None, None) => run.base_url.as_str(),
    };
    let base: BaseUrl = base.parse().map_err(|error| {
        CommandError::usage(error).hint("pass the address of the agent with `--base-url` or `--agent-cmd`")
    })?;
    let cases = recorded.folder.join(&run.cases_path);
    let mut settings = Settings {
        protocol: recorded.request.protocol.parse().map_err(CommandError::usage)?,
        agent: agent_options(&AgentOptions::default(), &config.agent, &config.risk, None)?,
        headers: environment::headers(&args.headers).map_err(CommandError::usage)?,
        // The recorded answer is redacted; without the same redaction, the secret would show as a difference.
        secrets: environment::secrets(&args.secrets, &config.secrets)?,
        certificates: environment::trusted(args.ca_file.as_deref())?,
        resolve: args.resolve.clone(),
        timeout: args.timeout,
        saved_request: Some(recorded.request.body_text().into_bytes()),
        ..Settings::new(run.run_id.clone(), run.version, base, cases, out.to_owned())
    };
    // One attempt: a retried request would hide the failure that the user wants to see.
    settings.retry.retries = 0;
    if let Some(text) = &args.agent_cmd {
        settings.target = text.expose().parse::<AgentCommand>().map_err(CommandError::usage)?.into();
    }
    let agent = SideAgent::of_table(run.version, config.side.get(run.version));
    agent.apply_http(&mut settings)?;
    environment::check_environment(&settings.target)?;
    Ok(settings)
}

/// Returns the shell command that sends the request.
fn shell_command(args: &Args, request: &SavedRequest) -> Result<String, CommandError> {
    match (&args.agent_cmd, request.program()) {
        (Some(text), _) => {
            // Parsed for its errors, which are those of a replay that sends.
            text.expose().parse::<AgentCommand>().map_err(CommandError::usage)?;
            let words = shell_words::split(text.expose()).map_err(CommandError::usage)?;
            Ok(agent_args::pipeline(request, &words))
        }
        (None, Some(program)) => Err(missing_program(program)),
        (None, None) => Ok(agent_args::curl_command(request)),
    }
}

fn missing_program(program: &str) -> CommandError {
    let program = escape_invisible(program);
    CommandError::usage(format!("the agent is the program `{program}`, whose arguments are not stored"))
        .hint("pass the command line of the run again with `--agent-cmd 'CMD'`")
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let recorded = RecordedCase::read(&args.case)?;
    if args.curl {
        // Before the configuration and the headers are read: a printed command has `$NAME` in place of each header value, so it does
        // not need the variables to be set.
        streams.print_line(shell_command(args, &recorded.request)?)?;
        return Ok(Exit::Done);
    }
    let config = Config::load(args.config.as_deref())?;
    if recorded.request.masked {
        streams.warn("the saved request has a redacted secret, so it differs from the request that was sent");
    }
    // The runner writes a run folder; a replay leaves nothing behind.
    let temporary = tempfile::tempdir().map_err(CommandError::io)?;
    let out = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| CommandError::io("the path of the temporary folder is not UTF-8"))?;
    let settings = settings(args, &config, &recorded, out)?;
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

/// Returns a case with the given ID and no content: the runner resends the saved request and reads only the ID.
fn placeholder_case(id: &CaseId) -> CaseSpec {
    CaseSpec {
        id: id.clone(),
        title: None,
        input: Input { user: String::new(), context: None, extra: counterproof_artifact::Extra::new() },
        turns: Vec::new(),
        tool_results: serde_json::Map::new(),
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
        let message = messages::first_divergence(baseline, new, None).map(|divergence| divergence.message);
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
    if let Some(first) = messages::first_divergence(baseline, new, Some(&differences)) {
        streams.print_line(format_args!("  first divergence: {}", first.message))?;
    }
    for row in differences.actions.iter().filter(|row| !row.is_same()) {
        let sentence = messages::action(row, &old.answer.proposed_actions, &other.answer.proposed_actions);
        streams.print_line(format_args!("  action: {sentence}"))?;
    }
    streams.print_line(format_args!("  {}", messages::output(&differences.output)))?;
    Ok(Exit::Findings)
}

/// A recorded case with its saved request.
struct RecordedCase {
    folder: Utf8PathBuf,
    reader: RunReader,
    case_id: CaseId,
    request: SavedRequest,
}

impl RecordedCase {
    /// Reads the artifact of a case, its saved request and its run.
    fn read(path: &Utf8Path) -> Result<Self, CommandError> {
        let bytes = read(path).map_err(|error| {
            let hint = "pass the artifact of a case, such as `runs/new/ID/CASE.json`";
            if path.exists() { error } else { error.hint(hint) }
        })?;
        let case: Case = serde_json::from_slice(&bytes).map_err(|error| {
            // `validate` would accept a document of another kind, so its findings would not help.
            match document_errors::other_kind(path, "case.") {
                Some(kind) => {
                    CommandError::usage(format!("`{path}` is a `{kind}` document, not the artifact of a case"))
                        .hint("pass the artifact of a case: `CASE.json` in a run folder")
                }
                None => CommandError::usage(format!("`{path}` is not the artifact of a case: {error}"))
                    .hint(format!("list all violations with `counterproof validate {}`", resume_command::path(path))),
            }
        })?;
        // The parent of a bare file name is an empty path.
        let folder = match path.parent() {
            Some(folder) if folder != "" => folder.to_owned(),
            _ => ".".into(),
        };
        let no_request = || {
            CommandError::usage(format!("`{path}` has no saved request"))
                .hint("run the case again without `--no-keep-requests`")
        };
        let href = case.extra.get(REQUEST_ASSET_HREF).and_then(|href| href.as_str()).ok_or_else(no_request)?;
        let href: Href = href.parse().map_err(CommandError::usage)?;
        // Another document of the run is not a request, even if the artifact names it.
        if !href.as_str().starts_with(&format!("{ASSETS_FOLDER}/")) {
            return Err(no_request());
        }
        // The artifact may come from elsewhere: its href must not lead out of the run folder.
        let file = confined_path::resolve(&folder, href.as_str()).map_err(CommandError::io)?;
        let request = serde_json::from_slice(&read(&file)?)
            .map_err(|error| CommandError::usage(format!("`{file}` is not a saved request: {error}")))?;
        let reader = RunReader::open(&folder).map_err(CommandError::io)?;
        Ok(Self { folder, reader, case_id: case.case_id, request })
    }
}

fn read(path: &Utf8Path) -> Result<Vec<u8>, CommandError> {
    read_file::read(path, read_file::MAX_DOCUMENT_BYTES)
        .map_err(|error| CommandError::io(format!("failed to read `{path}`: {error}")))
}
