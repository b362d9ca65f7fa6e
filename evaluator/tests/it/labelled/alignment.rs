//! Which step stands for which: the tool, the arguments and the order decide, never the index alone.

use counterproof_artifact::evaluation::Verdict::{Changed, Unchanged};
use serde_json::{Value, json};

use super::agent::agent;
use super::{Labelled, pair};

pub(super) fn pairs() -> Vec<Labelled> {
    [calls(), calls_at_once(), moves_and_detours(), actions()].into_iter().flatten().collect()
}

fn order(id: &str) -> Value {
    json!({"order_id": id})
}

fn calls() -> Vec<Labelled> {
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
            "a-call-that-got-no-result",
            "The call was made on both sides and answered on one only: a result is gone, not the call.",
        )
        .baseline_does(agent().calls("get_user", &json!({}), &json!("Ann")))
        .new_does(agent().event(json!({"type": "tool_call", "call_id": "c1", "tool": "get_user", "args": {}})))
        .is(Changed, &["tool-result-changed"])
        .also(|row| assert_eq!(row.reasons[0].message, "result of get_user: only in baseline")),
        pair(
            "polling-once-more",
            "The same call was repeated once more before it gave something else: one call more, and no argument differs.",
        )
        .baseline_does(
            agent()
                .calls("get_status", &order("W1"), &json!("open"))
                .calls("get_status", &order("W1"), &json!("done")),
        )
        .new_does(
            agent()
                .calls("get_status", &order("W1"), &json!("open"))
                .calls("get_status", &order("W1"), &json!("open"))
                .calls("get_status", &order("W1"), &json!("done")),
        )
        .is(Changed, &["tool-call-added"])
        .aligned([4, 0, 0, 2, 0], 1.0),
    ]
}

fn calls_at_once() -> Vec<Labelled> {
    vec![
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
        pair(
            "calls-made-at-once-in-another-order",
            "Calls that were made before any of them answered have no order, so another order is no difference.",
        )
        .baseline_does(
            agent().at_once(&[
                ("get_order", &order("W1"), &json!({"total": 50})),
                ("get_user", &json!({}), &json!("Ann")),
            ]),
        )
        .new_does(
            agent().at_once(&[
                ("get_user", &json!({}), &json!("Ann")),
                ("get_order", &order("W1"), &json!({"total": 50})),
            ]),
        )
        .is(Unchanged, &[])
        .aligned([4, 0, 0, 0, 0], 0.0),
        pair(
            "calls-made-one-after-the-other",
            "What was called at once and is now called in turn was called with the same arguments and gave the same.",
        )
        .baseline_does(
            agent().at_once(&[
                ("get_order", &order("W1"), &json!({"total": 50})),
                ("get_user", &json!({}), &json!("Ann")),
            ]),
        )
        .new_does(agent().calls("get_user", &json!({}), &json!("Ann")).calls(
            "get_order",
            &order("W1"),
            &json!({"total": 50}),
        ))
        .is(Unchanged, &[]),
        pair(
            "one-of-the-calls-made-at-once",
            "Within a group the calls pair by their arguments: the one that differs is found wherever it stands.",
        )
        .baseline_does(agent().at_once(&[
            ("search", &json!({"from": "SFO", "to": "JFK"}), &json!({"found": 1})),
            ("search", &json!({"from": "LAX", "to": "BOS"}), &json!({"found": 1})),
        ]))
        .new_does(agent().at_once(&[
            ("search", &json!({"from": "LAX", "to": "SEA"}), &json!({"found": 1})),
            ("search", &json!({"from": "SFO", "to": "JFK"}), &json!({"found": 1})),
        ]))
        .is(Changed, &["tool-args-changed"])
        .also(|row| assert_eq!(row.reasons[0].message, "call of search: to \"BOS\" → \"SEA\"")),
    ]
}

