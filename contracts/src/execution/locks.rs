//! The lease of an execution, from its start to its end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Environment, ExecutionError, RollbackMode, RunSettings};
use crate::contract::{Contract, RollbackStrategy};
use crate::resources::{
    Access, Conflict, LeaseError, LeaseGuard, LeaseRequest, Registry, ResourceLock, ResourceRequest,
};
use crate::rollback::declared_paths;
use crate::store::Store;

const POLL: Duration = Duration::from_millis(100);

/// The resources of an execution. Dropping it gives them back.
#[derive(Debug)]
pub(super) struct ExecutionLease {
    acquired: LeaseGuard,
    _own: OwnLease,
}

impl ExecutionLease {
    pub(super) fn environment(&self) -> Environment {
        let mut environment = Environment::new();
        self.acquired.export_to(&mut environment);
        environment
    }
}

pub(super) fn acquire(
    contract: &Contract,
    store: &Store,
    settings: &RunSettings,
) -> Result<ExecutionLease, ExecutionError> {
    let resources = parse(contract, settings)?;
    let registry = Registry::open(&settings.locks).map_err(LeaseError::from)?;
    let request = request(contract, &resources, store, settings);
    // Dropped after the lease: until then, other threads of this process wait instead of failing.
    let own = OwnLease::register(&request);
    let mut waiting_since = None;
    loop {
        let conflicts = match registry.acquire(&request, |name| std::env::var_os(name), &settings.cancellation) {
            Ok(acquired) => return Ok(ExecutionLease { acquired, _own: own }),
            Err(LeaseError::Conflict(conflicts)) => conflicts,
            Err(error) => return Err(error.into()),
        };
        // Contracts of one run wait for each other, whatever the waiting time for other processes is.
        if !conflicts.iter().all(OwnLease::has) {
            // The time for others starts with the first conflict with one of them, not while this run waits for
            // itself.
            let since = *waiting_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= settings.wait {
                return Err(LeaseError::Conflict(conflicts).into());
            }
        }
        // Without the lock of the registry, so that others can proceed.
        if !settings.cancellation.wait(POLL) {
            return Err(LeaseError::Cancelled.into());
        }
    }
}

/// The leases of this process, by contract and time. The number of a process means another one in another container.
static OWN: Mutex<Vec<(String, Timestamp)>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct OwnLease((String, Timestamp));

impl OwnLease {
    fn register(request: &LeaseRequest<'_>) -> Self {
        let key = (request.contract.to_string(), request.now);
        // Before anything is acquired, because other threads look at once.
        own().push(key.clone());
        Self(key)
    }

    fn has(conflict: &Conflict) -> bool {
        conflict.owner.as_ref().is_some_and(|owner| {
            owner.pid == std::process::id()
                && own().iter().any(|(contract, since)| *contract == owner.contract && *since == owner.since)
        })
    }
}

impl Drop for OwnLease {
    fn drop(&mut self) {
        let mut own = own();
        if let Some(index) = own.iter().position(|key| *key == self.0) {
            own.swap_remove(index);
        }
    }
}

fn own() -> MutexGuard<'static, Vec<(String, Timestamp)>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what others hold now of what a contract needs, one sentence each. Acquires nothing.
pub(crate) fn unavailable(
    contract: &Contract,
    store: &Store,
    settings: &RunSettings,
) -> Result<Vec<String>, ExecutionError> {
    let resources = parse(contract, settings)?;
    // A preview must not create the folder.
    if !settings.locks.exists() {
        return Ok(Vec::new());
    }
    let registry = Registry::open(&settings.locks).map_err(LeaseError::from)?;
    let conflicts =
        registry.conflicts(&request(contract, &resources, store, settings), |name| std::env::var_os(name))?;
    Ok(conflicts.into_iter().map(|conflict| conflict.message).collect())
}

fn parse(contract: &Contract, settings: &RunSettings) -> Result<Vec<ResourceRequest>, ExecutionError> {
    let mut resources = ResourceRequest::parse_all(contract.resources())
        .map_err(|errors| ExecutionError::Resources { id: contract.id.clone(), errors })?;
    let restores = contract.rollback.strategy == RollbackStrategy::RestoreSnapshot;
    if restores && settings.rollback == RollbackMode::Automatic {
        // A restored path must not have the work of another contract in it.
        resources.push(ResourceRequest::lock_of(&declared_paths(contract, &resources)));
    }
    Ok(resources)
}

fn request<'a>(
    contract: &'a Contract,
    resources: &'a [ResourceRequest],
    store: &Store,
    settings: &'a RunSettings,
) -> LeaseRequest<'a> {
    // Two ways to one store must be one lock. A store that does not exist yet has only one.
    let store = store.path().canonicalize_utf8().unwrap_or_else(|_| store.path().to_owned());
    // A reset cannot tell the changes of two contracts in one folder apart.
    let resets =
        contract.rollback.strategy == RollbackStrategy::GitReset && settings.rollback == RollbackMode::Automatic;
    let access = if resets { Access::Exclusive } else { Access::Shared };
    let locks = vec![
        ResourceLock::WorkingDirectory { path: settings.workdir.clone(), access },
        ResourceLock::Contract { store, id: contract.id.clone() },
    ];
    LeaseRequest {
        contract: &contract.id,
        owner: &settings.owner,
        now: (settings.clock)(),
        folder: &settings.workdir,
        resources,
        locks,
        // The caller repeats the request, because it distinguishes the owners.
        wait: Duration::ZERO,
    }
}
