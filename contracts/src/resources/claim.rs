//! What a holder has: one claim for each resource that excludes others.

use std::fmt;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::glob::PathPattern;
use crate::contract::ContractId;

/// Whether others may use a working directory at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Others may use it, if all share it.
    Shared,
    /// No one else may use it.
    Exclusive,
}

/// A claim of a holder. In a record, paths are absolute and without symbolic links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Claim {
    /// A TCP port.
    Port { port: u16 },
    /// The files that match a pattern.
    FileLock {
        /// Patterns of absolute paths.
        patterns: Vec<String>,
    },
    /// A name.
    Session { name: String },
    /// A folder and all below it.
    WorkingDirectory {
        /// The folder.
        path: Utf8PathBuf,
        /// Whether it is shared.
        access: Access,
    },
    /// A contract in its store.
    Contract {
        /// The folder of the store.
        store: Utf8PathBuf,
        id: ContractId,
    },
}

impl Claim {
    /// Returns the claim with the real paths of its folders, so that two ways to one folder are the same.
    pub(super) fn canonical(&self) -> Self {
        let real = |path: &Utf8PathBuf| path.canonicalize_utf8().unwrap_or_else(|_| path.clone());
        match self {
            Claim::WorkingDirectory { path, access } => Claim::WorkingDirectory { path: real(path), access: *access },
            Claim::Contract { store, id } => Claim::Contract { store: real(store), id: id.clone() },
            other => other.clone(),
        }
    }

    /// True if two holders cannot have both claims at the same time.
    pub fn conflicts_with(&self, other: &Claim) -> bool {
        match (self, other) {
            (Claim::Port { port: a }, Claim::Port { port: b }) => a == b,
            (Claim::Session { name: a }, Claim::Session { name: b }) => a == b,
            (Claim::FileLock { patterns: a }, Claim::FileLock { patterns: b }) => patterns_overlap(a, b),
            (
                Claim::WorkingDirectory { path: a, access: access_a },
                Claim::WorkingDirectory { path: b, access: access_b },
            ) => {
                let is_shared = (*access_a, *access_b) == (Access::Shared, Access::Shared);
                !is_shared && (a.starts_with(b) || b.starts_with(a))
            }
            (Claim::Contract { .. }, Claim::Contract { .. }) => self == other,
            _ => false,
        }
    }
}

/// True if some path matches a pattern of each list. A pattern that another version wrote and this one cannot read may match
/// every path.
fn patterns_overlap(a: &[String], b: &[String]) -> bool {
    let parse =
        |patterns: &[String]| patterns.iter().map(|text| PathPattern::parse(text)).collect::<Result<Vec<_>, _>>();
    let (Ok(a), Ok(b)) = (parse(a), parse(b)) else { return true };
    a.iter().any(|a| b.iter().any(|b| a.intersects(b)))
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Port { port } => write!(f, "port {port}"),
            Claim::FileLock { patterns } => write!(f, "files `{}`", patterns.join("`, `")),
            Claim::Session { name } => write!(f, "session `{name}`"),
            Claim::WorkingDirectory { path, access: Access::Shared } => write!(f, "working directory `{path}`, shared"),
            Claim::WorkingDirectory { path, access: Access::Exclusive } => {
                write!(f, "working directory `{path}`, exclusive")
            }
            Claim::Contract { store, id } => write!(f, "contract `{id}` in `{store}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str, access: Access) -> Claim {
        Claim::WorkingDirectory { path: path.into(), access }
    }

    fn files(pattern: &str) -> Claim {
        Claim::FileLock { patterns: vec![pattern.to_owned()] }
    }

    fn contract(store: &str, id: &str) -> Claim {
        Claim::Contract { store: store.into(), id: id.parse().unwrap() }
    }

    #[test]
    fn claims_conflict_with_claims_of_their_kind() {
        use Access::{Exclusive, Shared};
        let session = |name: &str| Claim::Session { name: name.to_owned() };
        for (a, b) in [
            (Claim::Port { port: 1 }, Claim::Port { port: 1 }),
            (session("s"), session("s")),
            (files("/a/*"), files("/a/b")),
            (files("/a/b"), files("/{unreadable")),
            (folder("/a", Shared), folder("/a", Exclusive)),
            (folder("/a/b", Exclusive), folder("/a", Shared)),
            (contract("/s", "a/1"), contract("/s", "a/1")),
        ] {
            assert!(a.conflicts_with(&b) && b.conflicts_with(&a), "{a} and {b}");
        }
        for (a, b) in [
            (Claim::Port { port: 1 }, Claim::Port { port: 2 }),
            (session("s"), session("t")),
            (files("/a/*"), files("/b/*")),
            (folder("/a", Shared), folder("/a", Shared)),
            (folder("/a/b", Exclusive), folder("/a/bc", Exclusive)),
            (contract("/s", "a/1"), contract("/t", "a/1")),
            (session("/a"), files("/a")),
        ] {
            assert!(!a.conflicts_with(&b) && !b.conflicts_with(&a), "{a} and {b}");
        }
    }
}
