//! The writes that differ, in words: from counts, names of tools and their arguments, and never from what an agent claims.

use counterproof_artifact::evaluation::{Effect, Story};

use crate::load::tool_names::{VERBS, without_server, words};
use crate::values::text;

/// The writes of one tool on both sides: `cancel_reservation 0 → 3, 1 without evidence`, `issue_refund amount 50 → 500`.
pub fn effect(effect: &Effect) -> String {
    let Effect { tool, baseline, new, without_evidence, failed, changed, .. } = effect;
    let mut parts = Vec::new();
    if baseline != new {
        parts.push(format!("{tool} {baseline} → {new}"));
    }
    for (index, argument) in changed.iter().enumerate() {
        let name = if index == 0 && parts.is_empty() { format!("{tool} ") } else { String::new() };
        parts.push(format!("{name}{} {} → {}", argument.name, argument.baseline, argument.new));
    }
    if parts.is_empty() {
        parts.push(format!("{tool} {new}"));
    }
    if *without_evidence > 0 {
        parts.push(format!("{without_evidence} without evidence"));
    }
    if *failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    parts.join(", ")
}

/// The worst difference in the writes as sentences: `New cancelled 3 reservations. Baseline cancelled none.` `None` where the writes
/// of both sides are the same.
pub fn effects(story: &Story) -> Option<String> {
    let (worst, others) = story.effects.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        count => format!(" {} too.", text::count(count, "other tool differs", "other tools differ")),
    };
    Some(format!("{}{more}", sentence(worst)))
}

fn sentence(effect: &Effect) -> String {
    let Effect { tool, baseline, new, without_evidence, failed, proposed, changed, .. } = effect;
    if let (true, Some(argument)) = (baseline == new, changed.first()) {
        return format!(
            "New {} {tool} with {} {}, baseline with {}.",
            if *proposed { "proposed" } else { "called" },
            argument.name,
            argument.new,
            argument.baseline
        );
    }
    let act = if *proposed { Act::Proposed(tool.clone()) } else { Act::of(tool) };
    if baseline != new {
        let lacking = match (*without_evidence, *new) {
            (0, _) => String::new(),
            (lacking, new) if lacking == new => ", without evidence".to_owned(),
            (lacking, _) => format!(", {lacking} without evidence"),
        };
        let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
        return format!("New {}{lacking}{failed}. Baseline {}.", act.times(*new), act.again(*baseline));
    }
    if *without_evidence > 0 {
        return format!("New {} without evidence.", act.times(*without_evidence));
    }
    format!("{} of {tool} failed on new.", text::count(usize::try_from(*failed).unwrap_or(usize::MAX), "call", "calls"))
}

/// What a tool does, by the words of its name.
enum Act {
    /// `cancelled`, `reservation`: of things that can be counted.
    Counted { verb: String, noun: String },
    /// `updated reservation flights`, `enabled roaming`.
    Done(String),
    /// A name that does not start with a known verb.
    Called(String),
    /// A write that nothing carried out.
    Proposed(String),
}

impl Act {
    fn of(tool: &str) -> Self {
        let words: Vec<_> = words(without_server(tool)).into_iter().filter(|word| !word.is_empty()).collect();
        let Some((verb, rest)) = words.split_first() else { return Act::Called(tool.to_owned()) };
        let Some(verb) = past(verb) else { return Act::Called(tool.to_owned()) };
        match rest {
            [.., last] if !rest.iter().any(|word| word == "to") && is_countable(last) => {
                Act::Counted { verb, noun: rest.join(" ") }
            }
            _ => Act::Done([&[verb][..], rest].concat().join(" ")),
        }
    }

    fn times(&self, count: u64) -> String {
        match (self, count) {
            (Act::Counted { verb, noun }, 0) => format!("{verb} no {noun}"),
            (Act::Counted { verb, noun }, 1) => format!("{verb} 1 {noun}"),
            (Act::Counted { verb, noun }, count) => format!("{verb} {count} {}", plural(noun)),
            (Act::Done(done), count) => format!("{done} {}", often(count)),
            (Act::Called(tool), count) => format!("called {tool} {}", often(count)),
            (Act::Proposed(tool), count) => format!("proposed {tool} {}", often(count)),
        }
    }

