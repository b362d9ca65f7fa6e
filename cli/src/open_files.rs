//! The limit of open files of this process (`RLIMIT_NOFILE`): raised to what a run needs, or else obeyed by running fewer cases at
//! once.

use std::num::NonZeroUsize;

use counterproof_runner::Target;

/// A limit that does not suffice for the requested number of cases in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LowLimit {
    /// The limit, after raising it as far as the system allows.
    pub(crate) open_files: u64,
    /// The limit that the requested number of cases needs.
    pub(crate) needed: u64,
    /// How many cases the limit allows in flight.
    pub(crate) cases: NonZeroUsize,
}

/// Raises the soft limit for `cases` cases in flight. Returns the limit if it is still too low for them.
#[cfg(unix)]
pub(crate) fn raise_limit(target: &Target, cases: usize) -> Option<LowLimit> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let usage = Usage::now(target);
    let needed = usage.of(cases);
    let limit = getrlimit(Resource::Nofile);
    // `None` means unlimited.
    let current = limit.current.filter(|&current| current < needed)?;
    // Only as far as needed, and never above the hard limit, which needs privileges.
    let raised = limit.maximum.map_or(needed, |maximum| needed.min(maximum)).max(current);
    let result = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit });
    let open_files = result.map_or(current, |()| raised);
    (open_files < needed).then(|| LowLimit { open_files, needed, cases: usage.cases_within(open_files) })
}

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub(crate) const fn raise_limit(_target: &Target, _cases: usize) -> Option<LowLimit> {
    None
}

/// How many files a run has open at once.
#[cfg(unix)]
#[derive(Debug, Clone, Copy)]
struct Usage {
    /// Independent of the number of cases in flight.
    base: u64,
    per_case: u64,
}

#[cfg(unix)]
impl Usage {
    /// Files that a run opens in addition to those that are open at its start: those of the async runtime and of the signals, the
    /// lock, and the name resolution.
    const OF_RUN: u64 = 32;

    /// An unused connection from an earlier attempt, a connection to each of two addresses, and a file for the body.
    const OF_REQUEST: u64 = 4;

    /// Both ends of the pipes for input, output, errors and signals and of the connection to the supervisor, a file for the output,
    /// and one in reserve.
    const OF_PROGRAM: u64 = 12;

    /// Returns the usage of a run that starts now.
    fn now(target: &Target) -> Self {
        // Without this folder, a guess: the standard streams and a few more.
        let open = std::fs::read_dir("/dev/fd").map_or(8, |entries| entries.count() as u64);
        let per_case = match target {
            Target::Http(_) => Self::OF_REQUEST,
            Target::Command(_) => Self::OF_PROGRAM,
        };
        Self { base: open + Self::OF_RUN, per_case }
    }

    fn of(self, cases: usize) -> u64 {
        (cases as u64).saturating_mul(self.per_case).saturating_add(self.base)
    }

    /// Returns how many cases may be in flight; at least one, with which a run may still succeed.
    fn cases_within(self, open_files: u64) -> NonZeroUsize {
        let cases = open_files.saturating_sub(self.base) / self.per_case;
        usize::try_from(cases).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_allowed_number_of_cases_stays_within_the_limit() {
        let usage = Usage { base: 40, per_case: 12 };
        for open_files in [64, 256, 1024] {
            let cases = usage.cases_within(open_files).get();
            assert!(usage.of(cases) <= open_files && usage.of(cases + 1) > open_files, "{open_files}: {cases}");
        }
        assert_eq!(usage.cases_within(20).get(), 1);
    }
}
