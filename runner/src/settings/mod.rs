//! The options of a run, in types that are already validated.

mod known_secrets;
mod run_settings;
mod target;
mod tools;
mod variables;

pub(crate) use known_secrets::known_secrets;
pub(crate) use run_settings::AttemptLimits;
pub use run_settings::{ByteLimits, ConfirmationPlan, PhaseTimeouts, Repeat, Settings, Start};
pub(crate) use target::strip_secrets;
pub use target::{AgentCommand, AgentCommandError, Lifetime, Target};
pub use target::{BaseUrl, BaseUrlError};
pub use target::{CertificateError, TrustedCertificates};
pub use target::{ResolveRule, ResolveRuleError};
pub use tools::{McpSpec, ToolSettings, ToolSpec};
pub(crate) use variables::{PORT, at_port};
pub use variables::{VariableError, Variables};
