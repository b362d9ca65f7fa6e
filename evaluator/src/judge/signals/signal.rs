//! A signal, the list in which equal ones are grouped, and the table `[signals]` of `counterproof.toml`.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::SidePointer;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::shapes::is_within_domain;
use crate::judge::ReasonCode;

/// Most listed signals of one kind in a case; further ones are counted.
const LISTED: usize = 5;

const POINTERS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signal {
    /// In the order of the codes, which is by urgency.
    pub code: ReasonCode,
    /// One sentence with the values. Secrets and account numbers are shortened.
    pub message: String,
    /// The places in the new artifact, at most three.
    pub pointers: Vec<SidePointer>,
    pub in_baseline: bool,
    /// Whether a secret leaves the agent, which no design excuses as chance.
    pub is_leak: bool,
}

/// The signals of one or several runs of new in a case: one entry for each kind and value.
#[derive(Debug, Default)]
pub(crate) struct SignalSet {
    entries: Vec<Signal>,
    by_value: HashMap<(ReasonCode, String), usize>,
    /// True if a contact may be usual in the baseline, which only the remaining cases can decide.
    pub(crate) undecided: bool,
}

impl SignalSet {
    /// Adds a signal, or the place of one with the same value.
    pub(super) fn add(
        &mut self,
        code: ReasonCode,
        value: &str,
        pointer: &str,
        signal: impl FnOnce() -> (String, bool),
    ) {
        let pointer = SidePointer::new(Side::New, pointer);
        let key = (code, value.to_owned());
        if let Some(&index) = self.by_value.get(&key) {
            let pointers = &mut self.entries[index].pointers;
            // One signal for each value, however often it occurs: a reader needs the value and a few places.
            if pointers.len() < POINTERS {
                pointers.push(pointer);
            }
            return;
        }
        // Built for new values only: most occurrences repeat a value, and a message costs a walk over what was received.
        let (message, in_baseline) = signal();
        self.insert(key, Signal { code, message, pointers: vec![pointer], in_baseline, is_leak: false });
    }

    /// Marks the signal with this value as a secret that leaves the agent.
    pub(super) fn mark_leak(&mut self, code: ReasonCode, value: &str) {
        if let Some(&index) = self.by_value.get(&(code, value.to_owned())) {
            self.entries[index].is_leak = true;
        }
    }

    fn insert(&mut self, key: (ReasonCode, String), signal: Signal) {
        self.by_value.insert(key, self.entries.len());
        self.entries.push(signal);
    }

    /// True if there is a signal that the baseline does not have.
    pub(crate) fn has_fresh(&self) -> bool {
        self.entries.iter().any(|signal| !signal.in_baseline)
    }

    /// Marks the signals that another run of the baseline has: `other` has the signals of the same run of new against it.
    pub(crate) fn mark_in_baseline(&mut self, other: &Self) {
        for (key, &index) in &self.by_value {
            // A value that is not a signal against that run is as usual there as one that it has too.
            let is_fresh = other.by_value.get(key).is_some_and(|&at| !other.entries[at].in_baseline);
            self.entries[index].in_baseline |= !is_fresh;
        }
        self.undecided |= other.undecided;
    }

    /// Adds the signals that only another run of new has, without their pointers, which lead into the artifact of that
    /// run.
    pub(crate) fn include(&mut self, of_run: Self, run: RunNumber) {
        self.undecided |= of_run.undecided;
        let mut keys: Vec<_> = of_run.by_value.into_iter().collect();
        // The order of the artifact, not of the map.
        keys.sort_unstable_by_key(|(_, index)| *index);
        for (key, index) in keys {
            let signal = &of_run.entries[index];
            let message = format!("{}, in {run}", signal.message);
            let signal = Signal { message, pointers: Vec::new(), ..signal.clone() };
            match self.by_value.get(&key) {
                None => self.insert(key, signal),
                Some(&known) if self.entries[known].in_baseline && !signal.in_baseline => self.entries[known] = signal,
                Some(&known) => self.entries[known].is_leak |= signal.is_leak && !signal.in_baseline,
            }
        }
    }

    /// The signals by kind, those that only new has first. Within a kind, the last listed one counts the others.
    pub(crate) fn listed(mut self) -> Vec<Signal> {
        // The sort is stable, so that the order of the artifact remains.
        self.entries.sort_by_key(|signal| (signal.code, signal.in_baseline, !signal.is_leak));
        let mut listed: Vec<Signal> = Vec::new();
        for of_kind in self.entries.chunk_by(|a, b| a.code == b.code) {
            let (shown, more) = of_kind.split_at(of_kind.len().min(LISTED));
            listed.extend_from_slice(shown);
            if let Some(last) = listed.last_mut().filter(|_| !more.is_empty()) {
                let _ = write!(last.message, "; and {} more like this", more.len());
            }
        }
        listed
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunNumber {
    /// Counted from 0.
    pub(crate) index: usize,
    pub(crate) runs: usize,
}

impl fmt::Display for RunNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} of {}", self.index + 1, self.runs)
    }
}