fn moves_and_detours() -> Vec<Labelled> {
    vec![
        pair(
            "a-call-made-later",
            "The same call is made at the end and no longer at the start: it moved, and nothing else differs.",
        )
        .baseline_does(
            agent()
                .calls("notify", &json!({"to": "Ann"}), &json!("sent"))
                .calls("get_order", &order("W1"), &json!({"total": 50}))
                .calls("refund", &order("W1"), &json!("done")),
        )
        .new_does(
            agent()
                .calls("get_order", &order("W1"), &json!({"total": 50}))
                .calls("refund", &order("W1"), &json!("done"))
                .calls("notify", &json!({"to": "Ann"}), &json!("sent")),
        )
        .is(Changed, &["tool-call-moved"])
        .diverging_at(&["baseline /events/0", "new /events/4"])
        .aligned([4, 0, 2, 0, 0], 2.0)
        .also(|row| assert_eq!(row.reasons[0].message, "call of notify: moved")),
        pair(
            "a-call-made-later-with-other-arguments",
            "The call moved, and most of what it was given is the same: one call in another place with one change.",
        )
        .baseline_does(
            agent()
                .calls("notify", &json!({"to": "Ann", "by": "mail", "urgent": true}), &json!("sent"))
                .calls("get_order", &order("W1"), &json!({"total": 50}))
                .calls("refund", &order("W1"), &json!("done")),
        )
        .new_does(
            agent()
                .calls("get_order", &order("W1"), &json!({"total": 50}))
                .calls("refund", &order("W1"), &json!("done"))
                .calls("notify", &json!({"to": "Ann", "by": "mail", "urgent": false}), &json!("sent")),
        )
        .is(Changed, &["tool-call-moved"])
        .also(|row| {
            assert_eq!(row.reasons[0].message, "call of notify: moved; urgent true → false");
        }),
        pair(
            "a-detour",
            "The agent took a step that it had not taken before, and then went on as ever: the sides meet again there.",
        )
        .baseline_does(agent().calls("get_user", &json!({}), &json!("Ann")).calls(
            "refund",
            &order("W1"),
            &json!("done"),
        ))
        .new_does(
            agent()
                .calls("get_user", &json!({}), &json!("Ann"))
                .fails("get_order", &order("W9"), "no such order")
                .calls("refund", &order("W1"), &json!("done")),
        )
        .is(Changed, &["tool-error", "tool-call-added"])
        .diverging_at(&["new /events/2"])
        .aligned([4, 0, 0, 2, 0], 1.0)
        .meeting_again_at(&["baseline /events/2", "new /events/4"]),
        pair(
            "a-detour-and-other-words",
            "After the detour every step is the same; that the agent ends in other words does not part the ways again.",
        )
        .baseline_does(agent().calls("refund", &order("W1"), &json!("done")).ends_with("Refunded."))
        .new_does(
            agent()
                .calls("get_order", &order("W1"), &json!({"total": 50}))
                .calls("refund", &order("W1"), &json!("done"))
                .ends_with("It is done."),
        )
        .is(Changed, &["tool-call-added", "output-changed"])
        .meeting_again_at(&["baseline /events/0", "new /events/2"]),
        pair(
            "two-ways-that-part-for-good",
            "The last step differs, so there is no place from which on the two sides are the same.",
        )
        .baseline_does(agent().calls("get_user", &json!({}), &json!("Ann")).calls(
            "refund",
            &order("W1"),
            &json!("done"),
        ))
        .new_does(agent().calls("get_user", &json!({}), &json!("Ann")).calls("refuse", &order("W1"), &json!("done")))
        .is(Changed, &["tool-call-removed", "tool-call-added"])
        .meeting_again_at(&[]),
    ]
}

fn actions() -> Vec<Labelled> {
    vec![
        pair("actions-in-another-order", "Proposed actions are a set: in which order they stand is not what is proposed.")
            .baseline_does(agent().proposes("refund", &order("W1")).proposes("notify", &json!({"to": "Ann"})))
            .new_does(agent().proposes("notify", &json!({"to": "Ann"})).proposes("refund", &order("W1")))
            .is(Unchanged, &[]),
        pair(
            "the-nearest-of-several-actions",
            "Of three refunds the two that are still there pair with themselves, wherever they stand; the third is gone.",
        )
        .baseline_does(
            agent().proposes("refund", &order("W1")).proposes("refund", &order("W2")).proposes("refund", &order("W3")),
        )
        .new_does(agent().proposes("refund", &order("W3")).proposes("refund", &order("W1")))
        .is(Changed, &["action-removed"])
        .also(|row| assert_eq!(row.reasons[0].pointers[0].pointer, "/proposed_actions/1")),
    ]
}
