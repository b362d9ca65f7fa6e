//! `counterproof replay`: a kept request, sent again, and how the answer differs from the one on record.

use std::env;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Case, CaseId, Exit, Href, escape_invisible};
use counterproof_cases::{CaseSpec, Expected, Input, Metadata};
use counterproof_evaluator::diff::{Differences, WithEvidence};
use counterproof_evaluator::load::evidence;
use counterproof_evaluator::load::{Artifact, ComparedRun};
use counterproof_evaluator::messages;
use counterproof_evaluator::messages::divergence;
use counterproof_evaluator::rules::Rules;
use counterproof_runner::{
    AgentCommand, BaseUrl, Environment, Header, HeaderError, REQUEST_HREF, ResolveRule, SavedRequest, Secret, Settings,
    Silent,
};
use counterproof_store::confined_path;
use counterproof_store::{ASSETS_FOLDER, RunReader};

use crate::agent_args;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::connect_error;
use crate::request_command;
use crate::streams::Streams;
use crate::value_parsers::time_span;

/// Send the request of a case again and show how the answer differs.
///
/// Takes an artifact whose request was kept, sends the same request once, and writes nothing. In what it says, baseline is the
/// answer on record and new is the one that came now.
///
/// Exit code 0: the answer means the same. 1: it differs, or there is none. 2: the artifact has no request that can be sent.
/// 3: a file could not be read, or the agent could not be reached.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The artifact, within its run folder
    #[arg(value_name = "CASE.json")]
    case: Utf8PathBuf,

    /// Where the agent is [default: where the run has asked it]
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(long, value_name = "URL")]
    base_url: Option<Secret>,

    /// Ask this program instead of a server. Where the run has asked a program it has to be named again: its arguments are kept
    /// nowhere
    #[arg(long, value_name = "CMD", conflicts_with = "base_url")]
    agent_cmd: Option<Secret>,

    /// Send this header too; `env:VARIABLE` as the value reads it from the environment. Values of the run's headers were not kept
    #[arg(long = "header", value_name = "NAME:VALUE")]
    headers: Vec<Secret>,

    /// Send requests for this host of the base URL to this address
    #[arg(long, value_name = "HOST:ADDRESS:PORT", conflicts_with = "agent_cmd")]
    resolve: Vec<ResolveRule>,

    /// The configuration with `[risk]` and `[secrets]` [default: counterproof.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,

    /// How long the answer may take, such as 15s or 500ms
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time_span)]
    timeout: Duration,

    /// Print the command that sends the request, with `$NAME` where a header's value belongs, and send nothing; with
    /// --agent-cmd the pipe that asks the program
    #[arg(long)]
    curl: bool,
}

/// A case on record and its request.
struct Recorded {
    folder: Utf8PathBuf,
    reader: RunReader,
    case_id: CaseId,
    request: SavedRequest,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let recorded = Recorded::read(&args.case)?;
    if args.curl {
        streams.say(args.printed(&recorded.request)?)?;
        return Ok(Exit::Done);
    }
    if recorded.request.masked {
        streams.note("warning: a secret was masked in the kept request, so this is not quite what was sent");
    }
    let temporary = tempfile::tempdir().map_err(CommandError::io)?;
    let out = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| CommandError::io("the path of the temporary folder is not UTF-8"))?;
    let config = Config::load(args.config.as_deref())?;
    let rules = config.rules.clone();
    let settings = args.settings(&recorded, out, config)?;
    let summary =
        counterproof_runner::run(&settings, &[spec(&recorded.case_id)], Environment::of_system(), &mut Silent)
            .map_err(CommandError::io)?;
    if !summary.reached {
        return Err(connect_error::error(&settings.target, &summary.folder, Some(&recorded.case_id)));
    }
    let replayed = RunReader::open(&summary.folder).map_err(CommandError::io)?;
    let baseline = ComparedRun::new(recorded.reader).load(&recorded.case_id);
    let new = ComparedRun::new(replayed).load(&recorded.case_id);
    show(&baseline, &new, &rules, streams)
}

impl Recorded {
    fn read(path: &Utf8Path) -> Result<Self, CommandError> {
        let bytes =
            std::fs::read(path).map_err(|error| CommandError::io(format!("failed to read `{path}`: {error}")))?;
        let case: Case = serde_json::from_slice(&bytes).map_err(|error| {
            CommandError::usage(format!("`{path}` is no artifact of a case: {error}"))
                .hint("`counterproof validate` says what is wrong with it")
        })?;
        let folder = match path.parent() {
            Some(folder) if folder != "" => folder.to_owned(),
            _ => ".".into(),
        };
        let none = || {
            CommandError::usage(format!("`{path}` has no request that was kept"))
                .hint("`counterproof run` keeps requests, unless `--no-keep-requests` is given")
        };
        let href = case.extra.get(REQUEST_HREF).and_then(|href| href.as_str()).ok_or_else(none)?;
        let href: Href = href.parse().map_err(CommandError::usage)?;
        if !href.as_str().starts_with(&format!("{ASSETS_FOLDER}/")) {
            return Err(none());
        }
        let file = confined_path::resolve(&folder, href.as_str()).map_err(CommandError::io)?;
        let request =
            std::fs::read(&file).map_err(|error| CommandError::io(format!("failed to read `{file}`: {error}")))?;
        let request = serde_json::from_slice(&request)
            .map_err(|error| CommandError::usage(format!("`{file}` is no kept request: {error}")))?;
        let reader = RunReader::open(&folder).map_err(CommandError::io)?;
        Ok(Self { folder, reader, case_id: case.case_id, request })
    }
}

