//! The registry of all holders of the machine.

use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_store::lock_registry::{LockRegistry, RegistryError, RegistryLock};

use super::LivingHolder;

/// The folder of the registry, unless the caller names another one.
pub const LOCKS_FOLDER: &str = "/tmp/counterproof-locks";

/// The variable that names another folder.
pub const LOCKS_VARIABLE: &str = "COUNTERPROOF_LOCKS";

/// How long to wait for the lock of the registry, which others hold for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two attempts to lock the registry.
const LOCK_POLL: Duration = Duration::from_millis(2);

/// The registry in a folder.
#[derive(Debug, Clone)]
pub struct Registry(LockRegistry);

impl Registry {
    /// Opens the registry in a folder, which is created if it does not exist.
    pub fn open(folder: &Utf8Path) -> Result<Self, RegistryError> {
        LockRegistry::open(folder).map(Self)
    }

    /// Returns all living holders. Returns `None` if another process keeps the registry locked.
    pub fn holders(&self) -> Result<Option<Vec<LivingHolder>>, RegistryError> {
        let Some(locked) = self.lock()? else { return Ok(None) };
        let records = locked.living()?;
        Ok(Some(records.into_iter().map(LivingHolder::new).collect()))
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
            thread::sleep(LOCK_POLL);
        }
    }
}
