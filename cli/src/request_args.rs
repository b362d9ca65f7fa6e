//! The options that `run`, `check` and `try` share: the cases, the agent, the pace and the limits of requests.

use std::num::NonZeroU32;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::RunId;
use counterproof_runner::{
    BaseUrl, ByteLimits, Concurrency, PhaseTimeouts, Rate, ResolveRule, RetryBudget, RetryOn, RetryPolicy, Secret,
    Settings, UsageLimits,
};

use crate::agent_args::AgentArgs;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::environment;
use crate::side_agent::SideAgent;
use crate::value_parsers::{amount, at_least_one, bytes, duration};

/// Options about the agent and about requests.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    /// Base URL of the agent. Credentials and the query string are sent, but never stored
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(help_heading = "Target", long, value_name = "URL", default_value = "http://localhost:8787")]
    pub(crate) base_url: Secret,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,

    /// Maximum number of cases in flight
    ///
    /// `auto` adapts to the load that the agent can handle, up to 64 cases; `auto:N` up to N cases.
    #[arg(help_heading = "Pace", long, value_name = "N|auto", default_value = "4")]
    pub(crate) concurrency: Concurrency,

    /// Maximum request rate, evenly spaced, such as 5/s or 100/m
    #[arg(help_heading = "Pace", long, value_name = "N/s")]
    pub(crate) rate: Option<Rate>,

    /// Timeout of one attempt, such as 30s or 2m
    #[arg(help_heading = "Pace", long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// Timeout for connecting, including TLS; at most three quarters of --timeout
    #[arg(help_heading = "Pace", long, value_name = "TIME", default_value = "10s", value_parser = duration, conflicts_with = "agent_cmd")]
    pub(crate) connect_timeout: Duration,

    /// Timeout until the response headers arrive [default: --timeout]
    #[arg(help_heading = "Pace", long, value_name = "TIME", value_parser = duration, conflicts_with = "agent_cmd")]
    pub(crate) first_byte_timeout: Option<Duration>,

    /// Timeout between two chunks of a response body
    #[arg(help_heading = "Pace", long, value_name = "TIME", default_value = "30s", value_parser = duration, conflicts_with = "agent_cmd")]
    pub(crate) idle_timeout: Duration,

    /// Maximum number of retries of a case after a failure that --retry-on names
    #[arg(help_heading = "Failures", long, value_name = "N", default_value = "2")]
    pub(crate) retries: u32,

    /// Maximum number of retries of all cases together: a number, or a percentage of the cases such as 20% (at least 10)
    #[arg(help_heading = "Failures", long, value_name = "N|N%", default_value_t = RetryBudget::default())]
    pub(crate) retry_budget: RetryBudget,

    /// Failures that are retried: classes, statuses and error names
    ///
    /// Classes: `network_error`, `timeout`, `http_408`, `http_429`, `http_5xx`. Error names are those of docs/runner.md, such as
    /// `response_timeout`. The default leaves out the timeouts after which the agent may still be at work.
    #[arg(
        help_heading = "Failures",
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "network_error,connect_timeout,http_408,http_429,http_5xx"
    )]
    pub(crate) retry_on: Vec<RetryOn>,

    /// Do not retry after status 429: the case fails as `rate_limited`
    #[arg(help_heading = "Failures", long)]
    pub(crate) no_retry_429: bool,

    /// Stop the run after N consecutive cases that indicate an agent that is down
    ///
    /// Counted are cases without a connection, without a response before the timeout, or with status 502 to 504. The remaining cases are
    /// recorded as failures named `not_run`.
    #[arg(help_heading = "Failures", long, value_name = "N", value_parser = at_least_one)]
    pub(crate) fail_fast: Option<NonZeroU32>,

    /// Exit with code 1 if more than N cases fail
    #[arg(help_heading = "Failures", long, value_name = "N")]
    pub(crate) max_failed: Option<usize>,

    /// Start no further case once the answers have cost this much, in the currency that the agent reports
    ///
    /// The remaining cases are recorded as failures named `not_run`, and the exit code is 1.
    #[arg(help_heading = "Limits", long, value_name = "COST", value_parser = amount)]
    pub(crate) max_cost: Option<f64>,

    /// Start no further case once the answers have used this many input and output tokens
    #[arg(help_heading = "Limits", long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,

    /// With --max-cost or --max-tokens: go on after an answer that does not report its cost or its tokens
    #[arg(help_heading = "Limits", long)]
    pub(crate) allow_unknown_usage: bool,

    /// Send this header with every request; can be repeated
    ///
    /// A value of `env:VARIABLE` is read from the environment. Header values are never stored.
    #[arg(help_heading = "Target", long = "header", value_name = "NAME:VALUE")]
    pub(crate) headers: Vec<Secret>,

    /// Redact the value of this environment variable from every file; can be repeated
    ///
    /// Header values, and the credentials and query values of the base URL, are always redacted.
    #[arg(help_heading = "Target", long = "secret", value_name = "env:VARIABLE")]
    pub(crate) secrets: Vec<Secret>,

    /// Also trust the certificates in this PEM file, such as the certificate of your own authority
    #[arg(help_heading = "Target", long, value_name = "FILE", conflicts_with = "agent_cmd")]
    pub(crate) ca_file: Option<Utf8PathBuf>,

    /// Connect to ADDRESS:PORT for requests to HOST; HOST is the host of the base URL
    #[arg(help_heading = "Target", long, value_name = "HOST:ADDRESS:PORT", conflicts_with = "agent_cmd")]
    pub(crate) resolve: Vec<ResolveRule>,

    /// Maximum size of a response body; a case with a larger body fails
    #[arg(help_heading = "Limits", long, value_name = "BYTES", default_value_t = ByteLimits::default().body, value_parser = bytes)]
    pub(crate) max_body_bytes: usize,

    /// Maximum size of an answer, which is parsed in memory; a larger one is saved, and its case fails
    #[arg(help_heading = "Limits", long, value_name = "BYTES", default_value_t = ByteLimits::default().answer, value_parser = bytes)]
    pub(crate) max_answer_bytes: usize,

    /// Maximum size of the excerpt of a failed response in an artifact; the full body is saved as an asset
    #[arg(help_heading = "Limits", long, value_name = "BYTES", default_value_t = ByteLimits::default().snippet, value_parser = bytes)]
    pub(crate) max_snippet_bytes: usize,

    /// Maximum size of a tool payload in an artifact; a larger one is saved as an asset
    #[arg(help_heading = "Limits", long, value_name = "BYTES", default_value_t = ByteLimits::default().payload, value_parser = bytes)]
    pub(crate) max_payload_bytes: usize,

    /// Do not save requests: one file less per case, but `counterproof replay` needs them
    #[arg(help_heading = "Output", long)]
    pub(crate) no_keep_requests: bool,
}

