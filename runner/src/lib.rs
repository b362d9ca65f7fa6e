//! The runner: cases in, artifacts out.
//!
//! Data flows one way. A case becomes a request (`agent`), the request becomes a try with a response or a fault
//! (`attempt`, `body`, `decode`, `store`, `fault`), the try is judged and kept (`keep`, `kept_body`, `payload`), a pure policy says whether another try
//! follows ([`retry`]), and the last one becomes the case's artifact, on disk before the case counts as complete (`ask`).
//! [`run()`] does this for all cases, so many at once as its settings allow, and tells a [`Reporter`] what happens.
//!
//! A run that ended before its time is taken up where it was left (`begin`, `changes`, `salvage`); one that is shared by
//! several machines is split by [`Shard`]; one that is good enough becomes the baseline ([`accept()`]).
//!
//! The crate never prints, and reads no clock, no randomness and no environment variable of its own (see [`Environment`]).
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
//! let environment = Environment { checkout: Checkout::discover(".".into()), ..Environment::of_system() };
//! let summary = run(&settings, &suite.cases, environment, &mut Silent)?;
//! println!("{} of {} cases answered: {}", summary.counts.answered, summary.counts.selected, summary.folder);
//! # Ok(())
//! # }
//! ```

mod agent;
mod attempt;
mod digest;
mod event;
mod failure;
mod folder;
mod http;
mod policy;
mod process;
mod record;
mod reporter;
mod response;
mod run;
mod settings;
mod system;

pub use agent::{AgentOptions, Protocol, ProtocolError, ReservedField, RiskTable};
pub use event::{Counts, EventKind, FailureNote, Reporter, RunEvent};
pub use failure::fault::Reason;
pub use folder::accept::{AcceptError, Acceptance, Baseline, accept};
pub use folder::changes::Changes;
pub use folder::merge::{MergeError, Merged, merge};
pub use http::client::ClientError;
pub use policy::concurrency::{Concurrency, ConcurrencyError};
pub use policy::rate::{Rate, RateError};
pub use policy::retry::RetryPolicy;
pub use policy::retry_budget::{RetryBudget, RetryBudgetError};
pub use policy::shard::{Part, Shard, ShardError};
pub use policy::shard_detection::{ShardDetectionError, detect_shard};
pub use record::saved_request::{REQUEST_HREF, SavedRequest};
pub use reporter::{JsonLines, Plain, Silent};
pub use run::scheduler::{Environment, RunError, Summary, run};
pub use run::start::ResumeError;
pub use settings::endpoint::{BaseUrl, BaseUrlError, ResolveRule, ResolveRuleError};
pub use settings::run_settings::{ByteLimits, PhaseTimeouts, Repeat, Rounds, Settings, Start};
pub use settings::secret::{Header, HeaderError, Secret};
pub use settings::target::{AgentCommand, AgentCommandError, Target};
pub use system::checkout::Checkout;
pub use system::clock::{Clock, Moment, SteppingClock, SystemClock};
pub use system::interrupt::{Interrupt, Urgency};
pub use system::jitter::Jitter;
