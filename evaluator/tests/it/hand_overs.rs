//! Hand-overs to a person as review items, through real files.

use serde_json::{Value, json};

use crate::kit::{Pair, answer_of, step};

/// An agent that hands its case over with this summary, if it has one.
fn hands_over(summary: Option<&str>, status: &str) -> Value {
    let mut events = step("c1", "get_order", &json!({"id": "W1"}), &json!({"total": 50})).to_vec();
    if let Some(summary) = summary {
        let mut call = step("c2", "transfer_to_human_agents", &json!({"summary": summary}), &json!("ok"));
        call[1]["status"] = json!(status);
        events.extend(call);
    }
    answer_of(&json!({"events": events}))
}

fn items(baseline: &Value, new: &Value) -> Vec<String> {
    let review = Pair::with_answers(baseline, new).evaluation().gate.review;
    review.into_iter().filter(|item| item.code == "hand-over").map(|item| item.message).collect()
}

#[test]
fn a_case_that_is_newly_or_no_longer_handed_over_is_a_review_item() {
    let (without, with) = (hands_over(None, "ok"), hands_over(Some("The customer wants W1 back."), "ok"));
    assert_eq!(items(&without, &with), ["transfer_to_human_agents, newly"]);
    assert_eq!(items(&with, &without), ["transfer_to_human_agents, no longer"]);
    let reworded = hands_over(Some("Somebody asks for the return of the order W1."), "ok");
    assert_eq!(items(&with, &reworded), Vec::<String>::new());
    assert_eq!(items(&without, &hands_over(Some("The customer wants W1 back."), "error")), Vec::<String>::new());
}
