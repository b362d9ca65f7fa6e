//! Signals: contents of new that a person should see whatever the verdict is. Secrets, personal data, untrusted URLs, data that
//! is sent to an unknown recipient, and instructions in tool results that the agent follows.
//!
//! Each detector compares new with the baseline: what the baseline does as well is not news. Patterns find known shapes only; a
//! secret or an instruction in another form is not found. All work is linear in the size of the texts.

use case::{Case, contacts_of};
use texts::AgentText;

use crate::load::LoadedAnswer;

mod case;
mod contact_signals;
mod injection;
mod secrets;
mod shapes;
mod signal;
mod texts;

pub(crate) use case::{BaselineContacts, SignalInput};
pub use signal::{Domain, SignalSettings};
pub(crate) use signal::{RunNumber, Signal, SignalSet};

/// Finds the signals of an answer.
pub(crate) fn find(input: SignalInput<'_>) -> SignalSet {
    // A signal that depends on cases which are not loaded yet makes them undecided.
    let case = Case::new(input);
    let mut found = SignalSet::default();
    secrets::find(&case, &mut found);
    contact_signals::find_recipients(&case, &mut found);
    contact_signals::find_untrusted_urls(&case, &mut found);
    contact_signals::find_personal_data(&case, &mut found);
    injection::find(&case, &mut found);
    found.undecided = case.undecided.get();
    found
}

/// True if an answer has anything that can be a signal, against whichever baseline.
pub(crate) fn may_have_signals(answer: &LoadedAnswer) -> bool {
    secrets::has_any(answer) || has_contacts(answer) || injection::has_instructions(answer)
}

fn has_contacts(answer: &LoadedAnswer) -> bool {
    let mut has = false;
    let mut look = |text: AgentText<'_>| has = has || !contacts_of(text).is_empty();
    texts::each_stated(answer, &mut look);
    texts::each_passed(answer, &mut look);
    has
}
