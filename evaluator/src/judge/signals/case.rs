//! What the detectors know of a case, and the contacts that the baseline uses over all cases, such as the address of its support
//! team. Texts are read when a detector first needs them, since most cases have no candidates.

use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use counterproof_artifact::{Side, Sides};
use serde::{Deserialize, Serialize};

use super::shapes::{self, Contact, ContactKind, contacts};
use super::signal::SignalSettings;
use super::texts::{self, AgentText, Place, Sender, Use};
use crate::grounding::Coverage;
use crate::load::LoadedAnswer;
use crate::load::case_input::CaseInput;
use crate::values;
use crate::values::meaning::{HashedMap, HashedSet};

/// A contact other than a host is the agent's own if the baseline uses it in this many cases. In one case, it may belong to
/// the customer of that case.
const CASES: usize = 2;

/// Most contacts noted of one case, so that memory is bounded whatever an answer contains.
const PER_CASE: usize = 256;

/// The contacts of the baseline. Threads can share it; the result does not depend on the order of the cases.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BaselineContacts {
    /// The number of cases that use a contact, by its hash, up to [`CASES`].
    known: Mutex<HashedMap<usize>>,
}

/// Whether a contact is usual for the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    Usual,
    Unusual,
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
            // Counted up to the needed number only, so that the order of the cases cannot matter.
            *cases = (*cases + 1).min(CASES);
        }
    }

    /// Adds what another shard of the comparison noted.
    pub(crate) fn merge(&self, other: Self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (contact, more) in other.known.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let cases = known.entry(contact).or_default();
            *cases = (*cases + more).min(CASES);
        }
    }

    /// Looks a contact up. `coverage` states which cases [`Self::note`] has recorded.
    fn usage(&self, kind: ContactKind, key: &str, coverage: Coverage) -> Usage {
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
    values::text_hash(key) ^ kind as u64
}

/// The contacts that one side states or passes to tools, as kind and key.
fn used_by(loaded: &LoadedAnswer) -> HashSet<(ContactKind, String)> {
    let mut used = HashSet::new();
    let mut add = |text: AgentText<'_>| {
        used.extend(contacts(text.text).into_iter().map(|contact| (contact.kind, contact.key)));
    };
    texts::each_stated(loaded, &mut add);
    texts::each_passed(loaded, &mut add);
    used
}

/// Most contacts of one side that are looked at, so that memory is bounded whatever an answer contains.
const CONTACTS: usize = 10_000;

/// One answer of new to a case, and what its signals are judged by.
#[derive(Clone, Copy)]
pub(crate) struct SignalInput<'a> {
    pub(crate) new: &'a LoadedAnswer,
    /// `None` if the baseline has no answer: it then has none of the signals.
    pub(crate) baseline: Option<&'a LoadedAnswer>,
    pub(crate) inputs: Sides<&'a CaseInput<'a>>,
    pub(crate) settings: &'a SignalSettings,
    /// The contacts that the baseline uses over all cases, as far as `coverage` states.
    pub(crate) baseline_contacts: &'a BaselineContacts,
    pub(crate) coverage: Coverage,
}

pub(super) fn contacts_of(text: AgentText<'_>) -> Vec<Contact> {
    let mut found = contacts(text.text);
    if found.is_empty() && matches!(text.place, Place::Tool(_)) {
        found.extend(shapes::whole_value(text.field(), text.text));
    }
    found
}

/// A contact in a text of new's agent.
#[derive(Debug, Clone)]
pub(super) struct AgentContact {
    pub contact: Contact,
    pub place: OwnedPlace,
    /// As in [`AgentText`].
    pub after: usize,
    pub field: String,
    pub pointer: String,
}

/// Like [`Place`], without a borrow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum OwnedPlace {
    Output,
    Message,
    Tool { tool: String, is_sensitive: bool },
    Query,
}

impl From<Place<'_>> for OwnedPlace {
    fn from(place: Place<'_>) -> Self {
        match place {
            Place::Output => OwnedPlace::Output,
            Place::Message => OwnedPlace::Message,
            Place::Query => OwnedPlace::Query,
            Place::Tool(tool_use @ Use { tool, .. }) => {
                OwnedPlace::Tool { tool: tool.to_owned(), is_sensitive: texts::is_sensitive(tool_use) }
            }
        }
    }
}

impl OwnedPlace {
    /// The place in a message: `the output`, `send_email: to`.
    pub(super) fn name(&self, field: &str) -> String {
        match self {
            OwnedPlace::Output => "the output".to_owned(),
            OwnedPlace::Message => "a message of the agent".to_owned(),
            OwnedPlace::Query => "a query".to_owned(),
            OwnedPlace::Tool { tool, .. } => {
                let short = |name: &str| crate::values::text::one_line(name, 60);
                format!("{}: {}", short(tool), short(field))
            }
        }
    }

    pub(super) const fn is_stated(&self) -> bool {
        matches!(self, OwnedPlace::Output | OwnedPlace::Message)
    }
}

