//! The events of a run, as they are written: JSON Lines, one event per line.
//!
//! Every event has the same envelope ([`Envelope`]) and a body ([`EventBody`]) that its field `type` names. docs/guard-events.md
//! describes the fields.

mod body;
mod call;
mod run;

pub use body::{
    AgentClient, Envelope, Event, EventBody, EventSource, HintedCall, ShimHealth, WorkingEnvironment, Workload,
};
pub use call::{
    Action, ArgsPreview, BreakerTrip, CallEnd, CallError, CallId, CallRef, CallStart, CallStatus, DecisionRecord,
    ErrorClass, Explanation, Hint, HintKind, ObservedDecision, ResultPreview, Severity, Termination, Transport,
};
pub use run::{
    AGENT_SOURCE, Mode, PolicyRef, ProcessExit, RunEnd, RunStart, RunStatus, RunSummary, SOURCE_KIND, SecretInjection,
    SecretSource,
};

/// The version of the event format, as in the field `v`.
pub const EVENT_VERSION: &str = "0.1.0";
