//! Secrets of the upstream server: which it receives, where they are stored, and how they are masked.
//!
//! [`Bindings`] state which server receives which secret in which environment variable. [`resolve`] looks the secrets up (in the
//! environment, the keychain of the system, or the [`SecretStore`]) and returns the changes of the server's environment. Values are
//! [`SecretValue`]s, which messages do not contain, and [`redactor`] masks them in all output of the guard.

mod binding;
mod binding_rules;
mod keychain;
mod load_bindings;
mod lookup;
mod private_file;
mod redaction;
mod resolve;
mod secret_ref;
mod secret_store;
mod secret_store_error;
mod secret_value;

#[cfg(test)]
#[cfg(unix)]
mod tests;

pub use binding::{Binding, Bindings};
pub use keychain::{Keychain, KeychainError};
pub use load_bindings::{BindingsError, load_bindings};
pub use redaction::{MASK, redactor, value_redactor};
pub use resolve::{InjectionError, LookupError, Resolved, SecretSources, resolve};
pub use secret_ref::{InvalidName, SecretRef, VariableName};
pub use secret_store::{SecretStore, StoredSecret};
pub use secret_store_error::SecretStoreError;
pub use secret_value::{InvalidSecret, SecretValue};