    /// The same in a second sentence, which does not repeat the noun.
    fn again(&self, count: u64) -> String {
        match (self, count) {
            (Act::Counted { verb, .. }, 0) => format!("{verb} none"),
            (Act::Counted { verb, .. }, count) => format!("{verb} {count}"),
            (Act::Done(_) | Act::Called(_) | Act::Proposed(_), 0) => "did not".to_owned(),
            (Act::Done(_) | Act::Called(_) | Act::Proposed(_), count) => format!("did {}", often(count)),
        }
    }
}

fn often(count: u64) -> String {
    match count {
        0 => "not once".to_owned(),
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

fn past(verb: &str) -> Option<String> {
    VERBS.iter().find(|(present, _)| *present == verb).map(|(_, past)| (*past).to_owned())
}

/// Whether a number can stand before a noun. Plurals and masses are done some times instead.
fn is_countable(noun: &str) -> bool {
    let is_mass = ["data", "money", "access", "information", "status", "credit"].contains(&noun);
    !is_mass && !noun.ends_with('s') && !noun.ends_with("ing")
}

fn plural(noun: &str) -> String {
    let after_vowel = |end: &str| noun.strip_suffix(end).is_some_and(|stem| stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match noun.strip_suffix('y') {
        Some(stem) if !after_vowel("y") => format!("{stem}ies"),
        _ if noun.ends_with(['x', 'z']) || noun.ends_with("ch") || noun.ends_with("sh") => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn says(effects: &Value) -> [String; 2] {
        let story: Story = serde_json::from_value(json!({"effects": effects})).unwrap();
        [effect(&story.effects[0]), super::effects(&story).unwrap()]
    }

    #[test]
    fn new_writes_are_counted() {
        let cancelled = json!({"tool": "cancel_reservation", "baseline": 0, "new": 3, "without_evidence": 1});
        assert_eq!(
            says(&json!([cancelled])),
            [
                "cancel_reservation 0 → 3, 1 without evidence",
                "New cancelled 3 reservations, 1 without evidence. Baseline cancelled none."
            ]
        );
        let updated = json!({"tool": "update_reservation_flights", "baseline": 5, "new": 1});
        assert_eq!(
            says(&json!([updated, cancelled]))[1],
            "New updated reservation flights once. Baseline did 5 times. 1 other tool differs too."
        );
        let refused = json!({"tool": "shop.refund_order", "baseline": 1, "new": 0, "failed": 1});
        assert_eq!(says(&json!([refused]))[1], "New refunded no order, 1 failed. Baseline refunded 1.");
        let other = json!({"tool": "frobnicate", "baseline": 2, "new": 0});
        assert_eq!(says(&json!([other]))[1], "New called frobnicate not once. Baseline did twice.");
    }

    #[test]
    fn what_was_only_proposed_is_not_said_to_be_done() {
        let more = json!({"tool": "refund_order", "baseline": 0, "new": 2, "proposed": true});
        assert_eq!(says(&json!([more]))[1], "New proposed refund_order twice. Baseline did not.");
        let amount = json!([{"name": "amount", "baseline": "50", "new": "500"}]);
        let other = json!({"tool": "refund_order", "baseline": 1, "new": 1, "proposed": true, "changed": amount});
        assert_eq!(says(&json!([other]))[1], "New proposed refund_order with amount 500, baseline with 50.");
    }

    #[test]
    fn changed_values_are_named_with_both_sides() {
        let changed = json!({
            "tool": "issue_refund", "baseline": 1, "new": 1,
            "changed": [{"name": "amount", "baseline": "50", "new": "500"}, {"name": "to", "baseline": "a", "new": "b"}],
        });
        assert_eq!(
            says(&json!([changed])),
            ["issue_refund amount 50 → 500, to a → b", "New called issue_refund with amount 500, baseline with 50."]
        );
    }

    #[test]
    fn nouns_are_counted_where_they_can_be() {
        for (tool, said) in [
            ("enable_roaming", "enabled roaming 3 times"),
            ("pay_salary", "paid 3 salaries"),
            ("transfer_to_human_agents", "transferred to human agents 3 times"),
            ("bookHotel", "booked 3 hotels"),
        ] {
            assert_eq!(Act::of(tool).times(3), said);
        }
    }
}
