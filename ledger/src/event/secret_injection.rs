//! A secret that the upstream server received. The event never contains its value.

use serde::{Deserialize, Serialize};

/// The field `secret_injection` of the event of that name.
///
/// The fields are in an object of their own, since the envelope has another field `source`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretInjection {
    /// The environment variable of the server.
    pub inject_as: String,
    /// The name of the secret.
    pub secret_ref: String,
    /// Where the secret comes from.
    pub source: SecretSource,
    /// False if the secret was not found.
    pub success: bool,
}

/// Where a secret comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    /// The environment of the shim.
    #[default]
    Env,
    /// The keychain of the system.
    Keychain,
    File,
}
