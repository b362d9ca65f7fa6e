//! Adoption of the processes that a killed supervisor leaves behind.

use std::io;

/// Makes the children of a killed supervisor children of this process, which can then kill them.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?)
}

/// Does nothing: other systems have no subreaper.
#[cfg(not(target_os = "linux"))]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}
