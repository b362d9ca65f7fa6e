//! Untrusted URLs in what the agent states or passes to tools.

use counterproof_artifact::Side;

use super::case::Case;
use super::shapes::ContactKind;
use super::signal::{SignalKind, SignalSet};
use crate::values::text;

/// Finds URLs of hosts that are not trusted. With a list of trusted domains, that list decides. Without one, a host is trusted
/// if the baseline's agent uses it in any case, or if the user names it.
pub(super) fn find(case: &Case<'_>, signals: &mut SignalSet) {
    let has_list = case.input.settings.trusted_domains.is_some();
    for used in case.contacts(Side::New).iter().filter(|used| used.contact.kind == ContactKind::Url) {
        let contact = &used.contact;
        let in_baseline = case.baseline_uses(contact);
        let is_trusted = if has_list {
            case.input.settings.trusts(&contact.key)
        } else {
            in_baseline || case.received(Side::New).is_from_user(contact) || case.is_usual(contact)
        };
        if is_trusted {
            continue;
        }
        signals.add(SignalKind::UntrustedUrl, &contact.key, &used.pointer, || {
            let (place, host) = (used.place.name(&used.field), text::one_line(&contact.key, 80));
            let why = if has_list { "is not in trusted_domains" } else { "the baseline links to in no case" };
            (format!("{place} has a URL of {host}, which {why}"), in_baseline)
        });
    }
}
