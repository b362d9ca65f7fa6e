//! `counterproof run`: what was typed becomes the settings of a run, and its summary becomes text and an exit code.

use std::env;
use std::num::NonZeroU32;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, Exit, RunId, Side, escape_invisible};
use counterproof_cases::{CaseSpec, Suite};
use counterproof_redaction::SHORTEST;
use counterproof_runner::{
    BaseUrl, ByteLimits, Checkout, Concurrency, Environment, Header, HeaderError, Interrupt, PhaseTimeouts, Rate,
    ResolveRule, RetryBudget, RetryPolicy, Secret, Settings, Urgency,
};

use crate::agent_args::AgentArgs;
use crate::cases_file;
use crate::command_error::CommandError;
use crate::config::{self, Config};
use crate::open_files;
use crate::reporter::{Style, Told};
use crate::resume_command::Retold;
use crate::run_plan::{self, Passes};
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::until_decided::{self, Rounds};
use crate::value_parsers::{at_least_one, bytes, time_span};

use super::outcome::{counted, next, run_error, tell};

/// Ask every case of an agent and keep what came back.
///
/// Sends `POST BASE_URL/run-case` (or the request of another `--protocol`) for each case and writes one run folder,
/// `RUNS/SIDE/RUN_ID/`, with one artifact for each case. A case that fails is an artifact too, and no error of this command.
/// A run that was stopped, in whatever way, is taken up where it was left with `--resume`.
///
/// Exit code 0: every case was asked. 2: the command line or the cases are wrong. 3: a file could not be read or written,
/// or the agent could not be reached at all or was given up. 4: interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The cases: a file (.json, .jsonl, .yaml) or a folder of them
    #[arg(long, value_name = "PATH")]
    pub(super) cases: Utf8PathBuf,

    /// Where the agent is. Credentials and query strings are sent, but never kept
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(long, value_name = "URL", default_value = "http://localhost:8787")]
    base_url: Secret,

    #[command(flatten)]
    agent: AgentArgs,

    /// The side that the run stands for
    #[arg(long, value_name = "baseline|new")]
    side: Side,

    #[command(flatten)]
    passes: run_plan::Options,

    /// Where the runs are kept
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    pub(super) out: Utf8PathBuf,

    /// Ask only these cases, in the order of the cases file; can be given several times
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    only: Vec<CaseId>,

    /// How many cases are asked at once; `auto` follows what the agent can take, up to 64 or, as `auto:N`, up to N
    #[arg(long, value_name = "N|auto", default_value = "1")]
    concurrency: Concurrency,

    /// Send no more requests than this, evenly spaced, such as 5/s or 100/m
    #[arg(long, value_name = "N/s")]
    rate: Option<Rate>,

    /// How long one attempt may take, such as 15s or 500ms
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time_span)]
    timeout: Duration,

    /// How long connecting may take, TLS included; at most three quarters of --timeout
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time_span, conflicts_with = "agent_cmd")]
    connect_timeout: Duration,

    /// How long an attempt may take up to the head of its response [default: as long as the attempt]
    #[arg(long, value_name = "TIME", value_parser = time_span, conflicts_with = "agent_cmd")]
    first_byte_timeout: Option<Duration>,

    /// Longest silence within a body
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time_span, conflicts_with = "agent_cmd")]
    idle_timeout: Duration,

    /// How often a case is tried again after a time-out, a network error, or status 408, 429 or 5xx
    #[arg(long, value_name = "N", default_value = "2")]
    retries: u32,

    /// How often all cases together may be tried again: a number, or a share of the cases such as 20% (at least 10)
    #[arg(long, value_name = "N|N%", default_value_t = RetryBudget::default())]
    retry_budget: RetryBudget,

    /// Do not try again after status 429: the case fails as `rate_limited`
    #[arg(long)]
    no_retry_429: bool,

    /// Give the agent up after so many cases in a row that ended in silence: no connection, no response in time, or status
    /// 502 to 504. The cases that are left are kept as failures named `not_run`
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    fail_fast: Option<NonZeroU32>,

    /// Send this header with every request; `env:VARIABLE` as the value reads it from the environment. Values are never kept
    #[arg(long = "header", value_name = "NAME:VALUE")]
    headers: Vec<Secret>,

    /// Keep the value of this environment variable out of every file; can be given several times. The values of headers,
    /// and credentials and query values of the base URL, need not be named
    #[arg(long = "secret", value_name = "env:VARIABLE")]
    secrets: Vec<Secret>,

    /// Send requests for this host of the base URL to this address
    #[arg(long, value_name = "HOST:ADDRESS:PORT", conflicts_with = "agent_cmd")]
    resolve: Vec<ResolveRule>,

    /// Largest body that is read; a case with a larger one fails
    #[arg(long, value_name = "BYTES", default_value_t = ByteLimits::default().body, value_parser = bytes)]
    max_body_bytes: usize,

    /// Largest answer, which is parsed in memory; a larger body goes to disk as it comes, and its case fails
    #[arg(long, value_name = "BYTES", default_value_t = ByteLimits::default().answer, value_parser = bytes)]
    max_answer_bytes: usize,

    /// Longest snippet of a failure's body within an artifact; the whole body is kept beside it
    #[arg(long, value_name = "BYTES", default_value_t = ByteLimits::default().snippet, value_parser = bytes)]
    max_snippet_bytes: usize,

    /// Largest payload of a tool within an artifact; a larger one is kept beside it
    #[arg(long, value_name = "BYTES", default_value_t = ByteLimits::default().payload, value_parser = bytes)]
    max_payload_bytes: usize,

    /// Do not keep the requests, which `counterproof replay` sends again: one file less for each case
    #[arg(long)]
    no_keep_requests: bool,

    /// How the run is told: `human` with a bar on a terminal, `plain` with a line for each event on standard error, `jsonl`
    /// with events as JSON Lines on standard output and nothing else there
    #[arg(long, value_name = "human|plain|jsonl", value_enum, hide_possible_values = true, default_value = "human")]
    pub(super) reporter: Style,

    /// Print what would be asked, and neither ask nor write anything
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, typed: &Retold, streams: &mut Streams) -> Result<Exit, CommandError> {
    let passes = args.passes.passes(|name| env::var(name).ok())?;
    let shared = args.settings(passes.id.clone())?;
    let suite = cases_file::load(&args.cases, streams)?;
    let cases = args.select(suite)?;
    if args.dry_run {
        return plan(&shared, &passes, &cases, streams);
    }
    let at_once = shared.concurrency.max().get().min(cases.len());
    if let Some(files) = open_files::allow(at_once) {
        streams.note(format_args!(
            "warning: {files} open files are allowed, too few for {} at once",
            counted(at_once, "case")
        ));
    }
    let here = Utf8PathBuf::from(".");
    let checkout = Checkout::discover(&here);
    let interrupt = Interrupt::default();
    let stop = interrupt.clone();
    on_signal(move || stop.trigger()).map_err(CommandError::io)?;
    let resume = typed.with(&format!("--resume {}", passes.id), &["run-id", "resume"]);
    let mut asking = Asking { args, checkout, interrupt, resume, streams };
    if args.passes.repeat_until_decided {
        return until_decided(&mut asking, &shared, &passes, &cases);
    }
    for pass in &passes.runs {
        let is_last = Some(pass) == passes.runs.last();
        if let Asked::Interrupted = asking.ask(&pass.settings(&shared), &cases, is_last)? {
            return Ok(Exit::Interrupted);
        }
    }
    next(args, &shared, &passes, streams);
    Ok(Exit::Done)
}

