//! When to give an agent up: so many cases in a row that ended as if nobody were there. What becomes of the cases that are
//! left is decided elsewhere.

use std::num::NonZeroU32;

use counterproof_artifact::FailureClass;

use tokio::sync::watch;

use crate::event::FailureNote;

/// The word that an agent was given up, for all who wait to ask it. Said once, it stands.
#[derive(Debug, Default)]
pub(crate) struct GivenUp(watch::Sender<Option<NonZeroU32>>);

impl GivenUp {
    /// Says that so many cases in a row were enough.
    pub(crate) fn say(&self, in_a_row: NonZeroU32) {
        self.0.send_replace(Some(in_a_row));
    }

    /// True once it was said.
    pub(crate) fn was_said(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until it is said; gives how many cases in a row were enough.
    pub(crate) async fn wait(&self) -> NonZeroU32 {
        let mut said = self.0.subscribe();
        // The sender lives as long as `self`, so this cannot end early.
        let said = said.wait_for(Option::is_some).await;
        said.ok().and_then(|in_a_row| *in_a_row).unwrap_or(NonZeroU32::MIN)
    }
}

/// Counts cases in the order in which they end. Once open it stays open.
#[derive(Debug, Clone)]
pub(crate) struct Circuit {
    limit: Option<NonZeroU32>,
    in_a_row: u32,
}

impl Circuit {
    /// Opens after `limit` such cases in a row; never without a limit.
    pub(crate) const fn new(limit: Option<NonZeroU32>) -> Self {
        Self { limit, in_a_row: 0 }
    }

    /// Counts a case that ended with this failure, or with an answer.
    pub(crate) fn count(&mut self, failure: Option<&FailureNote>) {
        if self.open().is_some() {
            return;
        }
        self.in_a_row = if failure.is_some_and(says_down) { self.in_a_row.saturating_add(1) } else { 0 };
    }

    /// How many cases in a row opened the circuit, where it is open.
    pub(crate) fn open(&self) -> Option<NonZeroU32> {
        self.limit.filter(|limit| self.in_a_row >= limit.get())
    }
}

/// True for failures that say the agent is not there at all: no connection, no response, or a gateway that finds nobody
/// behind it. An agent that refuses, limits or answers nonsense is there.
fn says_down(failure: &FailureNote) -> bool {
    match failure.class {
        FailureClass::NetworkError | FailureClass::Timeout => true,
        FailureClass::HttpError => matches!(failure.status, Some(502..=504)),
        FailureClass::InvalidJson | FailureClass::SchemaMismatch | FailureClass::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: FailureClass, status: Option<u16>) -> FailureNote {
        FailureNote { class, name: "any", status }
    }

    fn opens_after(limit: u32, ends: &[Option<FailureNote>]) -> Option<usize> {
        let mut circuit = Circuit::new(NonZeroU32::new(limit));
        ends.iter().position(|end| {
            circuit.count(end.as_ref());
            circuit.open().is_some()
        })
    }

    #[test]
    fn it_opens_after_so_many_in_a_row() {
        let down = Some(failure(FailureClass::NetworkError, None));
        assert_eq!(opens_after(3, &[down; 5]), Some(2));
        assert_eq!(opens_after(3, &[down, down, None, down, down, down]), Some(5));
        assert_eq!(opens_after(1, &[None, down]), Some(1));
        assert_eq!(opens_after(0, &[down; 100]), None, "no limit");
    }

    #[test]
    fn only_silence_counts() {
        for status in [502, 503, 504] {
            assert_eq!(opens_after(1, &[Some(failure(FailureClass::HttpError, Some(status)))]), Some(0), "{status}");
        }
        assert_eq!(opens_after(1, &[Some(failure(FailureClass::Timeout, Some(200)))]), Some(0));
        for status in [401, 404, 408, 429, 500] {
            assert_eq!(opens_after(1, &[Some(failure(FailureClass::HttpError, Some(status)))]), None, "{status}");
        }
        for class in [FailureClass::InvalidJson, FailureClass::SchemaMismatch, FailureClass::Other] {
            assert_eq!(opens_after(1, &[Some(failure(class, Some(200)))]), None, "{class}");
        }
    }

    #[test]
    fn once_open_it_stays_open() {
        let mut circuit = Circuit::new(NonZeroU32::new(1));
        circuit.count(Some(&failure(FailureClass::Timeout, None)));
        circuit.count(None);
        assert!(circuit.open().is_some());
    }
}
