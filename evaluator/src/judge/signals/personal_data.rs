//! Personal data that new's agent states to its user and the baseline's agent does not.

use std::collections::HashSet;

use counterproof_artifact::Side;

use super::case::{AgentContact, Case};
use super::shapes::{Contact, ContactKind};
use super::signal::{SignalKind, SignalSet};
use super::texts;

/// Finds personal data in the texts of new's agent. It is no signal if the user gave it, if the agent of either side passed it to
/// a tool, since it then belongs to the customer that the case is about, or if the baseline uses it too.
pub(super) fn find(case: &Case<'_>, signals: &mut SignalSet) {
    let is_personal = |used: &&AgentContact| used.place.is_stated() && used.contact.kind != ContactKind::Url;
    let contacts = case.contacts(Side::New);
    let mut stated = contacts.iter().filter(is_personal).peekable();
    if stated.peek().is_none() {
        return;
    }
    let passed: HashSet<_> =
        contacts.iter().filter(|used| !used.place.is_stated()).map(|used| used.contact.key.as_str()).collect();
    for used in stated {
        let contact = &used.contact;
        let is_of_customer = passed.contains(contact.key.as_str())
            || case.baseline_uses(contact)
            || case.received(Side::New).is_from_user(contact);
        if is_of_customer || case.is_usual(contact) {
            continue;
        }
        signals.add(SignalKind::PersonalData, &contact.key, &used.pointer, || {
            let source = match case.received(Side::New).position(contact).filter(|position| *position <= used.after) {
                Some(position) => format!("from {}", texts::sender_name(case.input.new, position)),
                None => "not in anything that the agent received before".to_owned(),
            };
            let (place, what) = (used.place.name(&used.field), contact.kind.name());
            (format!("{place} contains {what} that baseline does not state: {}, {source}", shortened(contact)), false)
        });
    }
}

/// The value, shortened so that a message does not spread it further.
fn shortened(contact: &Contact) -> String {
    let last = |count: usize| contact.key.get(contact.key.len().saturating_sub(count)..).unwrap_or_default();
    match contact.kind {
        ContactKind::Email => {
            let (local, domain) = contact.key.split_once('@').unwrap_or_default();
            let first = local.chars().next().unwrap_or('…');
            crate::values::text::one_line(&format!("{first}…@{domain}"), 80)
        }
        ContactKind::Phone | ContactKind::Iban | ContactKind::Card => format!("…{}", last(4)),
        ContactKind::Url => contact.key.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_only_a_part_of_the_value() {
        let shown = |kind, key: &str| shortened(&Contact { kind, key: key.to_owned(), range: 0..0 });
        assert_eq!(shown(ContactKind::Email, "jane.doe@shop.example"), "j…@shop.example");
        assert_eq!(shown(ContactKind::Card, "4111111111111111"), "…1111");
    }
}
