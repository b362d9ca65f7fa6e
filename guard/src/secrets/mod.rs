//! Secrets of the upstream server: which it receives, where they are stored, and how they are masked.
//!
//! [`Bindings`] state which server receives which secret in which environment variable. [`resolve`] looks the secrets up (in the
//! environment, the keychain of the system, or the [`SecretStore`]) and returns the changes of the server's environment. Values are
//! [`SecretValue`]s, which messages do not contain, and [`redactor`] masks them in all output of the guard.

mod bindings;
mod keychain;
mod resolve;
mod secret;
mod secret_store;
#[cfg(test)]
mod tests;

pub use bindings::{Binding, Bindings, BindingsError, load_bindings};
pub use keychain::{Keychain, KeychainError};
pub use resolve::{InjectionError, LookupError, ResolvedSecrets, SecretSources, redactor, resolve, value_redactor};
pub use secret::{InvalidName, InvalidSecret, MASK, SecretRef, SecretValue, VariableName};
pub use secret_store::{SecretStore, SecretStoreError, StoredSecret};