impl RequestArgs {
    /// Resolves the settings that all runs of one invocation share.
    pub(crate) fn settings(
        &self,
        run_id: RunId,
        agent: &SideAgent,
        paths: RunPaths<'_>,
        config: &Config,
    ) -> Result<Settings, CommandError> {
        let base_url = agent.base_url.as_ref().unwrap_or(&self.base_url);
        let base_url: BaseUrl = base_url
            .expose()
            .parse()
            .map_err(|error| CommandError::usage(error).hint("example: `--base-url http://localhost:8787`"))?;
        let headers = environment::headers(&self.headers)
            .map_err(|error| CommandError::usage(error).hint("example: `--header authorization:env:AGENT_TOKEN`"))?;
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
                on: self.retry_on.clone(),
                ..RetryPolicy::default()
            },
            fail_fast: self.fail_fast,
            max_failed: self.max_failed,
            usage_limits: UsageLimits {
                cost: self.max_cost,
                tokens: self.max_tokens,
                allow_unknown: self.allow_unknown_usage,
            },
            limits: ByteLimits {
                body: self.max_body_bytes,
                answer: self.max_answer_bytes,
                snippet: self.max_snippet_bytes,
                payload: self.max_payload_bytes,
            },
            headers,
            save_requests: !self.no_keep_requests,
            secrets: environment::secrets(&self.secrets, &config.secrets)?,
            resolve: self.resolve.clone(),
            certificates: environment::trusted(self.ca_file.as_deref())?,
            ..Settings::new(run_id, agent.side, base_url, paths.cases.to_owned(), paths.out.to_owned())
        };
        self.agent.apply(config, &mut settings)?;
        agent.complete(&mut settings)?;
        agent.apply_http(&mut settings)?;
        agent.apply_loop(&mut settings);
        // After the options of the agent, which decide whether requests need certificates.
        environment::check_environment(&settings.target)?;
        Ok(settings)
    }
}

/// The paths of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunPaths<'a> {
    pub(crate) cases: &'a Utf8Path,
    /// The folder of all runs.
    pub(crate) out: &'a Utf8Path,
}