/// The settings of the signals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SignalSettings {
    /// The domains that the agent may link to and send data to. Without a list, hosts are compared with the baseline's.
    pub trusted_domains: Option<Vec<Domain>>,
}

/// A domain, which contains all hosts below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain(String);

impl SignalSettings {
    /// True if a host is in the list of trusted domains.
    pub(super) fn trusts(&self, host: &str) -> bool {
        self.trusted_domains.iter().flatten().any(|domain| is_within_domain(host, &domain.0))
    }
}

impl<'de> Deserialize<'de> for Domain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let domain = text.strip_prefix("*.").unwrap_or(&text).trim_end_matches('.').to_lowercase();
        let is_host = |c: char| c.is_alphanumeric() || "-_.[]:".contains(c);
        // A scheme, a port or a path would never match, which would distrust the domain without a message.
        let is_address = domain.starts_with('[') || !domain.contains([':', '[', ']']);
        if domain.is_empty() || domain.starts_with('.') || !domain.chars().all(is_host) || !is_address {
            return Err(D::Error::custom("expected a domain such as \"example.com\", without scheme, port or path"));
        }
        Ok(Self(domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_signal_and_many_values_are_counted() {
        let mut set = SignalSet::default();
        for value in 0..8 {
            for place in 0..5 {
                let pointer = format!("/{value}/{place}");
                set.add(ReasonCode::SignalSecret, &value.to_string(), &pointer, || {
                    (format!("value {value}"), value == 0)
                });
            }
        }
        let listed = set.listed();
        let messages: Vec<_> = listed.iter().map(|signal| signal.message.as_str()).collect();
        assert_eq!(messages, ["value 1", "value 2", "value 3", "value 4", "value 5; and 3 more like this"]);
        assert_eq!(listed[0].pointers.len(), POINTERS);
    }

    fn set(values: &[(&str, bool)]) -> SignalSet {
        let mut set = SignalSet::default();
        for (value, in_baseline) in values {
            set.add(ReasonCode::SignalSecret, value, "/final_output", || ((*value).to_owned(), *in_baseline));
        }
        set
    }

    fn summary(set: SignalSet) -> Vec<(String, usize, bool)> {
        set.listed().into_iter().map(|signal| (signal.message, signal.pointers.len(), signal.in_baseline)).collect()
    }

    #[test]
    fn a_signal_that_any_run_of_the_baseline_has_is_not_fresh() {
        let mut found = set(&[("of new only", false), ("of the other run too", false), ("no signal there", false)]);
        found.mark_in_baseline(&set(&[("of new only", false), ("of the other run too", true)]));
        assert!(found.has_fresh());
        let fresh: Vec<_> = summary(found).into_iter().filter(|(_, _, in_baseline)| !in_baseline).collect();
        assert_eq!(fresh, [("of new only".to_owned(), 1, false)]);
    }

    #[test]
    fn signals_of_another_run_name_it_and_have_no_pointers() {
        let mut found = set(&[("shown", false), ("known", true)]);
        found.include(set(&[("known", false), ("shown", false), ("other", false)]), RunNumber { index: 2, runs: 5 });
        assert_eq!(
            summary(found),
            [
                ("shown".to_owned(), 1, false),
                ("known, in run 3 of 5".to_owned(), 0, false),
                ("other, in run 3 of 5".to_owned(), 0, false)
            ]
        );
    }

    fn read(domain: &str) -> Result<SignalSettings, String> {
        toml::from_str(&format!("trusted_domains = [\"{domain}\"]")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_trusted_domain_contains_its_hosts() {
        for domain in ["Shop.example", "*.shop.example", "shop.example."] {
            let settings = read(domain).unwrap();
            assert!(settings.trusts("www.shop.example") && !settings.trusts("shop.example.evil.org"), "{domain}");
        }
    }

    #[test]
    fn an_entry_that_would_never_match_is_refused() {
        for domain in ["", "*.", "https://shop.example", "shop.example/x", "shop.example:80", "a b"] {
            let error = read(domain).unwrap_err();
            assert!(error.contains("expected a domain such as"), "{domain}: {error}");
        }
    }
}
