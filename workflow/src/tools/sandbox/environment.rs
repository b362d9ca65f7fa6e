//! The environment of the commands of a model.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use camino::Utf8Path;

use crate::secret_variables::gives_access;

/// Variables that name a folder for results outside of the workspace, which cannot be written.
const FOLDERS: [&str; 2] = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"];

/// Returns the changes of an environment: variables with secrets and those of git are removed, and temporary files are in
/// `private`. `further` changes come last.
pub(super) fn changes(
    variables: impl Iterator<Item = (OsString, OsString)>,
    private: &Utf8Path,
    further: &BTreeMap<OsString, Option<OsString>>,
) -> BTreeMap<OsString, Option<OsString>> {
    let removed = variables.filter(|(name, value)| is_removed(name, value)).map(|(name, _)| (name, None));
    let mut changes: BTreeMap<OsString, Option<OsString>> = removed.collect();
    let mut set = |name: &str, value: &str| changes.insert(name.into(), Some(value.into()));
    set("TMPDIR", private.as_str());
    // The caches of the user cannot be written, and Go does not build without one.
    set("XDG_CACHE_HOME", private.join("cache").as_str());
    // No files next to the sources that a snapshot would contain.
    set("PYTHONDONTWRITEBYTECODE", "1");
    // Without it, cargo tries the network for a crate that it has.
    set("CARGO_NET_OFFLINE", "true");
    changes.extend(further.clone());
    changes
}

fn is_removed(name: &OsStr, value: &OsStr) -> bool {
    FOLDERS.iter().any(|folder| name == *folder) || gives_access(name, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_variables_of_git_are_removed() {
        let variables = [
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("OPENAI_API_KEY", "x"),
            ("GITHUB_TOKEN", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("DB_PASSWORD", "x"),
            ("GIT_DIR", "/x"),
            ("GIT_CONFIG_COUNT", "1"),
            ("SSH_AUTH_SOCK", "/x"),
            ("DATABASE_URL", "postgres://app:hunter22@db/x"),
            ("CARGO_TARGET_DIR", "/x"),
            ("MAKEFLAGS", "-j2"),
        ];
        let further = BTreeMap::from([("OPENAI_API_KEY".into(), Some("proxied".into()))]);
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        let changes = changes(variables, Utf8Path::new("/private"), &further);
        let of = |is_set: bool| -> Vec<&str> {
            let changed = changes.iter().filter(|(_, value)| value.is_some() == is_set);
            changed.map(|(name, _)| name.to_str().unwrap()).collect()
        };
        let removed = [
            "AWS_SECRET_ACCESS_KEY",
            "CARGO_TARGET_DIR",
            "DATABASE_URL",
            "DB_PASSWORD",
            "GITHUB_TOKEN",
            "GIT_CONFIG_COUNT",
            "GIT_DIR",
            "SSH_AUTH_SOCK",
        ];
        assert_eq!(of(false), removed);
        let set = ["CARGO_NET_OFFLINE", "OPENAI_API_KEY", "PYTHONDONTWRITEBYTECODE", "TMPDIR", "XDG_CACHE_HOME"];
        assert_eq!(of(true), set);
    }
}
