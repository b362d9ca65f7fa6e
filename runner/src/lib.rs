//! The runner: cases in, artifacts out.
//!
//! Data flows one way. A case becomes a request (`agent`), the request becomes a try with a response or a fault
//! (`attempt`, `body`, `fault`), the try is judged and kept (`keep`, `payload`), a pure policy says whether another try
//! follows ([`retry`]), and the last one becomes the case's artifact, on disk before the case counts as complete (`ask`).
//! [`run()`] does this for all cases, so many at once as its settings allow, and tells a [`Reporter`] what happens.
//!
//! The crate never prints, reads no clock and no randomness of its own (see [`Environment`]), and never looks at what
//! another run left behind.
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
mod ask;
mod attempt;
mod body;
mod checkout;
mod client;
mod clock;
mod endpoint;
mod event;
mod fault;
mod interrupt;
mod jitter;
mod keep;
mod kept_request;
mod payload;
mod process;
mod record;
mod redact;
mod relative;
mod reporter;
pub mod retry;
mod run;
mod secret;
mod settings;
mod target;
mod traces;
mod transport;

pub use agent::{AgentOptions, Protocol, ProtocolError, ReservedField, RiskTable};
pub use checkout::Checkout;
pub use client::ClientError;
pub use clock::{Clock, Moment, SteppingClock, SystemClock};
pub use endpoint::{BaseUrl, BaseUrlError, ResolveRule, ResolveRuleError};
pub use event::{Counts, EventKind, FailureNote, RunEvent};
pub use fault::Reason;
pub use interrupt::{Interrupt, Urgency};
pub use jitter::Jitter;
pub use kept_request::{KeptRequest, REQUEST_HREF};
pub use reporter::{Reporter, Silent};
pub use run::{Environment, RunError, Summary, run};
pub use secret::{Header, HeaderError, Secret};
pub use settings::{ByteLimits, Settings};
pub use target::{AgentCommand, AgentCommandError, Target};
