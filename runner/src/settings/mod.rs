//! The options of a run, in types that are already validated.

mod attempt_limits;
mod base_url;
mod header;
mod known_secrets;
mod resolve_rule;
mod run_settings;
mod secret;
mod target;
mod trusted_certificates;

pub(crate) use attempt_limits::AttemptLimits;
pub(crate) use base_url::strip_secrets;
pub use base_url::{BaseUrl, BaseUrlError};
pub use header::{Header, HeaderError};
pub(crate) use known_secrets::known_secrets;
pub use resolve_rule::{ResolveRule, ResolveRuleError};
pub use run_settings::{ByteLimits, ConfirmationPlan, PhaseTimeouts, Repeat, Settings, Start};
pub use secret::Secret;
pub use target::{AgentCommand, AgentCommandError, Target};
pub use trusted_certificates::{CertificateError, TrustedCertificates};
