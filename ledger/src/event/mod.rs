//! The events of a run, as they are written: JSON Lines, one event per line.
//!
//! Every event has the same envelope ([`Envelope`]) and a body ([`EventBody`]) that its field `type` names. docs/guard-events.md
//! describes the fields.

mod body;
mod call;
mod decision;
mod envelope;
mod run;
mod secret_injection;

pub use body::{Event, EventBody, HintedCall, ShimHealth};
pub use call::{
    ArgsPreview, BreakerTrip, CallEnd, CallError, CallId, CallRef, CallStart, CallStatus, ErrorClass, ResultPreview,
    Transport,
};
pub use decision::{Action, DecisionRecord, Explanation, Hint, HintKind, ObservedDecision, Severity, Termination};
pub use envelope::{AgentClient, Envelope, EventSource, WorkingEnvironment, Workload};
pub use run::{AGENT_SOURCE, Mode, PolicyRef, ProcessExit, RunEnd, RunStart, RunStatus, RunSummary, SOURCE_KIND};
pub use secret_injection::{SecretInjection, SecretSource};

/// The version of the event format, as in the field `v`.
pub const EVENT_VERSION: &str = "0.1.0";
