//! The settings of a run: arguments, environment variables and configuration, resolved.

use counterproof_artifact::RunId;
use counterproof_runner::{BaseUrl, ByteLimits, PhaseTimeouts, RetryPolicy, Settings};

use super::args::Args;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::{certificates, environment};

/// Resolves the settings that all runs of one invocation share.
pub(super) fn from_args(args: &Args, run_id: RunId, config: &Config) -> Result<Settings, CommandError> {
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
        certificates: certificates::trusted(args.ca_file.as_deref())?,
        ..Settings::new(run_id, args.side, base_url, args.cases.clone(), args.out.clone())
    };
    args.agent.apply(config, &mut settings)?;
    certificates::check_environment(&settings.target)?;
    Ok(settings)
}
