//! The options of a run, in types that are already validated.

mod run_settings;
mod secret;
mod target;
mod tools;
mod variables;

pub(crate) use run_settings::AttemptLimits;
pub use run_settings::{ByteLimits, ConfirmationPlan, PhaseTimeouts, Repeat, Settings, Start, UsageLimits};
pub use secret::Secret;
pub(crate) use secret::known_secrets;
pub use secret::{Header, HeaderError};
pub(crate) use target::strip_secrets;
pub use target::{AgentCommand, AgentCommandError, Lifetime, Target};
pub use target::{BaseUrl, BaseUrlError};
pub use target::{CertificateError, TrustedCertificates};
pub use target::{ResolveRule, ResolveRuleError};
pub use tools::{McpSpec, ToolSettings, ToolSpec};
pub(crate) use variables::{PORT, at_port};
pub use variables::{VariableError, Variables};
