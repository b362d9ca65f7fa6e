//! The options of a run, in types that need no further validation.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{Limits, RunId, Side};
use counterproof_store::RunCopy;

use super::target::BaseUrl;
use super::target::ResolveRule;
use super::target::Target;
use super::target::TrustedCertificates;
use super::tools::ToolSettings;
use crate::agent::{AgentOptions, Protocol};
use crate::policy::{Concurrency, Rate, RetryPolicy, RunShard, UsageLimits};
use crate::secret::Header;
use crate::secret::Secret;

/// The options of a run. [`Settings::new`] fills in the defaults; change the fields as needed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The id of the run, which is also the name of its folder.
    pub run_id: RunId,
    /// The side of the comparison.
    pub side: Side,
    /// The agent to run the cases against.
    pub target: Target,
    /// The program that supervises an agent program. It must call `counterproof_safe_run::enter` first in `main`. `None` if
    /// the current program does so.
    pub supervisor: Option<PathBuf>,
    /// The protocol of the agent.
    pub protocol: Protocol,
    /// Request fields in addition to the case, for protocols that support them.
    pub agent: AgentOptions,
    /// The tools that the runner executes for a model, in protocols that leave it to the caller.
    pub tools: ToolSettings,
    /// The file or folder of the cases. It is recorded relative to the run folder and not read.
    pub cases_path: Utf8PathBuf,
    /// The run folder becomes `<out>/<side>/<run_id>/`.
    pub out: Utf8PathBuf,
    /// Where the run is also copied to while it is written, such as a bucket; `None` for a run of this machine.
    pub copy: Option<Arc<dyn RunCopy>>,
    /// How many cases run at the same time.
    pub concurrency: Concurrency,
    /// The maximum request rate, retries included.
    pub rate: Option<Rate>,
    /// The time limit of one attempt, from the first packet to the last byte.
    pub timeout: Duration,
    /// The time limits of the phases of an attempt, within `timeout`.
    pub phases: PhaseTimeouts,
    /// Which failures are retried, and when.
    pub retry: RetryPolicy,
    /// The number of consecutive cases without a reachable agent after which the remaining cases are not run.
    pub fail_fast: Option<NonZeroU32>,
    /// How many cases may fail before the run counts as failed; `None` for any number.
    pub max_failed: Option<usize>,
    /// What the answers of the run may cost.
    pub usage_limits: UsageLimits,
    /// Size limits of responses.
    pub limits: ByteLimits,
    /// Headers of every request.
    pub headers: Vec<Header>,
    /// Text that no file may contain, in addition to header values and the secrets of the base URL.
    pub secrets: Vec<Secret>,
    /// Addresses to use instead of name resolution.
    pub resolve: Vec<ResolveRule>,
    /// Certificates that are trusted in addition to the system's.
    pub certificates: TrustedCertificates,
    /// Saves the request of each case as an asset, so that it can be sent again.
    pub save_requests: bool,
    /// A saved request body to send instead of the one that the protocol creates.
    pub saved_request: Option<Vec<u8>>,
    /// How long attempts in flight may continue after the run was asked to stop.
    pub grace: Duration,
    /// Whether to create the run folder or to resume a run.
    pub start: Start,
    /// The shard to run: only its cases are run. `None` runs all cases.
    pub shard: Option<RunShard>,
    /// The position of this run in a group of repeats.
    pub repeat: Option<Repeat>,
    /// The run that this run confirms, if it runs only the flipped cases of another run.
    pub confirmation: Option<ConfirmationPlan>,
    /// Whether cases of the file were left out, as in a check of some cases. It is recorded only.
    pub is_selection: bool,
    /// Whether the agent is declared to do the same whenever it is asked the same. It is recorded only.
    pub deterministic: bool,
}

/// How a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// Create the run folder; it must not exist.
    #[default]
    New,
    /// Run only the cases that have no artifact in the run folder.
    Resume {
        /// Also run failed cases again. Each artifact is deleted just before its case runs.
        retry_errors: bool,
        /// Create the run folder if it does not exist.
        or_create: bool,
    },
    /// Go on with a shard in a folder of its own, because an earlier process may still write in the folder that it has.
    TakeOver,
}

/// One run of a group of repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// The id that all repeats of the group share.
    pub group_id: RunId,
    /// The number of this repeat, counted from 1.
    pub number: u32,
    /// The number of repeats.
    pub of: u32,
}

/// The position of a run among the confirmation runs of its side. Such a run runs only the flipped cases of another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationPlan {
    /// The run of side `new` in which the cases flipped.
    pub of: RunId,
    /// The baseline runs that the cases flipped against.
    pub against: Vec<RunId>,
    /// The number of this run, counted from 1.
    pub index: u32,
    /// The number of confirmation runs of the side.
    pub count: u32,
    /// Whether a case is not run again after the first run in which it can no longer be lost.
    pub ends_early: bool,
}

