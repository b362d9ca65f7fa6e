//! The settings of the command's process, passed from safe-run through the supervisor to the launcher.

use std::ffi::OsStr;

use nix::sys::signal::{SigSet, Signal};

/// Process group and session of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// A new process group in the session of safe-run.
    NewGroup,
    /// A new session; standard input becomes its controlling terminal.
    NewSession,
}

/// The settings that the launcher makes before it becomes the command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessSetup {
    pub(crate) placement: Placement,
    /// Signals that safe-run has blocked and the launcher unblocks.
    pub(crate) blocked: SigSet,
}

impl ProcessSetup {
    /// Encodes the settings as one argument.
    pub(super) fn to_argument(self) -> String {
        let signals: Vec<_> = self.blocked.iter().map(|signal| (signal as i32).to_string()).collect();
        let placement = match self.placement {
            Placement::NewGroup => "group",
            Placement::NewSession => "terminal",
        };
        format!("{placement}:{}", signals.join(","))
    }

    /// Decodes what [`Self::to_argument`] has encoded.
    pub(super) fn from_argument(argument: Option<&OsStr>) -> Self {
        let (placement, signals) = argument.and_then(|argument| argument.to_str()?.split_once(':')).unwrap_or_default();
        let signals = signals.split(',').filter_map(|number| Signal::try_from(number.parse::<i32>().ok()?).ok());
        let placement = if placement == "terminal" { Placement::NewSession } else { Placement::NewGroup };
        Self { placement, blocked: signals.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_is_decoded_as_it_was_encoded() {
        for placement in [Placement::NewGroup, Placement::NewSession] {
            for blocked in [SigSet::empty(), [Signal::SIGINT, Signal::SIGTTOU].into_iter().collect()] {
                let decoded =
                    ProcessSetup::from_argument(Some(OsStr::new(&ProcessSetup { placement, blocked }.to_argument())));
                assert_eq!((decoded.placement, decoded.blocked), (placement, blocked));
            }
        }
    }
}
