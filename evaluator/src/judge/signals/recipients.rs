//! Recipients: an e-mail address, a phone number, an IBAN or a URL that the agent passes to a tool with effects outside, although
//! nothing that it received before names it.

use std::collections::HashSet;

use counterproof_artifact::{RiskLevel, Side};

use super::case::{AgentContact, Case, OwnedPlace};
use super::shapes::ContactKind;
use super::signal::{SignalKind, SignalSet};
use super::texts::Use;
use crate::values::text;

/// Words in the names of tools that send data to someone.
const SENDING: [&str; 26] = [
    "send", "email", "mail", "sms", "message", "notify", "post", "publish", "share", "forward", "transfer", "wire",
    "pay", "payout", "webhook", "upload", "invite", "reply", "call", "dial", "text", "export", "submit", "remit",
    "fax", "push",
];

/// Words that make a tool a reading one, whatever it is about: `get_message`, `search_mail`.
const READING: [&str; 12] =
    ["get", "list", "find", "search", "read", "lookup", "look", "fetch", "check", "validate", "verify", "query"];

/// True for tools with effects outside: of high risk, or for sending.
pub(super) fn is_sensitive(tool_use: Use<'_>) -> bool {
    if tool_use.risk == RiskLevel::High {
        return true;
    }
    let words = words(tool_use.tool);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    has(&SENDING) && !has(&READING)
}

/// The words of a name in snake case, kebab case or camel case, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars().take(200) {
        if !c.is_alphanumeric() || was_small && c.is_uppercase() {
            words.push(String::new());
        }
        was_small = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Finds recipients of new that nothing it received names. The baseline has the same signal where it uses the same contact, or where its own
/// contact in the same argument has no source either: then the source is missing in the transcripts.
pub(super) fn find(case: &Case<'_>, signals: &mut SignalSet) {
    let unknown: Vec<_> = case.contacts(Side::New).iter().filter(|used| is_unknown(case, Side::New, used)).collect();
    if unknown.is_empty() {
        return;
    }
    let baseline = case.contacts(Side::Baseline).iter().filter(|used| is_unknown(case, Side::Baseline, used));
    let places: HashSet<_> = baseline.map(|used| (used.contact.kind, &used.place, &used.field)).collect();
    for used in unknown {
        let in_baseline =
            case.baseline_uses(&used.contact) || places.contains(&(used.contact.kind, &used.place, &used.field));
        if !in_baseline && case.is_usual(&used.contact) {
            continue;
        }
        signals.add(SignalKind::UnknownRecipient, &used.contact.key, &used.pointer, || {
            let (place, value) = (used.place.name(&used.field), text::one_line(&used.contact.key, 80));
            let message = format!("{place} {value} does not appear in anything that the agent received before");
            (message, in_baseline)
        });
    }
}

/// True for a contact in a sensitive call that the side did not receive before.
fn is_unknown(case: &Case<'_>, side: Side, used: &AgentContact) -> bool {
    let OwnedPlace::Tool { is_sensitive: true, .. } = used.place else { return false };
    let contact = &used.contact;
    let domain = match contact.kind {
        ContactKind::Email => contact.key.rsplit_once('@').map(|(_, domain)| domain),
        ContactKind::Url => Some(contact.key.as_str()),
        ContactKind::Phone | ContactKind::Iban => None,
        // A card number is an account of the payer, not a recipient.
        ContactKind::Card => return false,
    };
    !domain.is_some_and(|domain| case.input.settings.trusts(domain)) && !case.was_received(side, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_with_effects_outside_are_sensitive() {
        let is = |tool, risk| is_sensitive(Use { tool, risk });
        for tool in ["send_email", "sendSms", "crm.post-message", "wire_transfer"] {
            assert!(is(tool, RiskLevel::Unknown), "{tool}");
        }
        for tool in ["get_message", "searchMail", "lookup_order", "context"] {
            assert!(!is(tool, RiskLevel::Low), "{tool}");
        }
        assert!(is("issue_refund", RiskLevel::High));
    }
}
