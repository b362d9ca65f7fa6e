//! What the name of a tool says of it. Contracts have no types of tools, and producers rarely state the risk of a call, so the words of
//! names decide. The words are English.

/// Words in the names of tools that send data to someone.
const SENDING: [&str; 26] = [
    "send", "email", "mail", "sms", "message", "notify", "post", "publish", "share", "forward", "transfer", "wire",
    "pay", "payout", "webhook", "upload", "invite", "reply", "call", "dial", "text", "export", "submit", "remit",
    "fax", "push",
];

/// Words that make a tool a reading one, whatever it is about: `get_message`, `search_mail`.
const READING: [&str; 12] =
    ["get", "list", "find", "search", "read", "lookup", "look", "fetch", "check", "validate", "verify", "query"];

/// Words for giving a case away.
const HANDING_OVER: [&str; 9] =
    ["transfer", "hand", "handover", "handoff", "escalate", "escalation", "forward", "connect", "route"];

/// Words for the person who takes a case over.
const PERSONS: [&str; 16] = [
    "human",
    "humans",
    "person",
    "people",
    "agent",
    "agents",
    "representative",
    "representatives",
    "rep",
    "support",
    "operator",
    "specialist",
    "supervisor",
    "manager",
    "staff",
    "colleague",
];

/// The verbs that names of writing tools start with, and their past.
pub(crate) const VERBS: [(&str, &str); 62] = [
    ("accept", "accepted"),
    ("activate", "activated"),
    ("add", "added"),
    ("approve", "approved"),
    ("archive", "archived"),
    ("assign", "assigned"),
    ("block", "blocked"),
    ("book", "booked"),
    ("cancel", "cancelled"),
    ("change", "changed"),
    ("charge", "charged"),
    ("close", "closed"),
    ("confirm", "confirmed"),
    ("create", "created"),
    ("deactivate", "deactivated"),
    ("delete", "deleted"),
    ("deploy", "deployed"),
    ("disable", "disabled"),
    ("drop", "dropped"),
    ("edit", "edited"),
    ("email", "emailed"),
    ("enable", "enabled"),
    ("escalate", "escalated"),
    ("exchange", "exchanged"),
    ("execute", "executed"),
    ("grant", "granted"),
    ("issue", "issued"),
    ("lock", "locked"),
    ("merge", "merged"),
    ("modify", "modified"),
    ("move", "moved"),
    ("notify", "notified"),
    ("open", "opened"),
    ("order", "ordered"),
    ("pay", "paid"),
    ("place", "placed"),
    ("post", "posted"),
    ("publish", "published"),
    ("push", "pushed"),
    ("refuel", "refuelled"),
    ("refund", "refunded"),
    ("reject", "rejected"),
    ("remove", "removed"),
    ("reset", "reset"),
    ("restart", "restarted"),
    ("resume", "resumed"),
    ("return", "returned"),
    ("revoke", "revoked"),
    ("run", "ran"),
    ("schedule", "scheduled"),
    ("send", "sent"),
    ("set", "set"),
    ("ship", "shipped"),
    ("submit", "submitted"),
    ("suspend", "suspended"),
    ("terminate", "terminated"),
    ("transfer", "transferred"),
    ("unblock", "unblocked"),
    ("unlock", "unlocked"),
    ("update", "updated"),
    ("upload", "uploaded"),
    ("write", "wrote"),
];

/// The name of a tool without the server before it: `refund_order` of `shop.refund_order`.
pub(crate) fn without_server(tool: &str) -> &str {
    tool.rsplit(['.', '/', ':']).next().unwrap_or(tool)
}

/// Last words of names that start with such a verb and only read: `order_status`, `return_policy`.
const READ_NOUNS: [&str; 8] = ["status", "history", "policy", "details", "info", "list", "summary", "report"];

/// True for a tool that changes something, by the verb that its name starts with; a prefix such as `shop.` is left out.
pub(crate) fn is_writing(tool: &str) -> bool {
    let words = words(without_server(tool));
    let is_verb = |word: &String| VERBS.iter().any(|(verb, _)| verb == word);
    let is_read = |word: &String| READ_NOUNS.contains(&word.as_str());
    words.first().is_some_and(is_verb) && !has(&words, &READING) && !words.last().is_some_and(is_read)
}

/// True for a tool that sends data to someone.
pub(crate) fn is_sending(tool: &str) -> bool {
    let words = words(tool);
    has(&words, &SENDING) && !has(&words, &READING)
}

/// True for a tool that only reads, by the words of its name.
pub(crate) fn is_reading(tool: &str) -> bool {
    has(&words(tool), &READING)
}

/// True for a tool with which an agent hands its case over to a person: `transfer_to_human_agents`, `escalateToSupport`.
pub(crate) fn is_hand_over(tool: &str) -> bool {
    let words = words(tool);
    has(&words, &HANDING_OVER) && has(&words, &PERSONS) && !has(&words, &READING)
}

fn has(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}

/// The words of a name in snake case, kebab case or camel case, in small letters.
pub(crate) fn words(name: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_writes_if_its_name_starts_with_such_a_verb() {
        for tool in ["refund_order", "shop.refund_order", "cancelReservation", "order_pizza"] {
            assert!(is_writing(tool), "{tool}");
        }
        for tool in ["get_order", "order_status", "think", "calculate", "shop.find", "return_policy", "update_check"] {
            assert!(!is_writing(tool), "{tool}");
        }
    }

    #[test]
    fn a_tool_hands_over_if_its_name_says_so_and_to_whom() {
        for tool in ["transfer_to_human_agents", "escalateToSupport", "hand-over-to-person", "Handoff_Human"] {
            assert!(is_hand_over(tool), "{tool}");
        }
        for tool in ["transfer_money", "get_human_transfer_status", "create_agent", "escalate_privileges", "handle"] {
            assert!(!is_hand_over(tool), "{tool}");
        }
    }
}
