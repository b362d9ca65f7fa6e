//! What a run is asked to do, in values that need no further checking.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{Limits, RunId, Side};

use crate::agent::{AgentOptions, Protocol};
use crate::policy::concurrency::Concurrency;
use crate::policy::rate::Rate;
use crate::policy::retry::RetryPolicy;
use crate::policy::shard::Part;
use crate::settings::endpoint::{BaseUrl, ResolveRule};
use crate::settings::secret::{Header, Secret};
use crate::settings::target::Target;

/// What a run is asked to do. [`Settings::new`] fills in the defaults; the fields are there to be changed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names the run and its folder.
    pub run_id: RunId,
    /// The side that the run stands for.
    pub side: Side,
    /// The agent.
    pub target: Target,
    /// The program that is started to watch over an agent that is a program: one that calls `counterproof_safe_run::enter`
    /// first thing. `None` where this very program does.
    pub supervisor: Option<PathBuf>,
    /// What the agent speaks.
    pub protocol: Protocol,
    /// What goes into every request beside the case, where the protocol has a place for it.
    pub agent: AgentOptions,
    /// Where the cases came from: a file or a folder. It is recorded relative to the run folder, and not read.
    pub cases_path: Utf8PathBuf,
    /// The run folder becomes `<out>/<side>/<run_id>/`.
    pub out: Utf8PathBuf,
    /// How many cases are asked at once.
    pub concurrency: Concurrency,
    /// How many requests go out in a span of time, at most; retries count.
    pub rate: Option<Rate>,
    /// How long one attempt may take, from the first packet to the last byte.
    pub timeout: Duration,
    /// How long each phase of an attempt may take, within `timeout`.
    pub phases: PhaseTimeouts,
    /// Which failures are tried again, and how soon.
    pub retry: RetryPolicy,
    /// After so many cases in a row that ended as if nobody were there, the others are not asked.
    pub fail_fast: Option<NonZeroU32>,
    /// How much of a response is kept, and where.
    pub limits: ByteLimits,
    /// Headers that go out with every request.
    pub headers: Vec<Header>,
    /// More texts that are in no file, beside the values of the headers and what the base URL holds.
    pub secrets: Vec<Secret>,
    /// Hosts that are reached at a given address.
    pub resolve: Vec<ResolveRule>,
    /// Keeps each case's request beside its artifact, one more file a case, so that it can be sent again.
    pub keep_requests: bool,
    /// Sends this body for every case instead of what the protocol makes of it: a request that was kept.
    pub resend: Option<Vec<u8>>,
    /// How long what is in flight may still take once the run is asked to stop.
    pub grace: Duration,
    /// Whether there is a run folder already.
    pub start: Start,
    /// The part of a larger run that this run is: only its cases are asked.
    pub part: Option<Part>,
    /// Which of several runs of the same this is.
    pub repeat: Option<Repeat>,
}

/// Whether a run is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// The run folder must not be there yet.
    #[default]
    New,
    /// Only what is missing in the run folder is asked.
    Resume {
        /// Ask the failed cases again too. The artifact of each goes when it is asked.
        retry_errors: bool,
        /// A run folder that is not there is made.
        or_new: bool,
    },
}

/// One of several runs of the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// What they have in common.
    pub group_id: RunId,
    /// Which it is, counted from 1.
    pub number: u32,
    /// How many there are; at most, where they stop when they have decided.
    pub of: u32,
    /// How the repeats are chosen, where each asks only the cases that those before it left open.
    pub until_decided: Option<Rounds>,
}

/// Repeats of which each asks only the cases that those before it left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds {
    /// The baseline runs that they are held against.
    pub against: Vec<RunId>,
    /// How many of them, from the first on, ask every case.
    pub full: u32,
}

impl Settings {
    /// Settings for a server, with the defaults: one case at a time, 15 seconds an attempt, two retries.
    pub fn new(run_id: RunId, side: Side, base_url: BaseUrl, cases_path: Utf8PathBuf, out: Utf8PathBuf) -> Self {
        Self {
            run_id,
            side,
            target: base_url.into(),
            supervisor: None,
            protocol: Protocol::default(),
            agent: AgentOptions::default(),
            cases_path,
            out,
            concurrency: Concurrency::Fixed(NonZeroUsize::MIN),
            rate: None,
            timeout: Duration::from_secs(15),
            phases: PhaseTimeouts::default(),
            retry: RetryPolicy::default(),
            fail_fast: None,
            limits: ByteLimits::default(),
            headers: Vec::new(),
            secrets: Vec::new(),
            resolve: Vec::new(),
            keep_requests: false,
            resend: None,
            grace: Duration::from_secs(5),
            start: Start::New,
            part: None,
            repeat: None,
        }
    }
}

impl Settings {
    /// Where requests go, as files and messages say it.
    pub fn recorded_url(&self) -> String {
        match &self.target {
            Target::Http(base) => base.recorded_join(self.protocol.dialect(&self.agent).path()),
            command @ Target::Command(_) => command.recorded(),
        }
    }
}

/// How long each phase of an attempt may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTimeouts {
    /// To a connection, TLS included. Never more than three quarters of an attempt's time, so that a host which swallows
    /// packets is told from a slow answer.
    pub connect: Duration,
    /// From the start of the attempt to the head of the response; `None` for all the time that the attempt has.
    pub first_byte: Option<Duration>,
    /// The longest silence within a body.
    pub idle: Duration,
}

impl Default for PhaseTimeouts {
    /// 10 seconds to connect and 30 between bytes; an agent may think for as long as the attempt takes.
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: None, idle: Duration::from_secs(30) }
    }
}

/// How much of a response is kept, and where; all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLimits {
    /// Largest body that is read; a larger one is cut, and its case fails.
    pub body: usize,
    /// Largest answer: it is parsed in memory. A larger body goes to disk as it comes, and its case fails.
    pub answer: usize,
    /// Longest snippet of a body within an artifact.
    pub snippet: usize,
    /// Largest payload of a tool within an artifact; a larger one becomes an asset.
    pub payload: usize,
}

impl Default for ByteLimits {
    /// The limits of the project whose agents speak this protocol, and 8 KiB for payloads.
    fn default() -> Self {
        Self { body: 2_000_000, answer: 16 * 1024 * 1024, snippet: 4_000, payload: 8 * 1024 }
    }
}

impl ByteLimits {
    /// What `run.json` says of the limits.
    pub(crate) fn document(&self) -> Limits {
        Limits {
            max_body_bytes: Some(self.body.into()),
            max_inline_snippet_bytes: Some(self.snippet.into()),
            max_payload_inline_bytes: Some(self.payload.into()),
            extra: [("max_answer_bytes".to_owned(), self.answer.into())].into_iter().collect(),
        }
    }
}
