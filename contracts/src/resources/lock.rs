//! What a lease consists of: one lock for each resource that excludes others, and who owns them.

use std::fmt;
use std::ops::RangeInclusive;

use camino::Utf8PathBuf;
use counterproof_store::lock_registry::Record;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::path_pattern::PathPattern;
use crate::contract::ContractId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Others may use it, if all share it.
    Shared,
    Exclusive,
}

/// In a record, paths are absolute and without symbolic links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResourceLock {
    Port {
        port: u16,
    },
    FileLock {
        /// Patterns of absolute paths.
        patterns: Vec<String>,
    },
    Session {
        name: String,
    },
    /// A folder and all below it.
    WorkingDirectory {
        path: Utf8PathBuf,
        access: Access,
    },
    Contract {
        store: Utf8PathBuf,
        id: ContractId,
    },
}

impl ResourceLock {
    /// Returns the lock with the real paths of its folders, so that two ways to one folder are the same.
    pub(super) fn canonical(&self) -> Self {
        let real = |path: &Utf8PathBuf| path.canonicalize_utf8().unwrap_or_else(|_| path.clone());
        match self {
            ResourceLock::WorkingDirectory { path, access } => {
                ResourceLock::WorkingDirectory { path: real(path), access: *access }
            }
            ResourceLock::Contract { store, id } => ResourceLock::Contract { store: real(store), id: id.clone() },
            // Patterns are made absolute when they are read from the contract.
            other => other.clone(),
        }
    }

    pub fn conflicts_with(&self, other: &ResourceLock) -> bool {
        match (self, other) {
            (ResourceLock::Port { port: a }, ResourceLock::Port { port: b }) => a == b,
            (ResourceLock::Session { name: a }, ResourceLock::Session { name: b }) => a == b,
            (ResourceLock::FileLock { patterns: a }, ResourceLock::FileLock { patterns: b }) => patterns_overlap(a, b),
            (
                ResourceLock::WorkingDirectory { path: a, access: access_a },
                ResourceLock::WorkingDirectory { path: b, access: access_b },
            ) => {
                let is_shared = (*access_a, *access_b) == (Access::Shared, Access::Shared);
                // A folder contains those below it, whichever was locked first.
                !is_shared && (a.starts_with(b) || b.starts_with(a))
            }
            (ResourceLock::Contract { .. }, ResourceLock::Contract { .. }) => self == other,
            _ => false,
        }
    }
}

fn patterns_overlap(a: &[String], b: &[String]) -> bool {
    let parse =
        |patterns: &[String]| patterns.iter().map(|text| PathPattern::parse(text)).collect::<Result<Vec<_>, _>>();
    // A pattern that another version wrote and this one cannot read may match every path.
    let (Ok(a), Ok(b)) = (parse(a), parse(b)) else { return true };
    a.iter().any(|a| b.iter().any(|b| a.may_overlap(b)))
}

impl fmt::Display for ResourceLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceLock::Port { port } => write!(f, "port {port}"),
            ResourceLock::FileLock { patterns } => write!(f, "files `{}`", patterns.join("`, `")),
            ResourceLock::Session { name } => write!(f, "session `{name}`"),
            ResourceLock::WorkingDirectory { path, access: Access::Shared } => {
                write!(f, "working directory `{path}`, shared")
            }
            ResourceLock::WorkingDirectory { path, access: Access::Exclusive } => {
                write!(f, "working directory `{path}`, exclusive")
            }
            ResourceLock::Contract { store, id } => write!(f, "contract `{id}` in `{store}`"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub resource: String,
    /// Who has it; `None` if that is unknown.
    pub owner: Option<LeaseOwner>,
    pub message: String,
}

