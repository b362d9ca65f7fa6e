//! What stands on the cards of actions and steps on the page of a case.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::{Value, json};

use crate::kit::{CASE, Pair, action, answer_of, step};
use crate::reported::Reported as _;

/// An agent that pays back, in so many calls as there are statuses.
fn paying_back(statuses: &[&str]) -> Value {
    let call = |(index, status): (usize, &&str)| {
        let [mut call, mut result] = step(&format!("c{index}"), "refund", &json!({"amount": 50}), &json!("said"));
        call["action_id"] = json!("a1");
        result["status"] = json!(status);
        [call, result]
    };
    let events: Vec<_> = statuses.iter().enumerate().flat_map(call).collect();
    answer_of(&json!({"events": events, "proposed_actions": [action("a1", "refund", &json!({"amount": 50}), &[])]}))
}

/// The section of the page that shows the actions, or the events.
fn section(id: &str, baseline: &Value, new: &Value) -> String {
    let pair = Pair::with_answers(baseline, new);
    let page = std::fs::read_to_string(pair.report().join(format!("cases/{CASE}.html"))).unwrap();
    let (_, behind) = page.split_once(&format!("<h2 id=\"{id}\">")).unwrap();
    behind.split_once("</section>").unwrap().0.to_owned()
}

fn actions(baseline: &Value, new: &Value) -> String {
    section("actions", baseline, new)
}

const FAILED: &str = "✗ failed";

#[test]
fn a_card_shows_that_its_action_had_no_effect() {
    let shown = actions(&paying_back(&["ok"]), &paying_back(&["error"]));
    assert!(shown.contains("The call failed on new but not on baseline."), "{shown}");
    assert!(!shown.contains("identical action"), "{shown}");
    assert_eq!(shown.matches(FAILED).count(), 1, "on new's card alone: {shown}");
    assert!(shown.rfind("class=\"side\">new").unwrap() < shown.find(FAILED).unwrap(), "{shown}");

    let shown = actions(&paying_back(&["error"]), &paying_back(&["ok"]));
    assert!(shown.contains("The call failed on baseline but not on new."), "{shown}");
    assert_eq!(shown.matches(FAILED).count(), 1, "{shown}");
}

#[test]
fn an_action_that_failed_on_both_sides_or_was_retried_has_a_note_only() {
    let shown = actions(&paying_back(&["error"]), &paying_back(&["error"]));
    assert!(shown.contains("1 identical action") && shown.contains(FAILED), "{shown}");
    assert!(!shown.contains("The call failed"), "{shown}");

    let shown = actions(&paying_back(&["ok"]), &paying_back(&["error", "ok"]));
    assert!(shown.contains("1 of 2 calls failed") && !shown.contains(FAILED), "{shown}");

    let shown = actions(&paying_back(&[]), &paying_back(&["error"]));
    assert!(shown.contains(FAILED) && !shown.contains("The call failed"), "baseline made no call: {shown}");
}

#[test]
fn a_card_that_both_sides_share_has_the_ids_of_both_where_they_differ() {
    let old = paying_back(&["ok"]);
    assert!(section("events", &old, &old).contains("<span>c0</span>"));
    let new: Value = serde_json::from_str(&old.to_string().replace("c0", "call_9").replace("a1", "act_9")).unwrap();
    let shown = section("events", &old, &new);
    assert_eq!(shown.matches("<span>c0 | call_9</span>").count(), 2, "the call and its result: {shown}");
    assert!(actions(&old, &new).contains("<span>a1 | act_9</span>"));
}

#[test]
fn an_array_in_another_order_is_one_place_that_says_what_moved() {
    let booking =
        |seats: &Value| answer_of(&json!({"proposed_actions": [action("a1", "book", &json!({"seats": seats}), &[])]}));
    let shown = actions(&booking(&json!(["1A", "2A", "3A"])), &booking(&json!(["2A", "3A", "1A"])));
    assert!(shown.contains("reordered: &#34;1A&#34; moved from position 1 to 3"), "{shown}");
    assert_eq!(shown.matches("<th scope=\"row\">").count(), 1, "{shown}");
    assert!(!shown.contains("<mark>"), "no element was marked as gone or added: {shown}");
}