impl Settings {
    /// Creates the settings for a server, with the defaults: four cases at a time, two minutes per attempt, two retries.
    pub fn new(run_id: RunId, side: Side, base_url: BaseUrl, cases_path: Utf8PathBuf, out: Utf8PathBuf) -> Self {
        Self {
            run_id,
            side,
            target: base_url.into(),
            supervisor: None,
            protocol: Protocol::default(),
            agent: AgentOptions::default(),
            tools: ToolSettings::default(),
            cases_path,
            out,
            copy: None,
            concurrency: Concurrency::Fixed(NonZeroUsize::MIN.saturating_add(3)),
            rate: None,
            timeout: Duration::from_mins(2),
            phases: PhaseTimeouts::default(),
            retry: RetryPolicy::default(),
            fail_fast: None,
            max_failed: None,
            usage_limits: UsageLimits::default(),
            limits: ByteLimits::default(),
            headers: Vec::new(),
            secrets: Vec::new(),
            resolve: Vec::new(),
            certificates: TrustedCertificates::default(),
            save_requests: false,
            saved_request: None,
            grace: Duration::from_secs(5),
            start: Start::New,
            shard: None,
            repeat: None,
            confirmation: None,
            is_selection: false,
            deterministic: false,
        }
    }
}

impl Settings {
    /// Returns the URL of requests as files and messages show it.
    pub fn recorded_url(&self) -> String {
        match &self.target {
            Target::Http(base) => base.recorded_request_url(self.protocol.adapter(&self.agent).path()),
            command @ Target::Command(_) => command.recorded(),
        }
    }
}

/// Time limits of the phases of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTimeouts {
    /// Up to an established connection, TLS included. The runner caps it at three quarters of the attempt's time limit, so
    /// that a host which drops packets is distinguished from a slow agent.
    pub connect: Duration,
    /// From the start of the attempt to the response headers; `None` for the attempt's time limit.
    pub first_byte: Option<Duration>,
    /// The longest pause within a body.
    pub idle: Duration,
}

impl Default for PhaseTimeouts {
    /// 10 seconds to connect, 30 seconds between bytes, and no separate limit for the response headers.
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: None, idle: Duration::from_secs(30) }
    }
}

/// Size limits of responses, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLimits {
    /// The largest body that is read. A larger one is truncated, and the attempt fails.
    pub body: usize,
    /// The largest answer, which is parsed in memory. A larger body is streamed to disk, and the attempt fails.
    pub answer: usize,
    /// The longest body snippet in an artifact.
    pub snippet: usize,
    /// The largest tool payload in an artifact. A larger one becomes an asset.
    pub payload: usize,
}

impl Default for ByteLimits {
    /// 2 MB for bodies, 16 MiB for answers, 4,000 bytes for snippets and 8 KiB for payloads.
    fn default() -> Self {
        Self { body: 2_000_000, answer: 16 * 1024 * 1024, snippet: 4_000, payload: 8 * 1024 }
    }
}

impl ByteLimits {
    /// Returns the limits as `run.json` records them.
    pub(crate) fn document(&self) -> Limits {
        Limits {
            max_body_bytes: Some(self.body.into()),
            max_inline_snippet_bytes: Some(self.snippet.into()),
            max_payload_inline_bytes: Some(self.payload.into()),
            extra: [("max_answer_bytes".to_owned(), self.answer.into())].into_iter().collect(),
        }
    }
}

/// The cap on configured time-outs. A longer one has no practical use.
const MAX_TIMEOUT: Duration = Duration::from_hours(24 * 365);

/// The time and size limits of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptLimits {
    /// From the first packet to the last byte.
    pub(crate) timeout: Duration,
    /// From the first packet to the response headers; never more than `timeout`.
    pub(crate) first_byte: Duration,
    /// The longest pause within the body.
    pub(crate) idle: Duration,
    pub(crate) bytes: ByteLimits,
}

impl AttemptLimits {
    pub(crate) fn from_settings(settings: &Settings) -> Self {
        // Capped, since a deadline must be an instant that the system's clock can represent.
        let timeout = settings.timeout.min(MAX_TIMEOUT);
        let PhaseTimeouts { first_byte, idle, .. } = settings.phases;
        let first_byte = first_byte.map_or(timeout, |first_byte| first_byte.min(timeout));
        Self { timeout, first_byte, idle: idle.min(MAX_TIMEOUT), bytes: settings.limits }
    }
}
