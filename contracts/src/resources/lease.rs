//! Takes all resources of an execution at once, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use std::{io, thread};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::lock_registry::{LockRegistry, RecordLock, RegistryError, RegistryLock};
use jiff::Timestamp;

use super::{Conflict, Lease, LeaseOwner, ResourceLock, ResourceRequest, lock, path_pattern};
use crate::contract::ContractId;
use crate::process::Cancellation;

/// The time between two attempts, which grows from the first to the second.
const POLL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

#[derive(Debug, Clone)]
pub struct LeaseRequest<'a> {
    pub contract: &'a ContractId,
    pub owner: &'a str,
    pub now: Timestamp,
    pub folder: &'a Utf8Path,
    pub resources: &'a [ResourceRequest],
    /// Locks that the contract does not declare: the working directory and the contract itself.
    pub locks: Vec<ResourceLock>,
    pub wait: Duration,
}

/// The resources of an execution. Dropping it releases them.
#[derive(Debug)]
pub struct LeaseGuard {
    pub environment: BTreeMap<String, String>,
    pub locks: Vec<ResourceLock>,
    record: RecordLock,
}

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("{}", messages(.0))]
    Conflict(Vec<Conflict>),
    #[error("the variable `{0}` is not set; the contract needs it")]
    NotSet(String),
    #[error("cancelled while waiting for resources")]
    Cancelled,
    #[error("the registry `{0}` stays locked by another process")]
    Busy(Utf8PathBuf),
    #[error("cannot resolve the working directory `{path}`")]
    Folder { path: Utf8PathBuf, source: io::Error },
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

fn messages(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(|conflict| conflict.message.as_str()).collect::<Vec<_>>().join("; ")
}

impl LeaseError {
    pub const fn code(&self) -> &'static str {
        match self {
            LeaseError::Conflict(_) => "conflict",
            LeaseError::NotSet(_) => "env_not_set",
            LeaseError::Cancelled => "cancelled",
            LeaseError::Busy(_) | LeaseError::Folder { .. } | LeaseError::Registry(_) => "storage_error",
        }
    }
}

impl LeaseGuard {
    pub fn export_to(&self, environment: &mut BTreeMap<OsString, Option<OsString>>) {
        let variables = self.environment.iter().map(|(name, value)| (name.into(), Some(value.into())));
        environment.extend(variables);
    }

    pub fn record(&self) -> &Utf8Path {
        self.record.path()
    }
}

impl Registry {
    /// Returns what others have of a request now, without acquiring anything.
    pub fn conflicts(
        &self,
        request: &LeaseRequest<'_>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<Conflict>, LeaseError> {
        let wanted = Wanted::new(request, variable)?;
        // A moment later the answer may differ: this is for a preview.
        let leases = self.leases()?.ok_or_else(|| LeaseError::Busy(self.folder().to_owned()))?;
        Ok(wanted.choose(&leases).err().unwrap_or_default())
    }

    /// Acquires all resources of a request. If others have some of them, tries again until the waiting time is over.
    /// `variable` looks up a variable of the environment.
    pub fn acquire(
        &self,
        request: &LeaseRequest<'_>,
        variable: impl Fn(&str) -> Option<OsString>,
        cancellation: &Cancellation,
    ) -> Result<LeaseGuard, LeaseError> {
        let wanted = Wanted::new(request, variable)?;
        let end = Instant::now().checked_add(request.wait);
        let mut poll = POLL.0;
        loop {
            if cancellation.is_cancelled() {
                return Err(LeaseError::Cancelled);
            }
            // Locked anew for each attempt; the states of others are only valid under the lock.
            let locked = self.lock()?.ok_or_else(|| LeaseError::Busy(self.folder().to_owned()))?;
            // All or nothing under one lock: an execution that kept a part while it waits could deadlock with another.
            let conflicts = match wanted.acquire(&locked, request)? {
                Ok(acquired) => return Ok(acquired),
                Err(conflicts) => conflicts,
            };
            // Before the pause: others must be able to release and to acquire leases meanwhile.
            drop(locked);
            let left = end.map_or(POLL.1, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(LeaseError::Conflict(conflicts));
            }
            if !cancellation.wait(poll.min(left)) {
                return Err(LeaseError::Cancelled);
            }
            // Short at first for conflicts that end soon; longer later, because each poll reads all records.
            poll = (poll * 2).min(POLL.1);
        }
    }
}

/// The resources of a request that do not depend on others.
struct Wanted<'a> {
    locks: Vec<ResourceLock>,
    /// Ports and the variables that export them.
    ports: Vec<(u16, u16, &'a str)>,
    environment: BTreeMap<String, String>,
}

/// The locks to take, and the variables that export them.
type Choice = (Vec<ResourceLock>, BTreeMap<String, String>);

