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
    fn a_tool_hands_over_if_its_name_says_so_and_to_whom() {
        for tool in ["transfer_to_human_agents", "escalateToSupport", "hand-over-to-person", "Handoff_Human"] {
            assert!(is_hand_over(tool), "{tool}");
        }
        for tool in ["transfer_money", "get_human_transfer_status", "create_agent", "escalate_privileges", "handle"] {
            assert!(!is_hand_over(tool), "{tool}");
        }
    }
}
