//! The process that executes a contract.

/// The process that executes a contract, as the transition to `executing` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkProcess {
    /// The number of the process.
    pub pid: u32,
    /// The name of its machine. `None` if it is not recorded.
    pub host: Option<String>,
}

impl WorkProcess {
    /// Returns whether the process runs on this machine, whose name is `host`. `None` for processes of other machines. A process
    /// that has got the same number later counts as the same one.
    #[cfg(unix)]
    pub fn is_running_on(&self, host: &str) -> Option<bool> {
        use rustix::io::Errno;
        use rustix::process::{Pid, test_kill_process};

        if host.is_empty() || self.host.as_deref() != Some(host) {
            return None;
        }
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        match test_kill_process(pid) {
            Ok(()) | Err(Errno::PERM) => Some(true),
            Err(Errno::SRCH) => Some(false),
            Err(_) => None,
        }
    }

    /// Returns `None`: processes cannot be found on this system.
    #[cfg(not(unix))]
    pub fn is_running_on(&self, _host: &str) -> Option<bool> {
        None
    }
}
