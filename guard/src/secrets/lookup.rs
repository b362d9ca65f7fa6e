//! Looks up one secret in the environment of this process.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::{InvalidSecret, SecretRef, SecretValue};

/// The environment of this process.
pub(super) type Environment = BTreeMap<OsString, OsString>;

/// Returns the first variable that contains a secret, and its value. An empty variable counts as not set.
pub(super) fn find_variable(
    environment: &Environment,
    name: &SecretRef,
) -> Option<(OsString, Result<SecretValue, InvalidSecret>)> {
    let (variable, value) = name.variables().into_iter().find_map(|variable| {
        let (name, value) = environment.get_key_value(&OsString::from(variable))?;
        (!value.is_empty()).then_some((name, value))
    })?;
    let value = value.clone().into_string().map_err(|_| InvalidSecret::NotText).and_then(SecretValue::new);
    Some((variable.clone(), value))
}
