//! Which step stands for which: the tool, the arguments and the order decide, never the index alone.

use counterproof_artifact::evaluation::Verdict::{Changed, Unchanged};
use serde_json::json;

use super::agent::agent;
use super::{Labelled, pair};

pub(super) fn pairs() -> Vec<Labelled> {
    let order = |id: &str| json!({"order_id": id});
    vec![
        pair("the-same-steps", "Two agents that did and said the same do not differ, whatever time it took them.")
            .baseline_does(agent().calls("get_order", &order("W1"), &json!({"total": 50})))
            .new_does(agent().calls("get_order", &order("W1"), &json!({"total": 50})))
            .is(Unchanged, &[]),
        pair(
            "a-step-put-in-front",
            "One more call in front does not make the calls after it differ: only it was added.",
        )
        .baseline_does(agent().calls("get_order", &order("W1"), &json!({"total": 50})).calls(
            "get_user",
            &json!({}),
            &json!("Ann"),
        ))
        .new_does(
            agent()
                .calls("list_orders", &json!({}), &json!({"ids": ["W1"]}))
                .calls("get_order", &order("W1"), &json!({"total": 50}))
                .calls("get_user", &json!({}), &json!("Ann")),
        )
        .is(Changed, &["tool-call-added"])
        .diverging_at(&["new /events/0"]),
        pair("a-step-left-out", "The call that is missing is told as missing, and the one after it pairs with itself.")
            .baseline_does(agent().calls("check_stock", &order("W1"), &json!({"left": 3})).calls(
                "get_order",
                &order("W1"),
                &json!({}),
            ))
            .new_does(agent().calls("get_order", &order("W1"), &json!({})))
            .is(Changed, &["tool-call-removed"])
            .diverging_at(&["baseline /events/0"]),
        pair(
            "another-tool-in-the-same-place",
            "Calls of two tools never stand for each other: one was left out and another made.",
        )
        .baseline_does(agent().calls("get_order", &order("W1"), &json!({})))
        .new_does(agent().calls("find_order", &order("W1"), &json!({})))
        .is(Changed, &["tool-call-removed", "tool-call-added"]),
        pair(
            "other-arguments-altogether",
            "A wholly different call of the same tool is one call with other arguments, not one less and one more.",
        )
        .baseline_does(agent().calls("search", &json!({"from": "SFO", "to": "JFK"}), &json!({"found": 2})))
        .new_does(agent().calls("search", &json!({"from": "LAX", "to": "BOS"}), &json!({"found": 2})))
        .is(Changed, &["tool-args-changed"])
        .diverging_at(&["baseline /events/0", "new /events/0"]),
        pair(
            "the-nearest-call-of-the-tool",
            "Of two calls of one tool, the one that shares arguments with the old call stands for it.",
        )
        .baseline_does(agent().calls("search", &json!({"from": "SFO", "to": "JFK", "seats": 1}), &json!({"found": 2})))
        .new_does(
            agent().calls("search", &json!({"from": "LAX", "to": "BOS", "seats": 9}), &json!({"found": 2})).calls(
                "search",
                &json!({"from": "SFO", "to": "JFK", "seats": 2}),
                &json!({"found": 2}),
            ),
        )
        .is(Changed, &["tool-call-added", "tool-args-changed"])
        .diverging_at(&["new /events/0"]),
        pair(
            "calls-made-at-once",
            "Calls that were made before any of them answered pair with the same calls, in the same order too.",
        )
        .baseline_does(
            agent().at_once(&[
                ("get_order", &order("W1"), &json!({"total": 50})),
                ("get_user", &json!({}), &json!("Ann")),
            ]),
        )
        .new_does(
            agent().at_once(&[
                ("get_order", &order("W1"), &json!({"total": 50})),
                ("get_user", &json!({}), &json!("Ann")),
            ]),
        )
        .is(Unchanged, &[]),
    ]
}