/// What all runs of one command have in common.
struct Asking<'a> {
    args: &'a Args,
    checkout: Option<Checkout>,
    interrupt: Interrupt,
    /// The command that goes on.
    resume: String,
    streams: &'a mut Streams,
}

/// How a run ended.
enum Asked {
    /// Every case was asked.
    All,
    /// It was stopped, and the person told how to go on.
    Interrupted,
}

impl Asking<'_> {
    /// Makes one run, and says how it went.
    fn ask(&mut self, settings: &Settings, cases: &[CaseSpec], is_last: bool) -> Result<Asked, CommandError> {
        let (checkout, interrupt) = (self.checkout.clone(), self.interrupt.clone());
        let environment = Environment { checkout, interrupt, ..Environment::of_system() };
        let mut told = Told::new(self.args.reporter, &mut self.streams.out);
        let summary = counterproof_runner::run(settings, cases, environment, &mut told);
        let failures = told.finish();
        let summary = summary.map_err(|error| run_error(error, &self.resume))?;
        tell(self.args, settings, &summary, &failures?, self.streams)?;
        if summary.interrupted || (self.interrupt.reached(Urgency::Finish) && !is_last) {
            self.streams.note(format_args!("interrupted; to go on: {}", self.resume));
            return Ok(Asked::Interrupted);
        }
        Ok(Asked::All)
    }
}

