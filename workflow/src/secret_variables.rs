//! The variables of our environment that commands of a workflow do not get: neither those of a model nor those of the repository.

use std::ffi::OsStr;
use std::sync::LazyLock;

use counterproof_redaction::{KeyFinder, is_secret_name};

/// Variables that give access to something, and whose names do not show it.
const ACCESS: [&str; 7] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "KUBECONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
];

static KEYS: LazyLock<Option<KeyFinder>> = LazyLock::new(|| KeyFinder::new().ok());

/// Reports whether a variable is a secret, gives access to one, or leads git to another repository or configuration.
pub(crate) fn gives_access(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    // `GIT_DIR` and its like would lead git to another repository.
    name.starts_with("GIT_")
        || ACCESS.contains(&&*name)
        || is_secret_name(&name)
        || KEYS.as_ref().is_none_or(|keys| keys.find(&value).next().is_some())
}
