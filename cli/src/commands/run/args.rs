//! The arguments of `counterproof run`, and what they mean together with the environment and the configuration.

use std::env;
use std::num::NonZeroU32;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, RunId, Side};
use counterproof_evaluator::{Rules, Thresholds};
use counterproof_runner::{
    BaseUrl, ByteLimits, Concurrency, PhaseTimeouts, Rate, ResolveRule, RetryBudget, RetryPolicy, Secret, Settings,
};

use crate::agent_args::AgentArgs;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::environment;
use crate::reporter::ReporterKind;
use crate::run_plan::{ConfirmRuns, PlanArgs, RunPlan};
use crate::value_parsers::{at_least_one, bytes, duration};

/// Run cases against an agent and record the answers.
///
/// Sends `POST BASE_URL/run-case` (or the request of another `--protocol`) for each case and writes one run folder,
/// `RUNS/SIDE/RUN_ID/`, with one artifact per case. A failed case also gets an artifact and does not fail the command.
/// `--resume` continues a run that was stopped.
///
/// Exit code 0: every case was run. 2: the arguments or the cases are invalid. 3: a file could not be read or written, the
/// agent could not be reached, or `--fail-fast` stopped the run. 4: interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Cases to run: a file (.json, .jsonl, .yaml) or a folder of such files
    #[arg(long, value_name = "PATH")]
    pub(super) cases: Utf8PathBuf,

    /// Base URL of the agent. Credentials and the query string are sent, but never stored
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(long, value_name = "URL", default_value = "http://localhost:8787")]
    pub(super) base_url: Secret,

    #[command(flatten)]
    pub(super) agent: AgentArgs,

    /// Side of the comparison that this run belongs to
    #[arg(long, value_name = "baseline|new")]
    pub(super) side: Side,

    #[command(flatten)]
    pub(super) plan: PlanArgs,

    /// Folder of all runs
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    pub(super) out: Utf8PathBuf,

    /// Run only these cases, in the order of the cases file; can be repeated
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub(super) only: Vec<CaseId>,

    /// Maximum number of cases in flight
    ///
    /// `auto` adapts to the load that the agent can handle, up to 64 cases; `auto:N` up to N cases.
    #[arg(long, value_name = "N|auto", default_value = "1")]
    pub(super) concurrency: Concurrency,

    /// Maximum request rate, evenly spaced, such as 5/s or 100/m
    #[arg(long, value_name = "N/s")]
    pub(super) rate: Option<Rate>,

    /// Timeout of one attempt, such as 15s or 500ms
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    pub(super) timeout: Duration,

    /// Timeout for connecting, including TLS; at most three quarters of --timeout
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, conflicts_with = "agent_cmd")]
    pub(super) connect_timeout: Duration,

    /// Timeout until the response headers arrive [default: --timeout]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "agent_cmd")]
    pub(super) first_byte_timeout: Option<Duration>,

    /// Timeout between two chunks of a response body
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, conflicts_with = "agent_cmd")]
    pub(super) idle_timeout: Duration,

    /// Maximum number of retries of a case after a timeout, a network error, or status 408, 429 or 5xx
    #[arg(long, value_name = "N", default_value = "2")]
    pub(super) retries: u32,

    /// Maximum number of retries of all cases together: a number, or a percentage of the cases such as 20% (at least 10)
    #[arg(long, value_name = "N|N%", default_value_t = RetryBudget::default())]
    pub(super) retry_budget: RetryBudget,

    /// Do not retry after status 429: the case fails as `rate_limited`
    #[arg(long)]
    pub(super) no_retry_429: bool,

    /// Stop the run after N consecutive cases that indicate an agent that is down
    ///
    /// Counted are cases without a connection, without a response before the timeout, or with status 502 to 504. The remaining cases are
    /// recorded as failures named `not_run`.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) fail_fast: Option<NonZeroU32>,

    /// Send this header with every request; can be repeated
    ///
    /// A value of `env:VARIABLE` is read from the environment. Header values are never stored.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    pub(super) headers: Vec<Secret>,

    /// Redact the value of this environment variable from every file; can be repeated
    ///
    /// Header values, and the credentials and query values of the base URL, are always redacted.
    #[arg(long = "secret", value_name = "env:VARIABLE")]
    pub(super) secrets: Vec<Secret>,

    /// Also trust the certificates in this PEM file, such as the certificate of your own authority
    #[arg(long, value_name = "FILE", conflicts_with = "agent_cmd")]
    pub(super) ca_file: Option<Utf8PathBuf>,

    /// Connect to ADDRESS:PORT for requests to HOST; HOST is the host of the base URL
    #[arg(long, value_name = "HOST:ADDRESS:PORT", conflicts_with = "agent_cmd")]
    pub(super) resolve: Vec<ResolveRule>,

    /// Maximum size of a response body; a case with a larger body fails
    #[arg(long, value_name = "BYTES", default_value_t = ByteLimits::default().body, value_parser = bytes)]
    pub(super) max_body_bytes: usize,

    /// Maximum size of an answer, which is parsed in memory; a larger one is saved, and its case fails
    #[arg(long, value_name = "BYTES", default_value_t = ByteLimits::default().answer, value_parser = bytes)]
    pub(super) max_answer_bytes: usize,

    /// Maximum size of the excerpt of a failed response in an artifact; the full body is saved as an asset
    #[arg(long, value_name = "BYTES", default_value_t = ByteLimits::default().snippet, value_parser = bytes)]
    pub(super) max_snippet_bytes: usize,

    /// Maximum size of a tool payload in an artifact; a larger one is saved as an asset
    #[arg(long, value_name = "BYTES", default_value_t = ByteLimits::default().payload, value_parser = bytes)]
    pub(super) max_payload_bytes: usize,

    /// Do not save requests: one file less per case, but `counterproof replay` needs them
    #[arg(long)]
    pub(super) no_keep_requests: bool,

    /// Output while the run is in progress
    ///
    /// `human`: a progress bar if standard error is a terminal. `plain`: one line per event on standard error. `jsonl`: events as JSON
    /// Lines on standard output, and nothing else there.
    #[arg(long, value_name = "human|plain|jsonl", value_enum, hide_possible_values = true, default_value = "human")]
    pub(super) reporter: ReporterKind,

    /// Print the cases that would run, without sending or writing anything
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// What the arguments mean together with the environment and the configuration.
#[derive(Debug)]
pub(super) struct RunOptions {
    pub(super) plan: RunPlan,
    /// The settings that all runs of the plan share.
    pub(super) settings: Settings,
    /// `None` without `--confirm`.
    pub(super) confirm: Option<ConfirmOptions>,
}