impl<'a> Wanted<'a> {
    fn new(request: &LeaseRequest<'a>, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, LeaseError> {
        let folder_error = |source| LeaseError::Folder { path: request.folder.to_owned(), source };
        let folder = request.folder.canonicalize_utf8().map_err(folder_error)?;
        let mut wanted = Self {
            // Real paths, because others compare with them from other folders.
            locks: request.locks.iter().map(ResourceLock::canonical).collect(),
            ports: Vec::new(),
            environment: BTreeMap::new(),
        };
        for resource in request.resources {
            match resource {
                ResourceRequest::Port { first, last, variable } => wanted.ports.push((*first, *last, variable)),
                ResourceRequest::FileLock { patterns } => {
                    let patterns = patterns.iter().map(|pattern| path_pattern::absolute(&folder, pattern)).collect();
                    wanted.locks.push(ResourceLock::FileLock { patterns });
                }
                ResourceRequest::Session { name, variable } => {
                    wanted.locks.push(ResourceLock::Session { name: name.clone() });
                    wanted.environment.extend(variable.clone().map(|variable| (variable, name.clone())));
                }
                ResourceRequest::Variable { name, value: Some(value) } => {
                    wanted.environment.insert(name.clone(), value.clone());
                }
                // A variable takes nothing from others, but failing here is cheaper than in the middle of the work.
                ResourceRequest::Variable { name, value: None } => {
                    variable(name).ok_or_else(|| LeaseError::NotSet(name.clone()))?;
                }
            }
        }
        Ok(wanted)
    }

    fn acquire(
        &self,
        locked: &RegistryLock<'_>,
        request: &LeaseRequest<'_>,
    ) -> Result<Result<LeaseGuard, Vec<Conflict>>, LeaseError> {
        let leases: Vec<Lease> = locked.living()?.into_iter().map(Lease::new).collect();
        let (locks, environment) = match self.choose(&leases) {
            Ok(chosen) => chosen,
            Err(conflicts) => return Ok(Err(conflicts)),
        };
        let owner = LeaseOwner {
            contract: request.contract.to_string(),
            owner: request.owner.to_owned(),
            pid: std::process::id(),
            since: request.now,
        };
        let encoding =
            |error: serde_json::Error| RegistryError::Io { path: request.folder.to_owned(), source: error.into() };
        let content = lock::encode(owner, locks.clone()).map_err(encoding)?;
        let record = locked.add(&content)?;
        Ok(Ok(LeaseGuard { environment, locks, record }))
    }

    fn choose(&self, leases: &[Lease]) -> Result<Choice, Vec<Conflict>> {
        let mut conflicts: Vec<Conflict> =
            leases.iter().flat_map(|lease| lock::conflicts_with(&self.locks, lease)).collect();
        let (mut locks, mut environment) = (self.locks.clone(), self.environment.clone());
        let mut taken: BTreeSet<u16> = leases.iter().flat_map(Lease::ports).collect();
        for &(first, last, variable) in &self.ports {
            if let Some(port) = first_free(first..=last, &taken) {
                // Two ranges of one contract must not get the same port.
                taken.insert(port);
                locks.push(ResourceLock::Port { port });
                environment.insert(variable.to_owned(), port.to_string());
            } else {
                conflicts.push(lock::no_port(first..=last, leases));
            }
        }
        if conflicts.is_empty() { Ok((locks, environment)) } else { Err(conflicts) }
    }
}

/// The addresses on which a server may listen.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST];

pub(super) fn first_free(range: RangeInclusive<u16>, taken: &BTreeSet<u16>) -> Option<u16> {
    range.into_iter().find(|port| !taken.contains(port) && is_free(*port))
}

fn is_free(port: u16) -> bool {
    // A server on one address does not prevent another one on the other.
    ADDRESSES.into_iter().all(|address| TcpListener::bind((IpAddr::V4(address), port)).is_ok())
}

pub const LOCKS_FOLDER: &str = "/tmp/counterproof-locks";

pub const LOCKS_VARIABLE: &str = "COUNTERPROOF_LOCKS";

/// How long to wait for the lock of the registry, which others hold for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

const LOCK_POLL: Duration = Duration::from_millis(2);

#[derive(Debug, Clone)]
pub struct Registry(LockRegistry);

impl Registry {
    pub fn open(folder: &Utf8Path) -> Result<Self, RegistryError> {
        LockRegistry::open(folder).map(Self)
    }

    /// Returns all living leases. Returns `None` if another process keeps the registry locked.
    pub fn leases(&self) -> Result<Option<Vec<Lease>>, RegistryError> {
        let Some(locked) = self.lock()? else { return Ok(None) };
        let records = locked.living()?;
        Ok(Some(records.into_iter().map(Lease::new).collect()))
    }

    pub fn folder(&self) -> &Utf8Path {
        self.0.folder()
    }

    pub(super) fn lock(&self) -> Result<Option<RegistryLock<'_>>, RegistryError> {
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            let locked = self.0.try_lock()?;
            if locked.is_some() || Instant::now() >= end {
                return Ok(locked);
            }
            // A lock of the system without a time limit could block for good behind a stopped process.
            thread::sleep(LOCK_POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_with_a_server_are_not_free() {
        for address in ADDRESSES {
            let server = TcpListener::bind((address, 0)).unwrap();
            let port = server.local_addr().unwrap().port();
            assert_eq!(first_free(port..=port, &BTreeSet::new()), None);
            drop(server);
            assert_eq!(first_free(port..=port, &BTreeSet::new()), Some(port));
            assert_eq!(first_free(port..=port, &[port].into()), None);
        }
    }
}
