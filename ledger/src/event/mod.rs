//! The events of a run, as they are written: JSON Lines, one event per line.
//!
//! Every event has the same envelope ([`Envelope`]) and a body ([`EventBody`]) that its field `type` names. docs/guard-events.md
//! describes the fields.

/// Defines an enum with the name of each variant, which the format, the tables and the options of commands share.
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $enum:ident { $($(#[$attribute:meta])* $variant:ident = $name:literal,)* }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        $(#[$meta])*
        pub enum $enum {
            $($(#[$attribute])* #[serde(rename = $name)] $variant,)*
        }

        impl $enum {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

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
    AGENT_SOURCE, LoadedPolicy, Mode, PolicyRef, ProcessExit, RunEnd, RunStart, RunStatus, RunSummary, SOURCE_KIND,
    SecretInjection, SecretSource,
};

/// The version of the event format, as in the field `v`.
pub const EVENT_VERSION: &str = "0.1.0";
