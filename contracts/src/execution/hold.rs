//! What an execution holds from its begin to its end.

use std::time::Duration;

use super::{Environment, ExecutionError, RollbackMode, RunSettings};
use crate::contract::{Contract, RollbackStrategy};
use crate::resources::{Access, AcquireError, AcquireRequest, Acquired, Claim, Registry, ResourceRequest};
use crate::store::Store;

/// How long to wait for another contract of the same process before looking again. It ends on its own.
const OWN_WAIT: Duration = Duration::from_secs(1);

/// The resources of an execution. Dropping it gives them back.
#[derive(Debug)]
pub(super) struct Held(Acquired);

impl Held {
    /// Returns the variables for the commands of the execution.
    pub(super) fn environment(&self) -> Environment {
        let mut environment = Environment::new();
        self.0.export_to(&mut environment);
        environment
    }
}

/// Acquires the resources of a contract, the contract itself and its working directory: all or none.
pub(super) fn acquire(contract: &Contract, store: &Store, settings: &RunSettings) -> Result<Held, ExecutionError> {
    let resources = parse(contract)?;
    let registry = Registry::open(&settings.locks).map_err(AcquireError::from)?;
    let mut request = request(contract, &resources, store, settings);
    loop {
        match registry.acquire(&request, |name| std::env::var_os(name), &settings.cancellation) {
            Ok(acquired) => return Ok(Held(acquired)),
            // Contracts of one run wait for each other, whatever the waiting time for other processes is.
            Err(AcquireError::Conflict(conflicts)) if conflicts.iter().all(is_own) => request.wait = OWN_WAIT,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns what others hold now of what a contract needs, one sentence each. Acquires nothing.
pub(crate) fn unavailable(
    contract: &Contract,
    store: &Store,
    settings: &RunSettings,
) -> Result<Vec<String>, ExecutionError> {
    let resources = parse(contract)?;
    if !settings.locks.exists() {
        return Ok(Vec::new());
    }
    let registry = Registry::open(&settings.locks).map_err(AcquireError::from)?;
    let conflicts =
        registry.conflicts(&request(contract, &resources, store, settings), |name| std::env::var_os(name))?;
    Ok(conflicts.into_iter().map(|conflict| conflict.message).collect())
}

fn parse(contract: &Contract) -> Result<Vec<ResourceRequest>, ExecutionError> {
    ResourceRequest::parse_all(contract.resources())
        .map_err(|errors| ExecutionError::Resources { id: contract.id.clone(), errors })
}

fn request<'a>(
    contract: &'a Contract,
    resources: &'a [ResourceRequest],
    store: &Store,
    settings: &'a RunSettings,
) -> AcquireRequest<'a> {
    let store = store.path().canonicalize_utf8().unwrap_or_else(|_| store.path().to_owned());
    // A reset cannot tell the changes of two contracts in one folder apart.
    let resets =
        contract.rollback.strategy == RollbackStrategy::GitReset && settings.rollback == RollbackMode::Automatic;
    let access = if resets { Access::Exclusive } else { Access::Shared };
    let claims = vec![
        Claim::WorkingDirectory { path: settings.workdir.clone(), access },
        Claim::Contract { store, id: contract.id.clone() },
    ];
    AcquireRequest {
        contract: &contract.id,
        owner: &settings.owner,
        now: (settings.clock)(),
        folder: settings.folder(),
        resources,
        claims,
        wait: settings.wait,
    }
}

/// True if this process holds the resource.
fn is_own(conflict: &crate::resources::Conflict) -> bool {
    conflict.holder.as_ref().is_some_and(|holder| holder.pid == std::process::id())
}