pub(super) fn conflicts_with(wanted: &[ResourceLock], lease: &Lease) -> Vec<Conflict> {
    let Some(LeaseContent { owner: by, locks, .. }) = &lease.content else {
        // The lease is live, so it has locks: taking what it may hold would break its exclusion.
        let message = format!("the holder of `{}` is unknown: its record cannot be read", lease.record);
        return vec![Conflict { resource: "all resources".to_owned(), owner: None, message }];
    };
    let conflict = |wanted: &ResourceLock| {
        let held = locks.iter().find(|held| wanted.conflicts_with(held))?;
        let LeaseOwner { contract, owner, pid, since } = by;
        let holder = format!("contract `{contract}` (owner `{owner}`, process {pid}, since {since})");
        let message = if wanted == held {
            format!("{wanted} is held by {holder}")
        } else {
            format!("{wanted} overlaps with {held}, held by {holder}")
        };
        Some(Conflict { resource: wanted.to_string(), owner: Some(by.clone()), message })
    };
    wanted.iter().filter_map(conflict).collect()
}

/// Returns the conflict of a range without a free port. It names the first owner of a port in it.
pub(super) fn no_port(range: RangeInclusive<u16>, leases: &[Lease]) -> Conflict {
    let (first, last) = (*range.start(), *range.end());
    let held_by = |lease: &Lease| lease.ports().filter(|port| range.contains(port)).count();
    let held: usize = leases.iter().map(held_by).sum();
    let owner = leases.iter().find(|lease| held_by(lease) > 0).and_then(Lease::owner).cloned();
    let by = owner.as_ref().map_or_else(String::new, |owner| format!(" (the first of them `{}`)", owner.contract));
    let others = range.len().saturating_sub(held);
    let message =
        format!("no free port in {first}-{last}: {held} held by contracts{by}, {others} in use by other programs");
    Conflict { resource: format!("port {first}-{last}"), owner, message }
}

const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseOwner {
    pub contract: String,
    /// The agent that executes the contract.
    pub owner: String,
    /// The process. In another container, the number means another process.
    pub pid: u32,
    pub since: Timestamp,
}

/// The content of a record. Its field names are those of the format, which older programs on the machine read too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseContent {
    format: u32,
    #[serde(rename = "holder")]
    pub owner: LeaseOwner,
    #[serde(rename = "claims")]
    pub locks: Vec<ResourceLock>,
}

/// A live lease. Its record is text of another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub record: Utf8PathBuf,
    /// `None` if the record cannot be read, for example because another version wrote it.
    pub content: Option<LeaseContent>,
}

impl Lease {
    pub(super) fn new(record: Record) -> Self {
        let content = record.content.ok().and_then(|bytes| serde_json::from_slice::<LeaseContent>(&bytes).ok());
        Self { record: record.path, content: content.filter(|content| content.format == FORMAT) }
    }

    pub fn locks(&self) -> Option<&[ResourceLock]> {
        self.content.as_ref().map(|content| content.locks.as_slice())
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.locks().unwrap_or_default().iter().filter_map(|lock| match lock {
            ResourceLock::Port { port } => Some(*port),
            _ => None,
        })
    }

    pub fn owner(&self) -> Option<&LeaseOwner> {
        self.content.as_ref().map(|content| &content.owner)
    }
}

pub(super) fn encode(owner: LeaseOwner, locks: Vec<ResourceLock>) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(&LeaseContent { format: FORMAT, owner, locks })?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str, access: Access) -> ResourceLock {
        ResourceLock::WorkingDirectory { path: path.into(), access }
    }

    fn files(pattern: &str) -> ResourceLock {
        ResourceLock::FileLock { patterns: vec![pattern.to_owned()] }
    }

    fn contract(store: &str, id: &str) -> ResourceLock {
        ResourceLock::Contract { store: store.into(), id: id.parse().unwrap() }
    }

    #[test]
    fn locks_conflict_with_locks_of_their_kind() {
        use Access::{Exclusive, Shared};
        let session = |name: &str| ResourceLock::Session { name: name.to_owned() };
        for (a, b) in [
            (ResourceLock::Port { port: 1 }, ResourceLock::Port { port: 1 }),
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
            (ResourceLock::Port { port: 1 }, ResourceLock::Port { port: 2 }),
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
