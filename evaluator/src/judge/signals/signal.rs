//! A signal, and the list in which equal ones are grouped.

use std::collections::HashMap;
use std::fmt::Write as _;

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::SidePointer;

/// Most listed signals of one kind in a case; further ones are counted.
const LISTED: usize = 5;

/// Most pointers of one signal.
const POINTERS: usize = 3;

/// The kind of a signal, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SignalKind {
    /// The agent uses a tool or a value that only instructions in a tool result name.
    InjectionFollowed,
    /// The agent states or passes on a secret of a known shape.
    Secret,
    /// Data is sent to a recipient that nothing the agent received names.
    UnknownRecipient,
    /// The agent states personal data that the baseline's agent does not state.
    PersonalData,
    /// The agent uses a URL of a host that is not trusted.
    UntrustedUrl,
    /// A tool result contains instructions for the agent.
    Injection,
}

/// A signal about the new side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signal {
    pub kind: SignalKind,
    /// One sentence with the values. Secrets and account numbers are shortened.
    pub message: String,
    /// The places in the new artifact, at most three.
    pub pointers: Vec<SidePointer>,
    /// True if the baseline has the same signal.
    pub in_baseline: bool,
}

/// The signals of a case.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    /// The most urgent kind first.
    pub list: Vec<Signal>,
    /// True if a contact may be usual in the baseline, which only the remaining cases can decide.
    pub undecided: bool,
}

/// Signals while they are collected: one entry for each kind and value.
#[derive(Debug, Default)]
pub(super) struct Collector {
    entries: Vec<Signal>,
    by_value: HashMap<(SignalKind, String), usize>,
}

impl Collector {
    /// Adds a signal, or the place of one with the same value.
    pub(super) fn add(
        &mut self,
        kind: SignalKind,
        value: &str,
        pointer: &str,
        signal: impl FnOnce() -> (String, bool),
    ) {
        let pointer = SidePointer { side: Side::New, pointer: pointer.to_owned() };
        if let Some(&index) = self.by_value.get(&(kind, value.to_owned())) {
            let pointers = &mut self.entries[index].pointers;
            if pointers.len() < POINTERS {
                pointers.push(pointer);
            }
            return;
        }
        let (message, in_baseline) = signal();
        self.by_value.insert((kind, value.to_owned()), self.entries.len());
        self.entries.push(Signal { kind, message, pointers: vec![pointer], in_baseline });
    }

    /// The signals by kind, those that only new has first. Within a kind, the last listed one counts the others.
    pub(super) fn finish(mut self) -> Vec<Signal> {
        // The sort is stable, so that the order of the artifact remains.
        self.entries.sort_by_key(|signal| (signal.kind, signal.in_baseline));
        let mut listed: Vec<Signal> = Vec::new();
        for of_kind in self.entries.chunk_by(|a, b| a.kind == b.kind) {
            let (shown, more) = of_kind.split_at(of_kind.len().min(LISTED));
            listed.extend_from_slice(shown);
            if let Some(last) = listed.last_mut().filter(|_| !more.is_empty()) {
                let _ = write!(last.message, "; and {} more like this", more.len());
            }
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_signal_and_many_values_are_counted() {
        let mut collector = Collector::default();
        for value in 0..8 {
            for place in 0..5 {
                let pointer = format!("/{value}/{place}");
                collector
                    .add(SignalKind::Secret, &value.to_string(), &pointer, || (format!("value {value}"), value == 0));
            }
        }
        let listed = collector.finish();
        let messages: Vec<_> = listed.iter().map(|signal| signal.message.as_str()).collect();
        assert_eq!(messages, ["value 1", "value 2", "value 3", "value 4", "value 5; and 3 more like this"]);
        assert_eq!(listed[0].pointers.len(), POINTERS);
    }
}
