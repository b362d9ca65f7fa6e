//! The arguments of `counterproof replay`.

use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_runner::{ResolveRule, Secret};

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
    pub(super) case: Utf8PathBuf,

    /// Base URL of the agent [default: the base URL of the run]
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<Secret>,

    /// Run this program instead of calling a server. Required if the run used a program, because its arguments are not recorded
    #[arg(long, value_name = "CMD", conflicts_with = "base_url")]
    pub(super) agent_cmd: Option<Secret>,

    /// Send this header with the request; can be repeated
    ///
    /// A value of `env:VARIABLE` is read from the environment. Pass the headers of the run again, because their values are not stored.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    pub(super) headers: Vec<Secret>,

    /// Redact the value of this environment variable; can be repeated. Pass the secrets of the run again
    ///
    /// The recorded answer is redacted. Without the same secrets, a repeated secret would show as a difference.
    #[arg(long = "secret", value_name = "env:VARIABLE")]
    pub(super) secrets: Vec<Secret>,

    /// Also trust the certificates in this PEM file, such as that of your own authority
    #[arg(long, value_name = "FILE", conflicts_with = "agent_cmd")]
    pub(super) ca_file: Option<Utf8PathBuf>,

    /// Connect to ADDRESS:PORT for requests to HOST; HOST is the host of the base URL
    #[arg(long, value_name = "HOST:ADDRESS:PORT", conflicts_with = "agent_cmd")]
    pub(super) resolve: Vec<ResolveRule>,

    /// Configuration file with `[agent]`, `[risk]`, `[secrets]` and the comparison rules [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<Utf8PathBuf>,

    /// Timeout of the request, such as 15s or 500ms
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    pub(super) timeout: Duration,

    /// Print a shell command that sends the request, and send nothing
    ///
    /// The command is a `curl` call with `$NAME` in place of each header value; with --agent-cmd, a pipeline to the program.
    #[arg(long)]
    pub(super) curl: bool,
}
