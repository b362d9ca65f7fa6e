//! The settings of a run: arguments, environment variables and configuration, resolved.

use std::env;

use counterproof_artifact::RunId;
use counterproof_redaction::SHORTEST;
use counterproof_runner::{BaseUrl, ByteLimits, Header, HeaderError, PhaseTimeouts, RetryPolicy, Secret, Settings};

use super::args::Args;
use crate::command_error::CommandError;
use crate::config::{Config, Secrets};

/// Resolves the settings that all runs of one invocation share.
pub(super) fn from_args(args: &Args, run_id: RunId, config: &Config) -> Result<Settings, CommandError> {
    let base_url: BaseUrl = args
        .base_url
        .expose()
        .parse()
        .map_err(|error| CommandError::usage(error).hint("example: `--base-url http://localhost:8787`"))?;
    let headers = args.headers.iter().map(|text| Header::parse(text, |name| env::var(name).ok()));
    let headers = headers
        .collect::<Result<_, HeaderError>>()
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
        secrets: secrets(&args.secrets, &config.secrets)?,
        resolve: args.resolve.clone(),
        ..Settings::new(run_id, args.side, base_url, args.cases.clone(), args.out.clone())
    };
    args.agent.apply(config, &mut settings)?;
    Ok(settings)
}

/// Returns the values of the variables that `--secret` and the configuration name. Unset variables are an error for `--secret`
/// and are ignored in the configuration, which one project shares between machines.
fn secrets(named: &[Secret], configured: &Secrets) -> Result<Vec<Secret>, CommandError> {
    let mut values = Vec::new();
    for text in named {
        // The message does not quote the value, which may be the secret itself.
        let variable = text.expose().strip_prefix("env:").ok_or_else(|| {
            CommandError::usage("`--secret` requires the name of an environment variable")
                .hint("example: `--secret env:AGENT_TOKEN`. Other users can see values on the command line")
        })?;
        let value = env::var(variable).map_err(|_| {
            CommandError::usage(format!("environment variable `{variable}` is not set"))
                .hint(format!("set `{variable}` or remove `--secret env:{variable}`"))
        })?;
        values.push((variable.to_owned(), value));
    }
    values.extend(configured.values(|variable| env::var(variable).ok()));
    let long_enough = |(variable, value): (String, String)| {
        if value.len() >= SHORTEST {
            return Ok(Secret::from(value));
        }
        let message =
            format!("the secret in `{variable}` is shorter than {SHORTEST} bytes and cannot be redacted reliably");
        Err(CommandError::usage(message).hint(format!("use a secret of at least {SHORTEST} bytes")))
    };
    values.into_iter().map(long_enough).collect()
}
