//! The state machine of a workflow, and how a run begins, stops and goes on.

mod agent_command;
mod begin;
mod bundle;
mod credentials;
mod journal;
mod machine;
mod messages;
mod publish;
mod replay;
mod result;
mod resume;
mod state;
mod turns;

pub use agent_command::AgentCommandError;
pub use begin::{BeginError, Begun, Home, Secrets, start};
pub use bundle::{BundleError, ReadBundle, bundle, read_bundle};
pub use credentials::{ModelUrlRequired, StorableUrl};
pub use journal::JournalError;
pub use machine::{Control, Run, RunError, Stopped};
pub use replay::{Arm, Patch, ReplayError, ReplayOptions, replay};
pub use result::{WorkflowResult, result, status};
pub use resume::{ResumeOptions, Resumed, fork, resume, stored_settings};
pub use state::{
    CheckResult, Failure, FailureKind, ForgeKind, Limits, ModelSettings, Outcome, Phase, RunState, Settings, Workflow,
};
