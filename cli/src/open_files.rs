//! How many files this process may have open: as many as a run needs, as far as the system lets us.

/// What one case in flight holds open at most, with room to spare: a connection and a file, or the pipes of a program, those
/// to its supervisor, and both ends of each while it starts.
const EACH: u64 = 16;

/// What a run holds open besides.
const BESIDES: u64 = 128;

/// Allows this process to have so many cases in flight. Gives how many files it may open where that is too few for them.
#[cfg(unix)]
pub(crate) fn allow(cases: usize) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let wanted = (cases as u64).saturating_mul(EACH).saturating_add(BESIDES);
    let limit = getrlimit(Resource::Nofile);
    // No limit at all is said with `None`.
    let current = limit.current.filter(|&current| current < wanted)?;
    let allowed = limit.maximum.map_or(wanted, |maximum| wanted.min(maximum)).max(current);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), ..limit });
    let allowed = raised.map_or(current, |()| allowed);
    (allowed < wanted).then_some(allowed)
}

/// Nothing has to be allowed where nothing is limited.
#[cfg(not(unix))]
pub(crate) const fn allow(_cases: usize) -> Option<u64> {
    None
}
