//! The runner: runs cases against an agent and records artifacts.
//!
//! ```text
//! run (scheduler, case runner)
//!   └─ agent     case → request body
//!   └─ attempt   request → exchange, over http or process
//!   └─ record    exchange → artifact or failure, with its assets
//!   └─ tools     tool call of the model → result, in a conversation
//!   └─ policy    failure → retry after a wait, or stop
//! service        before a run: the agent's own process, and a checkout of another commit
//! ```
//!
//! [`run()`] runs all cases, with bounded concurrency, and sends events to a [`Reporter`]. A case is complete when its
//! artifact is durable. A run that was stopped can be resumed; a run on several machines is split by [`Shard`](counterproof_cases::Shard). [`merge()`]
//! joins the shards again, and [`accept()`] makes a run the baseline; both work on run folders only (`folder`).
//!
//! Errors of the agent become artifacts. Only errors of the disk, the settings or the system end a run ([`RunError`]). The
//! crate never prints, and takes time, randomness and the stop signal from the caller (see [`Environment`]).
//!
//! ```no_run
//! use counterproof_runner::{Checkout, Environment, Settings, Silent, run};
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let suite = counterproof_cases::load("cases.json".into())?;
//! let settings = Settings::new(
//!     "nightly-17".parse()?,
//!     "new".parse()?,
//!     "http://localhost:8787".parse()?,
//!     "cases.json".into(),
//!     "runs".into(),
//! );
//! let environment = Environment { checkout: Checkout::discover(".".into()), ..Environment::from_system() };
//! let summary = run(&settings, &suite.cases, environment, &mut Silent)?;
//! println!("{} of {} cases answered: {}", summary.counts.answered, summary.counts.selected, summary.folder);
//! # Ok(())
//! # }
//! ```

// The interface that a program embeds.
#![warn(missing_docs)]

mod agent;
mod attempt;
mod body_sink;
mod conversation;
mod environment;
mod event;
mod exchange;
mod failure;
mod folder;
mod http;
mod policy;
mod process;
mod record;
mod reporter;
mod run;
mod secret;
mod service;
mod settings;
mod tools;

pub use agent::{
    ActionsMapping, AgentOptions, AnswerPath, BodyTemplate, CallsMapping, DocumentsMapping, ElementPath, HttpMapping,
    HttpMethod, MappedAnswer, PathError, Protocol, ProtocolError, RequestPath, RequestPathError, ReservedField,
    RiskTable, StreamFormat, TemplateError, UnknownMethod, UsageMapping, propose,
};
pub use environment::{Checkout, Clock, Environment, Interrupt, Jitter, Moment, SteppingClock, SystemClock, Urgency};
pub use event::{Counts, EventKind, FailureNote, Reporter, RunEvent};
pub use failure::Reason;
pub use folder::{
    AcceptError, Acceptance, Attempts, Baseline, CaseLabels, CaseReview, Changes, ClaimError, CompleteAttempt,
    Incompleteness, LabelsError, MergeError, Merged, RepeatProblem, ReviewError, RunForm, ShardMismatch, accept,
    complete_attempt, draft_expectations, find_attempts, merge, runs_of_baseline,
};
pub use http::ClientError;
pub use policy::{
    Concurrency, ConcurrencyError, InvalidValue, Rate, RateError, RetryBudget, RetryBudgetError, RetryOn, RetryOnError,
    RetryPolicy, RunShard, ShardDetectionError, Spending, UsageLimits, detect_shard,
};
pub use record::SavedRequest;
pub use reporter::{JsonLines, Plain, Silent};
pub use run::{ResumeError, RunError, Summary, Trial, TrialExchange, run, try_once};
pub use secret::{Header, HeaderError, Secret};
pub use service::{
    AgentDied, AgentStartError, Ready, ReadyError, RunningAgent, SetupError, StartContext, StartSpec,
    TemporaryWorktree, UrlTemplate, WorktreeError, commit_of, run_setup,
};
pub use settings::{
    AgentCommand, AgentCommandError, BaseUrl, BaseUrlError, ByteLimits, CertificateError, ConfirmationPlan, Lifetime,
    McpSpec, PhaseTimeouts, Repeat, ResolveRule, ResolveRuleError, Settings, Start, Target, ToolSettings, ToolSpec,
    TrustedCertificates, VariableError, Variables,
};
pub use tools::McpError;
