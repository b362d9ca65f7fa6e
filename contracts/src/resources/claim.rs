//! What a holder has: one claim for each resource that excludes others.

use std::fmt;
use std::ops::RangeInclusive;

use camino::Utf8PathBuf;
use counterproof_store::lock_registry::Record;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::path_pattern::PathPattern;
use crate::contract::ContractId;

/// Whether others may use a working directory at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Others may use it, if all share it.
    Shared,
    Exclusive,
}

/// A claim of a holder. In a record, paths are absolute and without symbolic links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Claim {
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

fn patterns_overlap(a: &[String], b: &[String]) -> bool {
    let parse =
        |patterns: &[String]| patterns.iter().map(|text| PathPattern::parse(text)).collect::<Result<Vec<_>, _>>();
    // A pattern that another version wrote and this one cannot read may match every path.
    let (Ok(a), Ok(b)) = (parse(a), parse(b)) else { return true };
    a.iter().any(|a| b.iter().any(|b| a.may_overlap(b)))
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub resource: String,
    /// Who has it; `None` if that is unknown.
    pub holder: Option<Holder>,
    pub message: String,
}

/// Returns the conflicts of claims with those of a holder. A holder whose claims are unknown conflicts with everything.
pub(super) fn with_holder(wanted: &[Claim], other: &LivingHolder) -> Vec<Conflict> {
    let Some((holder, claims)) = &other.known else {
        // It lives, so it holds something: taking what it may hold would break its exclusion.
        let message = format!("the holder of `{}` is unknown: its record cannot be read", other.record);
        return vec![Conflict { resource: "all resources".to_owned(), holder: None, message }];
    };
    let conflict = |wanted: &Claim| {
        let held = claims.iter().find(|held| wanted.conflicts_with(held))?;
        let Holder { contract, owner, pid, since } = holder;
        let by = format!("contract `{contract}` (owner `{owner}`, process {pid}, since {since})");
        let message = if wanted == held {
            format!("{wanted} is held by {by}")
        } else {
            format!("{wanted} overlaps with {held}, held by {by}")
        };
        Some(Conflict { resource: wanted.to_string(), holder: Some(holder.clone()), message })
    };
    wanted.iter().filter_map(conflict).collect()
}

/// Returns the conflict of a range without a free port. It names the first holder of a port in it.
pub(super) fn no_port(range: RangeInclusive<u16>, holders: &[LivingHolder]) -> Conflict {
    let (first, last) = (*range.start(), *range.end());
    let held_by = |holder: &LivingHolder| holder.ports().filter(|port| range.contains(port)).count();
    let held: usize = holders.iter().map(held_by).sum();
    let holder = holders.iter().find(|holder| held_by(holder) > 0).and_then(LivingHolder::holder).cloned();
    let by = holder.as_ref().map_or_else(String::new, |holder| format!(" (the first of them `{}`)", holder.contract));
    let others = range.len().saturating_sub(held);
    let message =
        format!("no free port in {first}-{last}: {held} held by contracts{by}, {others} in use by other programs");
    Conflict { resource: format!("port {first}-{last}"), holder, message }
}

const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub contract: String,
    pub owner: String,
    /// The process. In another container, the number means another process.
    pub pid: u32,
    pub since: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    format: u32,
    holder: Holder,
    claims: Vec<Claim>,
}

/// A holder that lives, as its record says. The record is text of another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingHolder {
    pub record: Utf8PathBuf,
    /// The holder and its claims; `None` if the record cannot be read, for example because another version wrote it.
    pub known: Option<(Holder, Vec<Claim>)>,
}

impl LivingHolder {
    pub(super) fn new(record: Record) -> Self {
        let content = record.content.ok().and_then(|bytes| serde_json::from_slice::<Content>(&bytes).ok());
        let known = content.filter(|content| content.format == FORMAT);
        Self { record: record.path, known: known.map(|content| (content.holder, content.claims)) }
    }

    /// The claims. A holder whose record cannot be read has unknown ones.
    pub fn claims(&self) -> Option<&[Claim]> {
        self.known.as_ref().map(|(_, claims)| claims.as_slice())
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.claims().unwrap_or_default().iter().filter_map(|claim| match claim {
            Claim::Port { port } => Some(*port),
            _ => None,
        })
    }

    pub fn holder(&self) -> Option<&Holder> {
        self.known.as_ref().map(|(holder, _)| holder)
    }
}

pub(super) fn content(holder: Holder, claims: Vec<Claim>) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(&Content { format: FORMAT, holder, claims })?;
    bytes.push(b'\n');
    Ok(bytes)
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
