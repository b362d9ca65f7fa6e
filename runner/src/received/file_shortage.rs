//! A lack of file descriptors, in this process or in the whole system. It says nothing about the agent.

use std::error::Error;
use std::io;

/// The error number of EMFILE on all Unix systems: this process has too many open files.
const PROCESS_LIMIT: i32 = 24;

/// The error number of ENFILE on all Unix systems: the system has too many open files.
const SYSTEM_LIMIT: i32 = 23;

/// Returns true if a lack of file descriptors caused the error.
pub(crate) fn is_file_shortage(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source())
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_in_io_error))
}

/// An I/O error may wrap another one, which `source` skips.
fn is_in_io_error(error: &io::Error) -> bool {
    let is_inner = || error.get_ref().and_then(|inner| inner.downcast_ref()).is_some_and(is_in_io_error);
    cfg!(unix) && (matches!(error.raw_os_error(), Some(PROCESS_LIMIT | SYSTEM_LIMIT)) || is_inner())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_found_below_other_errors() {
        for number in [PROCESS_LIMIT, SYSTEM_LIMIT] {
            let error = io::Error::from_raw_os_error(number);
            assert!(is_file_shortage(&io::Error::other(io::Error::other(error))));
        }
        assert!(!is_file_shortage(&io::Error::from(io::ErrorKind::ConnectionRefused)));
    }
}
