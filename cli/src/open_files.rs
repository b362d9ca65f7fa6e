//! The limit of open files of this process (`RLIMIT_NOFILE`), raised to what a run needs.

/// Upper bound of open files per case in flight: a connection and a file; or the pipes of an agent program, those of its
/// supervisor, and both ends of each during start.
#[cfg(unix)]
const FILES_PER_CASE: u64 = 16;

/// Open files of a run that do not depend on the number of cases in flight.
#[cfg(unix)]
const BASE_FILES: u64 = 128;

/// Raises the soft limit for `cases` cases in flight. Returns the limit if it is still too low for them.
#[cfg(unix)]
pub(crate) fn raise_limit(cases: usize) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let needed = (cases as u64).saturating_mul(FILES_PER_CASE).saturating_add(BASE_FILES);
    let limit = getrlimit(Resource::Nofile);
    // `None` means unlimited.
    let current = limit.current.filter(|&current| current < needed)?;
    let raised = limit.maximum.map_or(needed, |maximum| needed.min(maximum)).max(current);
    let result = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit });
    let effective = result.map_or(current, |()| raised);
    (effective < needed).then_some(effective)
}

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub(crate) const fn raise_limit(_cases: usize) -> Option<u64> {
    None
}