/// Makes runs until every case is decided, or as many as there may be.
fn until_decided(
    asking: &mut Asking<'_>,
    shared: &Settings,
    passes: &Passes,
    cases: &[CaseSpec],
) -> Result<Exit, CommandError> {
    let args = asking.args;
    if args.side != Side::New {
        return Err(CommandError::usage("--repeat-until-decided holds runs of the side new against a baseline")
            .hint("make the baseline with `--side baseline --repeat N`"));
    }
    let thresholds = Config::load(args.agent.config.as_deref())?.statistics;
    let max = u32::try_from(passes.runs.len()).unwrap_or(u32::MAX);
    let rounds = Rounds::new(&args.passes.against, cases, thresholds, max, asking.streams)?;
    let design = counterproof_runner::Rounds { against: rounds.against(), full: rounds.full() };
    let (mut open, mut folders, mut undecided) = (cases.to_vec(), Vec::new(), 0);
    for (round, pass) in (1..).zip(&passes.runs) {
        let settings = pass.round(shared, design.clone());
        if let Asked::Interrupted = asking.ask(&settings, &open, round == max)? {
            return Ok(Exit::Interrupted);
        }
        folders.push(settings.out.join(settings.side.as_str()).join(settings.run_id.as_str()));
        let standings = rounds.judge(&folders)?;
        rounds.tell(round, &standings, asking.streams);
        undecided = until_decided::undecided(&standings);
        if round >= design.full {
            open = until_decided::open_cases(cases, &standings);
        }
        if open.is_empty() {
            break;
        }
    }
    if undecided > 0 {
        asking.streams.note(format_args!("{} not decided", counted(undecided, "case")));
    }
    let names = |folders: &[Utf8PathBuf]| folders.iter().map(|folder| folder.as_str()).collect::<Vec<_>>().join(" ");
    asking.streams.note(format_args!(
        "next: counterproof compare --baseline {} --new {} --cases {}",
        names(&args.passes.against),
        names(&folders),
        args.cases
    ));
    Ok(Exit::Done)
}

impl Args {
    fn settings(&self, run_id: RunId) -> Result<Settings, CommandError> {
        let base_url: BaseUrl = self
            .base_url
            .expose()
            .parse()
            .map_err(|error| CommandError::usage(error).hint("write it like `--base-url http://localhost:8787`"))?;
        let headers = self.headers.iter().map(|text| Header::parse(text, |name| env::var(name).ok()));
        let headers = headers.collect::<Result<_, HeaderError>>().map_err(|error| {
            CommandError::usage(error).hint("write it like `--header authorization:env:AGENT_TOKEN`")
        })?;
        let config = Config::load(self.agent.config.as_deref())?;
        let mut settings = Settings {
            concurrency: self.concurrency,
            rate: self.rate,
            timeout: self.timeout,
            phases: PhaseTimeouts {
                connect: self.connect_timeout,
                first_byte: self.first_byte_timeout,
                idle: self.idle_timeout,
            },
            retry: RetryPolicy {
                retries: self.retries,
                rate_limited: !self.no_retry_429,
                budget: self.retry_budget,
                ..RetryPolicy::default()
            },
            fail_fast: self.fail_fast,
            limits: ByteLimits {
                body: self.max_body_bytes,
                answer: self.max_answer_bytes,
                snippet: self.max_snippet_bytes,
                payload: self.max_payload_bytes,
            },
            headers,
            keep_requests: !self.no_keep_requests,
            secrets: secrets(&self.secrets, &config.secrets)?,
            resolve: self.resolve.clone(),
            ..Settings::new(run_id, self.side, base_url, self.cases.clone(), self.out.clone())
        };
        self.agent.apply(config, &mut settings)?;
        Ok(settings)
    }