/// What one side received: the first position of each contact, and of each number that may be one.
#[derive(Debug, Default)]
pub(super) struct Received {
    first: HashMap<String, usize>,
    /// Contacts in the input and in messages of the user.
    from_user: HashSet<String>,
}

impl Received {
    /// The first position of a contact, as in `texts::ReceivedText`.
    pub(super) fn position(&self, contact: &Contact) -> Option<usize> {
        self.first.get(&contact.key).copied()
    }

    pub(super) fn is_from_user(&self, contact: &Contact) -> bool {
        self.from_user.contains(&contact.key)
    }
}

/// A case while its signals are looked for.
pub(super) struct Case<'a> {
    pub(super) input: SignalInput<'a>,
    pub(super) undecided: Cell<bool>,
    contacts: Sides<OnceCell<Vec<AgentContact>>>,
    used_by_baseline: OnceCell<HashSet<(ContactKind, String)>>,
    received: Sides<OnceCell<Received>>,
}

impl<'a> Case<'a> {
    pub(super) fn new(input: SignalInput<'a>) -> Self {
        Self {
            input,
            undecided: Cell::new(false),
            contacts: Sides::from_fn(|_| OnceCell::new()),
            used_by_baseline: OnceCell::new(),
            received: Sides::from_fn(|_| OnceCell::new()),
        }
    }

    /// The answer of a side, if it has one.
    pub(super) const fn answer(&self, side: Side) -> Option<&'a LoadedAnswer> {
        match side {
            Side::Baseline => self.input.baseline,
            Side::New => Some(self.input.new),
        }
    }

    /// The contacts in the texts of a side's agent: stated ones first, then those passed to tools.
    pub(super) fn contacts(&self, side: Side) -> &[AgentContact] {
        self.contacts.get(side).get_or_init(|| {
            let mut found = Vec::new();
            let mut add = |text: AgentText<'_>| {
                let room = CONTACTS - found.len();
                found.extend(contacts_of(text).into_iter().take(room).map(|contact| AgentContact {
                    contact,
                    place: text.place.into(),
                    after: text.after,
                    field: text.field().to_owned(),
                    pointer: text.pointer.to_owned(),
                }));
            };
            if let Some(answer) = self.answer(side) {
                texts::each_stated(answer, &mut add);
                texts::each_passed(answer, &mut add);
            }
            found
        })
    }

    /// True if the baseline's agent uses a contact in this case.
    pub(super) fn baseline_uses(&self, contact: &Contact) -> bool {
        let used = self.used_by_baseline.get_or_init(|| self.input.baseline.map(used_by).unwrap_or_default());
        used.contains(&(contact.kind, contact.key.clone()))
    }

    /// True if the baseline's agent uses a contact in other cases as its own.
    pub(super) fn is_usual(&self, contact: &Contact) -> bool {
        // Undecided contacts count as unusual; the case is then compared again.
        match self.input.baseline_contacts.usage(contact.kind, &contact.key, self.input.coverage) {
            Usage::Usual => true,
            Usage::Unusual => false,
            Usage::Undecided => {
                self.undecided.set(true);
                false
            }
        }
    }

    pub(super) fn received(&self, side: Side) -> &Received {
        self.received.get(side).get_or_init(|| {
            // Only contacts that the agent uses are looked for, so that memory does not grow with what it received.
            let wanted: HashSet<_> = self.contacts(side).iter().map(|used| used.contact.key.as_str()).collect();
            let mut received = Received::default();
            let mut add = |text: texts::ReceivedText<'_>| {
                let mut note = |key: &str| {
                    if !wanted.contains(key) {
                        return;
                    }
                    if text.sender == Sender::User {
                        received.from_user.insert(key.to_owned());
                    }
                    let first = received.first.entry(key.to_owned()).or_insert(text.position);
                    *first = text.position.min(*first);
                };
                for contact in &contacts(text.text) {
                    note(&contact.key);
                }
                shapes::digit_keys(text.text, &mut note);
                shapes::iban_like_keys(text.text).for_each(|key| note(&key));
            };
            texts::each_input(self.input.inputs.get(side), &mut add);
            if let Some(answer) = self.answer(side) {
                texts::each_received(answer, &mut add);
            }
            received
        })
    }

    /// True if a side received a contact before it used it.
    pub(super) fn was_received(&self, side: Side, used: &AgentContact) -> bool {
        // A host also counts as received if a text names it without a scheme.
        let is_earlier = |position: usize| position <= used.after;
        if self.received(side).position(&used.contact).is_some_and(is_earlier) {
            return true;
        }
        let Some(answer) = self.answer(side) else { return false };
        let mut is_named = false;
        if used.contact.kind == ContactKind::Url {
            let mut look = |text: texts::ReceivedText<'_>| {
                is_named |= is_earlier(text.position) && text.text.to_lowercase().contains(&used.contact.key);
            };
            texts::each_input(self.input.inputs.get(side), &mut look);
            texts::each_received(answer, &mut look);
        }
        // A payload that was too large to read may name it.
        let unread = answer.payloads.first_unread();
        is_named || unread.is_some_and(|index| is_earlier(index + 1))
    }
}
