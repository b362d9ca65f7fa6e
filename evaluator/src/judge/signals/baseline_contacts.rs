//! The contacts that the baseline's agent uses, over all cases: the hosts that it links to, and the addresses that it writes to
//! in several cases, such as that of the support team.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::shapes::{ContactKind, contacts};
use super::texts::{self, AgentText};
use crate::grounding::Coverage;
use crate::load::LoadedAnswer;
use crate::values::hashed::{HashedMap, HashedSet};
use crate::values::text_hash;

/// A contact other than a host is the agent's own where the baseline uses it in this many cases. In one case, it may belong to
/// the customer of that case.
const CASES: usize = 2;

/// Most contacts noted of one case, so that memory is bounded whatever an answer contains.
const PER_CASE: usize = 256;

/// The contacts of the baseline. Threads can share it; the result does not depend on the order of the cases.
#[derive(Debug, Default)]
pub(crate) struct BaselineContacts {
    /// The number of cases that use a contact, by its hash, up to [`CASES`].
    known: Mutex<HashedMap<usize>>,
}

/// Whether a contact is usual for the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Usual,
    Unusual,
    /// The remaining cases decide.
    Undecided,
}

impl BaselineContacts {
    /// Records the contacts in an answer of the baseline.
    pub(crate) fn note(&self, baseline: &LoadedAnswer) {
        let mut here = HashedSet::default();
        let mut add = |text: AgentText<'_>| {
            for contact in contacts(text.text) {
                if here.len() < PER_CASE {
                    here.insert(hash(contact.kind, &contact.key));
                }
            }
        };
        texts::each_stated(baseline, &mut add);
        texts::each_passed(baseline, &mut add);
        if here.is_empty() {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for contact in here {
            let cases = known.entry(contact).or_default();
            *cases = (*cases + 1).min(CASES);
        }
    }

    /// Looks a contact up. `coverage` states which cases [`Self::note`] has recorded.
    pub(super) fn usage(&self, kind: ContactKind, key: &str, coverage: Coverage) -> Usage {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let cases = known.get(&hash(kind, key)).copied().unwrap_or_default();
        let needed = if kind == ContactKind::Url { 1 } else { CASES };
        match coverage {
            _ if cases >= needed => Usage::Usual,
            Coverage::Complete => Usage::Unusual,
            Coverage::Partial => Usage::Undecided,
        }
    }
}

fn hash(kind: ContactKind, key: &str) -> u64 {
    text_hash(key) ^ kind as u64
}

/// The contacts that one side states or passes to tools, as kind and key.
pub(super) fn used_by(loaded: &LoadedAnswer) -> HashSet<(ContactKind, String)> {
    let mut used = HashSet::new();
    let mut add = |text: AgentText<'_>| {
        used.extend(contacts(text.text).into_iter().map(|contact| (contact.kind, contact.key)));
    };
    texts::each_stated(loaded, &mut add);
    texts::each_passed(loaded, &mut add);
    used
}