/// What flipped cases are found and confirmed with.
#[derive(Debug)]
pub(super) struct ConfirmOptions {
    /// How often the flipped cases run again.
    pub(super) runs: ConfirmRuns,
    /// Run folders of the baseline; empty for the latest.
    pub(super) against: Vec<Utf8PathBuf>,
    /// The settings of the agent of the baseline; `None` if no option names it.
    pub(super) baseline_agent: Option<Settings>,
    pub(super) rules: Rules,
    pub(super) thresholds: Thresholds,
    /// Whether an earlier call may have found the flipped cases.
    pub(super) is_resumed: bool,
}

impl RunOptions {
    pub(super) fn new(args: &Args) -> Result<Self, CommandError> {
        let plan = args.plan.plan(|name| env::var(name).ok())?;
        let config = Config::load(args.agent.config.as_deref())?;
        let settings = from_args(args, plan.id.clone(), &config)?;
        let confirm = match args.plan.confirm.confirm {
            // A dry run sends nothing, so no case can flip.
            Some(runs) if !args.dry_run => Some(ConfirmOptions {
                runs,
                against: args.plan.against.clone(),
                baseline_agent: args.plan.confirm.baseline_settings(&settings, args.agent.model.as_ref())?,
                rules: config.rules,
                thresholds: config.statistics,
                is_resumed: args.plan.resume.is_some(),
            }),
            _ => None,
        };
        Ok(Self { plan, settings, confirm })
    }
}

/// Resolves the settings that all runs of one invocation share.
fn from_args(args: &Args, run_id: RunId, config: &Config) -> Result<Settings, CommandError> {
    let base_url: BaseUrl = args
        .base_url
        .expose()
        .parse()
        .map_err(|error| CommandError::usage(error).hint("example: `--base-url http://localhost:8787`"))?;
    let headers = environment::headers(&args.headers)
        .map_err(|error| CommandError::usage(error).hint("example: `--header authorization:env:AGENT_TOKEN`"))?;
    let mut settings = Settings {
        concurrency: args.concurrency,
        rate: args.rate,
        timeout: args.timeout,
        phases: PhaseTimeouts {
            connect: args.connect_timeout,
            first_byte: args.first_byte_timeout,
            idle: args.idle_timeout,
        },
        retry: RetryPolicy {
            retries: args.retries,
            rate_limited: !args.no_retry_429,
            budget: args.retry_budget,
            ..RetryPolicy::default()
        },
        fail_fast: args.fail_fast,
        limits: ByteLimits {
            body: args.max_body_bytes,
            answer: args.max_answer_bytes,
            snippet: args.max_snippet_bytes,
            payload: args.max_payload_bytes,
        },
        headers,
        save_requests: !args.no_keep_requests,
        secrets: environment::secrets(&args.secrets, &config.secrets)?,
        resolve: args.resolve.clone(),
        certificates: environment::trusted(args.ca_file.as_deref())?,
        ..Settings::new(run_id, args.side, base_url, args.cases.clone(), args.out.clone())
    };
    args.agent.apply(config, &mut settings)?;
    // After the options of the agent, which decide whether requests need certificates.
    environment::check_environment(&settings.target)?;
    Ok(settings)
}
