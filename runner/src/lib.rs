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

mod accept;
mod agent;
pub mod array;
mod ask;
mod attempt;
mod begin;
mod body;
mod budget;
mod changes;
mod checkout;
mod circuit;
mod client;
mod clock;
mod decode;
mod digest;
mod endpoint;
mod event;
mod fault;
mod interrupt;
mod jitter;
mod keep;
mod kept_body;
mod kept_request;
mod merge;
mod pace;
mod payload;
mod process;
mod record;
mod relative;
mod reporter;
pub mod retry;
mod run;
mod salvage;
mod secret;
mod selection;
mod settings;
mod shard;
mod store;
mod target;
mod traces;
mod transport;
mod unasked;

pub use accept::{AcceptError, Acceptance, Baseline, accept};
pub use agent::{AgentOptions, Protocol, ProtocolError, ReservedField, RiskTable};
pub use begin::ResumeError;
pub use changes::Changes;
pub use checkout::Checkout;
pub use client::ClientError;
pub use clock::{Clock, Moment, SteppingClock, SystemClock};
pub use endpoint::{BaseUrl, BaseUrlError, ResolveRule, ResolveRuleError};
pub use event::{Counts, EventKind, FailureNote, RunEvent};
pub use fault::Reason;
pub use interrupt::{Interrupt, Urgency};
pub use jitter::Jitter;
pub use kept_request::{KeptRequest, REQUEST_HREF};
pub use merge::{MergeError, Merged, merge};
pub use pace::{Concurrency, ConcurrencyError, Rate, RateError};
pub use reporter::{JsonLines, Plain, Reporter, Silent};
pub use run::{Environment, RunError, Summary, run};
pub use secret::{Header, HeaderError, Secret};
pub use settings::{ByteLimits, PhaseTimeouts, Repeat, Settings, Start};
pub use shard::{Part, Shard, ShardError};
pub use target::{AgentCommand, AgentCommandError, Target};