    /// The cases to ask, in the suite's order.
    fn select(&self, suite: Suite) -> Result<Vec<CaseSpec>, CommandError> {
        if self.only.is_empty() {
            return Ok(suite.cases);
        }
        let known = |id: &CaseId| suite.cases.iter().any(|case| case.id == *id);
        let unknown: Vec<_> = self.only.iter().filter(|id| !known(id)).collect();
        if let Some(first) = unknown.first() {
            let listed: Vec<_> = unknown.iter().map(|id| format!("`{id}`")).collect();
            let message = format!("`{}` has no case {}", self.cases, listed.join(", "));
            return Err(CommandError::usage(message).hint(match suite.nearest(first) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`--dry-run` without `--only` lists the cases".to_owned(),
            }));
        }
        Ok(suite.cases.into_iter().filter(|case| self.only.contains(&case.id)).collect())
    }
}

/// The values of the named variables, and of those that the configuration names and that are set.
fn secrets(named: &[Secret], configured: &config::Secrets) -> Result<Vec<Secret>, CommandError> {
    let mut values = Vec::new();
    for text in named {
        // What was typed is not quoted: it may be the secret itself.
        let variable = text.expose().strip_prefix("env:").ok_or_else(|| {
            CommandError::usage("a secret is named by the environment variable that holds it")
                .hint("write it like `--secret env:AGENT_TOKEN`: everybody can see the values on a command line")
        })?;
        let value = env::var(variable).map_err(|_| {
            CommandError::usage(format!(
                "a secret is to come from the environment variable `{variable}`, which is not set"
            ))
        })?;
        values.push((variable.to_owned(), value));
    }
    values.extend(configured.values(|variable| env::var(variable).ok()));
    let long_enough = |(variable, value): (String, String)| {
        if value.len() >= SHORTEST {
            return Ok(Secret::from(value));
        }
        let message = format!("the secret in `{variable}` has fewer than {} bytes", SHORTEST);
        Err(CommandError::usage(message).hint("texts so short are everywhere: they cannot be kept out of files"))
    };
    values.into_iter().map(long_enough).collect()
}

fn plan(shared: &Settings, passes: &Passes, cases: &[CaseSpec], streams: &mut Streams) -> Result<Exit, CommandError> {
    let side = shared.side;
    let part = passes.runs.first().and_then(|pass| pass.part.as_ref());
    let is_ours = |case: &&CaseSpec| part.is_none_or(|part| part.shard.holds(&case.id));
    streams.say(format_args!(
        "would ask {} as side {side} at {}, with up to {} for each",
        counted(cases.iter().filter(is_ours).count(), "case"),
        shared.recorded_url(),
        counted(shared.retry.retries as usize + 1, "attempt"),
    ))?;
    for case in cases.iter().filter(is_ours) {
        // A title is free text; no terminal should obey it.
        let title = case.title.as_deref().map(|title| format!("  {}", escape_invisible(title))).unwrap_or_default();
        streams.say(format_args!("  {}{title}", case.id))?;
    }
    for pass in &passes.runs {
        streams.say(format_args!("would write {}", shared.out.join(side.as_str()).join(pass.run_id.as_str())))?;
    }
    Ok(Exit::Done)
}