impl Args {
    /// The command that sends the request.
    fn printed(&self, request: &SavedRequest) -> Result<String, CommandError> {
        match (&self.agent_cmd, request.program()) {
            (Some(text), _) => {
                text.expose().parse::<AgentCommand>().map_err(CommandError::usage)?;
                let words = shell_words::split(text.expose()).map_err(CommandError::usage)?;
                Ok(request_command::pipe(request, &words))
            }
            (None, Some(program)) => Err(unnamed(program)),
            (None, None) => Ok(request_command::command(request)),
        }
    }

    fn settings(&self, recorded: &Recorded, out: &Utf8Path, config: Config) -> Result<Settings, CommandError> {
        let run = recorded.reader.run();
        // A run of a program has no base URL; then the command takes its place below.
        let base = match (&self.base_url, &self.agent_cmd, recorded.request.program()) {
            (Some(base), _, _) => base.expose(),
            (None, Some(_), _) => "http://localhost",
            (None, None, Some(program)) => return Err(unnamed(program)),
            (None, None, None) => run.base_url.as_str(),
        };
        let base: BaseUrl = base.parse().map_err(|error| {
            CommandError::usage(error).hint("`--base-url` or `--agent-cmd` says where the agent is")
        })?;
        let headers = self.headers.iter().map(|text| Header::parse(text, |name| env::var(name).ok()));
        let headers = headers.collect::<Result<_, HeaderError>>().map_err(CommandError::usage)?;
        let cases = recorded.folder.join(&run.cases_path);
        let mut settings = Settings::new(run.run_id.clone(), run.version, base, cases, out.to_owned());
        if let Some(text) = &self.agent_cmd {
            settings.target = text.expose().parse::<AgentCommand>().map_err(CommandError::usage)?.into();
        }
        settings.protocol = recorded.request.protocol.parse().map_err(CommandError::usage)?;
        let Config { agent, risk, secrets, .. } = config;
        settings.agent = agent_args::options(agent, risk, None)?;
        // What was masked on record is masked in the answer that comes now, or it would show as a difference.
        let values = secrets.values(|name| env::var(name).ok()).into_iter();
        settings.secrets = values.map(|(_, value)| Secret::from(value)).collect();
        settings.resolve.clone_from(&self.resolve);
        settings.headers = headers;
        settings.timeout = self.timeout;
        settings.retry.retries = 0;
        settings.resend = Some(recorded.request.body.to_string().into_bytes());
        Ok(settings)
    }
}

/// The agent is a program, and nothing on record says how it is started.
fn unnamed(program: &str) -> CommandError {
    let program = escape_invisible(program);
    CommandError::usage(format!("the agent is the program `{program}`, and its arguments are kept nowhere"))
        .hint("name it again, as `counterproof run` was told: `--agent-cmd 'CMD'`")
}

/// The runner asks cases; of this one only the id matters, because its request is there already.
fn spec(id: &CaseId) -> CaseSpec {
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

fn show(baseline: &Artifact, new: &Artifact, rules: &Rules, streams: &mut Streams) -> Result<Exit, CommandError> {
    let differences = match (baseline.answer(), new.answer()) {
        (Some(old), Some(other)) => {
            let (old_evidence, new_evidence) = (evidence::follow(old), evidence::follow(other));
            let old_side = WithEvidence { loaded: old, evidence: &old_evidence };
            let new_side = WithEvidence { loaded: other, evidence: &new_evidence };
            let found = Differences::between(old_side, new_side, rules);
            Some((found, old, other))
        }
        _ => None,
    };
    let Some((found, old, other)) = differences else {
        let message = divergence::first(baseline, new, None).map(|divergence| divergence.message);
        streams.say(message.unwrap_or_else(|| "one of the two artifacts breaks the contract".to_owned()))?;
        return Ok(Exit::Findings);
    };
    if found.is_empty() {
        streams.say("the answer means the same")?;
        return Ok(Exit::Done);
    }
    streams.say("the answer differs:")?;
    if let Some(first) = divergence::first(baseline, new, Some(&found)) {
        streams.say(format_args!("  first: {}", first.message))?;
    }
    for row in found.actions.iter().filter(|row| !row.is_same()) {
        let sentence = messages::action(row, &old.answer.proposed_actions, &other.answer.proposed_actions);
        streams.say(format_args!("  action: {sentence}"))?;
    }
    streams.say(format_args!("  {}", messages::output(&found.output)))?;
    Ok(Exit::Findings)
}
