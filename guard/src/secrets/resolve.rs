//! Looks up the secrets of a server, derives the changes of its environment, and builds the redactors.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;

use counterproof_ledger::event::{SecretInjection, SecretSource};
use counterproof_redaction::{RedactError, Redactor};

use super::bindings::{BINDINGS, BINDINGS_FILE};
use super::secret::MASK;
use super::secret_store::STORE_PATH;
use super::{
    Binding, Bindings, InvalidSecret, Keychain, KeychainError, SecretRef, SecretStore, SecretStoreError, SecretValue,
    VariableName,
};

/// The start of the names of variables that only contain secrets.
const SECRET_PREFIX: &str = "SUB_SECRET_";

#[derive(Debug)]
pub struct SecretSources<'a> {
    pub environment: &'a Environment,
    /// The file of secrets; `None` where this system has no place for it.
    pub store: Option<&'a SecretStore>,
    pub keychain: &'a Keychain,
}

#[derive(Debug, Default)]
pub struct ResolvedSecrets {
    /// Changes of the server's environment: variables to set, and to remove (`None`).
    pub variables: BTreeMap<OsString, Option<SecretValue>>,
    /// The values to mask in everything that leaves.
    pub redact: Vec<SecretValue>,
    /// One fact for each binding, for the events.
    pub injections: Vec<SecretInjection>,
    pub errors: Vec<InjectionError>,
    pub warnings: Vec<InjectionError>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot inject the secret `{secret_ref}` as `{inject_as}`")]
pub struct InjectionError {
    pub inject_as: VariableName,
    pub secret_ref: SecretRef,
    pub source: LookupError,
}

#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    #[error("none of these variables is set: {}", .0.join(", "))]
    NoVariable(Vec<String>),
    #[error("it is not in `{0}`")]
    NotStored(camino::Utf8PathBuf),
    #[error("cannot find the file of secrets: the home folder is unknown")]
    NoStore,
    #[error("it is not in the keychain")]
    NotInKeychain,
    #[error(transparent)]
    Store(#[from] SecretStoreError),
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    #[error(transparent)]
    Invalid(#[from] InvalidSecret),
}

impl LookupError {
    fn is_missing(&self) -> bool {
        // An optional secret may be missing, but not invalid or unreadable.
        matches!(self, Self::NoVariable(_) | Self::NotStored(_) | Self::NoStore | Self::NotInKeychain)
            || matches!(self, Self::Keychain(KeychainError::Unsupported))
    }
}

impl ResolvedSecrets {
    /// The changes of the server's environment in the form that processes are started with. They contain the values, so
    /// only the start of the server may use them.
    pub fn environment(&self) -> BTreeMap<OsString, Option<OsString>> {
        let plain = |value: &SecretValue| OsString::from(value.expose());
        self.variables.iter().map(|(name, value)| (name.clone(), value.as_ref().map(plain))).collect()
    }
}

/// Looks up the secrets of `server`.
///
/// A server receives only the secrets that are bound to it. Other variables with secrets are removed from its environment: those that
/// state bindings, all variables `SUB_SECRET_*`, those from which a binding of any server reads or could read, and those that the
/// bindings of other servers set.
pub fn resolve(bindings: &Bindings, server: &str, sources: &SecretSources<'_>) -> ResolvedSecrets {
    let mut resolved = ResolvedSecrets {
        variables: removed_variables(bindings, server, sources.environment),
        ..ResolvedSecrets::default()
    };
    for binding in bindings.of_server(server) {
        let value = look_up(binding, sources).and_then(|value| {
            if binding.redact {
                value.check_redactable()?;
            }
            Ok(value)
        });
        // Also for a secret that was not found: the events of a run tell why its server did not start.
        resolved.injections.push(SecretInjection {
            inject_as: binding.inject_as.to_string(),
            secret_ref: binding.secret_ref.to_string(),
            source: binding.source,
            success: value.is_ok(),
        });
        match value {
            Ok(value) => {
                if binding.redact {
                    resolved.redact.push(value.clone());
                }
                resolved.variables.insert(binding.inject_as.as_str().into(), Some(value));
            }
            Err(source) => {
                let list =
                    // A secret that exists and cannot be used is an error, also if it is optional: the server would start with less
                    // than the user believes.
                    if binding.optional && source.is_missing() { &mut resolved.warnings } else { &mut resolved.errors };
                let (inject_as, secret_ref) = (binding.inject_as.clone(), binding.secret_ref.clone());
                list.push(InjectionError { inject_as, secret_ref, source });
            }
        }
    }
    resolved
}

fn look_up(binding: &Binding, sources: &SecretSources<'_>) -> Result<SecretValue, LookupError> {
    let name = &binding.secret_ref;
    match binding.source {
        SecretSource::Env => match find_variable(sources.environment, name) {
            Some((_, value)) => Ok(value?),
            None => Err(LookupError::NoVariable(name.variables().to_vec())),
        },
        SecretSource::File => {
            let store = sources.store.ok_or(LookupError::NoStore)?;
            store.value(name)?.ok_or_else(|| LookupError::NotStored(store.path().to_owned()))
        }
        SecretSource::Keychain => sources.keychain.lookup(name)?.ok_or(LookupError::NotInKeychain),
    }
}

/// The variables that are removed from the environments of all servers, unless a binding sets them.
fn removed_variables(
    bindings: &Bindings,
    server: &str,
    environment: &Environment,
) -> BTreeMap<OsString, Option<SecretValue>> {
    let stated = [BINDINGS, BINDINGS_FILE, STORE_PATH].map(OsString::from);
    // A server must not read the secrets of another one.
    let prefixed = environment.keys().filter(|name| name.to_string_lossy().starts_with(SECRET_PREFIX)).cloned();
    let from_environment = bindings.all().filter(|binding| binding.source == SecretSource::Env);
    // All spellings: a variable that another one precedes has a secret as well.
    let read = from_environment.flat_map(|binding| binding.secret_ref.variables()).map(OsString::from);
    // From the keychain or a file, and in the environment of the agent too.
    let others = bindings.servers.iter().filter(|(name, _)| *name != server).flat_map(|(_, list)| list);
    let others = others.map(|binding| binding.inject_as.as_str().into());
    let own: HashSet<&str> = bindings.of_server(server).map(|binding| binding.inject_as.as_str()).collect();
    let others = others.filter(|name: &OsString| !name.to_str().is_some_and(|name| own.contains(name)));
    let named = read.chain(others).filter(|name| environment.contains_key(name));
    stated.into_iter().chain(prefixed).chain(named).map(|name| (name, None)).collect()
}

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

/// Compiles the redactor of what the guard records: events, errors, previews, logs, cassettes. It masks the values, in every form
/// that one or two common encoders give them, and keys of known formats, short ones included.
pub fn redactor<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Result<Redactor, RedactError> {
    Ok(Redactor::broad(values.into_iter().map(SecretValue::expose))?.with_mask(MASK))
}

/// Compiles the redactor of what a server sends to its client. It masks only the values: all other bytes must arrive
/// unchanged.
pub fn value_redactor<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Result<Redactor, RedactError> {
    Ok(Redactor::of_values(values.into_iter().map(SecretValue::expose))?.with_mask(MASK))
}
