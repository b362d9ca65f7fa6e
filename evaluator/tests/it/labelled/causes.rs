//! Why two answers differ, what was made up, and what rests on nothing.

use counterproof_artifact::evaluation::Verdict::{Changed, Regressed, Unchanged};
use serde_json::{Value, json};

use super::agent::{Agent, agent};
use super::{Labelled, pair};

fn order(id: &str) -> Value {
    json!({"order_id": id})
}

/// An agent that looks an order up and pays some of it back.
fn refunds(total: u32, amount: u32) -> Agent {
    agent()
        .calls("get_order", &order("W1"), &json!({"total": total}))
        .proposes("refund", &json!({"order_id": "W1", "amount": amount}))
        .at_risk("high")
        .resting_on(&["c1"])
}

pub(super) fn pairs() -> Vec<Labelled> {
    [evidence(), made_up(), not_made_up(), causes(), orders_of_writes(), other_wishes(), other_wording()]
        .into_iter()
        .flatten()
        .collect()
}

fn evidence() -> Vec<Labelled> {
    let bare = || agent().proposes("refund", &order("W1")).at_risk("high");
    vec![
        pair(
            "risky-without-evidence-on-both-sides",
            "Neither side says what its risky action rests on: that is told, but new is no worse for it.",
        )
        .baseline_does(bare())
        .new_does(bare())
        .is(Unchanged, &[])
        .finding(&[("high-risk-without-evidence", true)]),
        pair(
            "one-more-risky-action-out-of-nowhere",
            "Baseline's risky action rests on a result, and new proposes a second one that rests on nothing.",
        )
        .baseline_does(refunds(50, 50))
        .new_does(refunds(50, 50).proposes("close_account", &json!({"reason": "done"})).at_risk("high"))
        .is(Regressed, &["high-risk-without-evidence", "action-added"])
        .finding(&[("high-risk-without-evidence", false)])
        .caused_by("tool-choice", "close_account"),
        pair(
            "a-risk-that-was-never-stated",
            "Baseline's action may have been as risky, and rested on as little: nothing says that new is worse.",
        )
        .baseline_does(agent().proposes("refund", &order("W1")).at_risk("unknown"))
        .new_does(bare())
        .is(Changed, &["risk-changed"])
        .finding(&[("high-risk-without-evidence", true)])
        .caused_by("model-unexplained", "refund.risk_level"),
        pair(
            "evidence-and-nothing-else-lost",
            "The steps and the action are the same, and the action no longer says what it rests on: that is the cause.",
        )
        .baseline_does(refunds(50, 50))
        .new_does(refunds(50, 50).resting_on(&[]))
        .is(Regressed, &["evidence-lost", "evidence-changed"])
        .finding(&[("high-risk-without-evidence", false)])
        .caused_by("evidence-lost", "refund"),
        pair(
            "other-evidence-under-the-same-action",
            "The action is the same and rests on another call, which differs from the one that it rested on.",
        )
        .baseline_does(refunds(50, 50).calls("get_user", &json!({}), &json!("Ann")))
        .new_does(refunds(50, 50).calls("get_user", &json!({}), &json!("Ann")).resting_on(&["c2"]))
        .is(Changed, &["evidence-changed"])
        .finding(&[])
        .caused_by("model-unexplained", "refund")
        .also(|row| {
            let said = "refund: evidence changed from result of get_order {\"order_id\":\"W1\"} to result of get_user";
            assert_eq!(row.reasons[0].message, said);
        }),
    ]
}

fn made_up() -> Vec<Labelled> {
    vec![
        pair(
            "an-amount-out-of-nowhere",
            "Baseline paid back the order's total, new pays back a sum that nobody named: it was made up.",
        )
        .baseline_does(refunds(50, 50))
        .new_does(refunds(50, 500))
        .is(Changed, &["ungrounded-argument", "action-params-changed"])
        .finding(&[("ungrounded-argument", false)])
        .caused_by("ungrounded-argument", "refund.amount"),
        pair(
            "a-day-that-nobody-named",
            "The user asked for the 27th of May, which new made the 28th: that day stands nowhere.",
        )
        .baseline_does(agent().event(json!({"type": "user_message", "text": "Fly me there on May 27"})).calls(
            "search",
            &json!({"date": "2024-05-27"}),
            &json!({}),
        ))
        .new_does(agent().event(json!({"type": "user_message", "text": "Fly me there on May 27"})).calls(
            "search",
            &json!({"date": "2024-05-28"}),
            &json!({}),
        ))
        .is(Changed, &["ungrounded-argument", "tool-args-changed"])
        .finding(&[("ungrounded-argument", false)])
        .caused_by("ungrounded-argument", "search.date"),
        pair(
            "an-id-that-only-the-agent-said",
            "New calls with an id that it made up and then again with it: that its own call had it is no source.",
        )
        .baseline_does(
            agent()
                .calls("list_orders", &json!({}), &json!({"ids": ["W77"]}))
                .calls("get_order", &order("W77"), &json!({}))
                .calls("cancel", &order("W77"), &json!("done")),
        )
        .new_does(
            agent()
                .calls("list_orders", &json!({}), &json!({"ids": ["W77"]}))
                .fails("get_order", &order("W99"), "there is no order W99")
                .calls("cancel", &order("W99"), &json!("done")),
        )
        .is(
            Changed,
            &["ungrounded-argument", "ungrounded-argument", "tool-error", "tool-args-changed", "tool-args-changed"],
        )
        .finding(&[("ungrounded-argument", false), ("ungrounded-argument", false)])
        .caused_by("ungrounded-argument", "get_order.order_id"),
        pair(
            "a-value-whose-source-is-gone",
            "New pays back the right sum without having looked: it is told, behind the look that was left out.",
        )
        .baseline_does(agent().calls("get_order", &json!({}), &json!({"total": 50})).calls(
            "refund",
            &json!({"amount": 50}),
            &json!({}),
        ))
        .new_does(agent().calls("refund", &json!({"amount": 50}), &json!({})))
        .is(Changed, &["tool-call-removed", "unrecorded-source"])
        .finding(&[("unrecorded-source", false)])
        .caused_by("tool-choice", "get_order"),
    ]
}

fn not_made_up() -> Vec<Labelled> {
    vec![
        pair(
            "an-amount-that-a-tool-named",
            "New pays back another sum, but a tool named it before: the agent chose, it did not make up.",
        )
        .baseline_does(refunds(50, 50).calls("get_fees", &json!({}), &json!({"fee": 45})))
        .new_does(
            agent()
                .calls("get_order", &order("W1"), &json!({"total": 50}))
                .calls("get_fees", &json!({}), &json!({"fee": 45}))
                .proposes("refund", &json!({"order_id": "W1", "amount": 45}))
                .at_risk("high")
                .resting_on(&["c1"]),
        )
        .is(Changed, &["action-params-changed"])
        .finding(&[])
        .caused_by("arguments", "refund.amount"),
        pair(
            "an-amount-that-was-never-grounded",
            "Neither side saw its sum anywhere, so the transcript may just not hold what the agent was told.",
        )
        .baseline_does(agent().proposes("refund", &json!({"amount": 50})))
        .new_does(agent().proposes("refund", &json!({"amount": 60})))
        .is(Changed, &["action-params-changed"])
        .finding(&[])
        .caused_by("arguments", "refund.amount"),
        pair(
            "the-same-number-in-another-form",
            "A thousand with a comma and cents is the thousand that the tool named, so nothing was made up.",
        )
        .baseline_does(
            agent().calls("quote", &json!({}), &json!("It is $1,250.00 in all")).proposes("pay", &json!({"sum": 1250})),
        )
        .new_does(
            agent()
                .calls("quote", &json!({}), &json!("It is $1,250.00 in all"))
                .proposes("pay", &json!({"sum": "1250.00"})),
        )
        .is(Changed, &["action-params-changed"])
        .finding(&[])
        .caused_by("argument-form", "pay.sum"),
        pair(
            "a-flag-and-a-count",
            "Flags and small counts come from nowhere in any run, so that they changed does not make them invented.",
        )
        .baseline_does(agent().calls("count", &json!({}), &json!({"bags": 2, "paid": true})).calls(
            "book",
            &json!({"bags": 2, "paid": true}),
            &json!({}),
        ))
        .new_does(agent().calls("count", &json!({}), &json!({"bags": 2, "paid": true})).calls(
            "book",
            &json!({"bags": 3, "paid": false}),
            &json!({}),
        ))
        .is(Changed, &["tool-args-changed"])
        .finding(&[])
        .caused_by("arguments", "book.bags"),
    ]
}

fn causes() -> Vec<Labelled> {
    vec![
        pair(
            "a-result-that-moved-the-amount",
            "The agent paid back the total on both sides, and the tool named another total: the tool is the cause.",
        )
        .baseline_does(refunds(50, 50))
        .new_does(refunds(60, 60))
        .is(Changed, &["action-params-changed", "tool-result-changed"])
        .finding(&[])
        .caused_by("tool-result-changed", "get_order result.total")
        .walking(&["new /proposed_actions/0", "new /events/1"]),
        pair(
            "a-failure-that-stopped-the-refund",
            "The tool failed, so there was nothing to rest a refund on, and none was proposed.",
        )
        .baseline_does(refunds(50, 50))
        .new_does(agent().fails("get_order", &order("W1"), "the service is down"))
        .is(Changed, &["action-removed", "tool-error"])
        .caused_by("tool-error", "get_order"),
        pair("another-document-another-action", "The same search found another policy, and the action rests on that.")
            .baseline_does(
                agent().retrieves("refunds", &["policy_1"]).proposes("refund", &json!({"under": "policy_1"})),
            )
            .new_does(agent().retrieves("refunds", &["policy_2"]).proposes("refund", &json!({"under": "policy_2"})))
            .is(Changed, &["action-params-changed", "retrieval-changed"])
            .finding(&[])
            .caused_by("retrieval-changed", "retrieval.doc_ids.*"),
        pair(
            "another-look-another-action",
            "New looked another order up, of two that were listed, and went on with it: the look is the cause.",
        )
        .baseline_does(
            agent()
                .calls("list_orders", &json!({}), &json!({"ids": ["W1x1", "W2x2"]}))
                .calls("get_order", &order("W1x1"), &json!({"total": 50}))
                .proposes("refund", &json!({"amount": 50}))
                .resting_on(&["c2"]),
        )
        .new_does(
            agent()
                .calls("list_orders", &json!({}), &json!({"ids": ["W1x1", "W2x2"]}))
                .calls("get_order", &order("W2x2"), &json!({"total": 70}))
                .proposes("refund", &json!({"amount": 70}))
                .resting_on(&["c2"]),
        )
        .caused_by("arguments", "get_order.order_id")
        .is(Changed, &["action-params-changed", "tool-args-changed", "tool-result-changed"])
        .finding(&[]),
        pair(
            "other-words-alone",
            "Every step is the same and only the words differ, so there is nothing further back.",
        )
        .baseline_does(refunds(50, 50).says("You get 50 back."))
        .new_does(refunds(50, 50).says("50 is on its way."))
        .is(Changed, &["output-changed"])
        .caused_by("output-only", "output"),
        pair(
            "a-number-in-the-output-that-a-tool-changed",
            "The output names another total because the tool did: the words are not where it began.",
        )
        .baseline_does(agent().calls("get_order", &order("W1"), &json!({"total": 50})).says("The total is 50."))
        .new_does(agent().calls("get_order", &order("W1"), &json!({"total": 70})).says("The total is 70."))
        .is(Changed, &["tool-result-changed", "output-changed"])
        .caused_by("tool-result-changed", "get_order result.total")
        .walking(&["new /final_output/content", "new /events/1"]),
        pair(
            "a-lost-source-before-an-invention",
            "The tool failed and the agent made a sum up: the failure came first and took the sum's source away.",
        )
        .baseline_does(refunds(50, 50))
        .new_does(
            agent()
                .fails("get_order", &order("W1"), "the service is down")
                .proposes("refund", &json!({"order_id": "W1", "amount": 75}))
                .at_risk("high")
                .resting_on(&["c1"]),
        )
        .is(Regressed, &["ungrounded-argument", "action-params-changed", "evidence-failed", "tool-error"])
        .finding(&[("ungrounded-argument", false)])
        .caused_by("tool-error", "get_order"),
    ]
}

/// An agent that changes an order, one write after the other; the last one may be refused.
fn changes_order(writes: &[&str], refused: &str) -> Agent {
    let all = ["modify_items", "modify_address", "modify_payment"];
    let params = |tool: &str| json!({"order_id": "W1", "to": format!("{tool}_7")});
    let made = all.iter().fold(agent(), |agent, tool| agent.proposes(tool, &params(tool)).at_risk("high"));
    writes.iter().fold(made, |agent, tool| {
        let action = all.iter().position(|name| name == tool).map_or(0, |index| index + 1);
        let called = if *tool == refused {
            agent.fails(tool, &params(tool), "the order was modified before")
        } else {
            agent.calls(tool, &params(tool), &json!("ok"))
        };
        called.carrying_out(&format!("a{action}"))
    })
}

fn orders_of_writes() -> Vec<Labelled> {
    vec![
        pair(
            "a-write-that-came-too-late-on-baseline",
            "The items closed the order for further changes, and new makes them last: the order is the cause.",
        )
        .baseline_does(changes_order(&["modify_items", "modify_address", "modify_payment"], "modify_payment"))
        .new_does(changes_order(&["modify_address", "modify_payment", "modify_items"], ""))
        .is(Changed, &["tool-call-moved", "tool-error-gone"])
        .caused_by("order", "modify_address before modify_items")
        .also(|row| {
            let said = "modify_address now before modify_items; modify_payment: refused → done";
            assert_eq!(row.cause.as_ref().map(|cause| cause.message.as_str()), Some(said));
        }),
        pair("two-writes-to-one-order-that-changed-places", "The last write to a thing decides what holds of it.")
            .baseline_does(changes_order(&["modify_items", "modify_address", "modify_payment"], "").says("All done."))
            .new_does(changes_order(&["modify_items", "modify_payment", "modify_address"], "").says("It is done."))
            .is(Changed, &["tool-call-moved", "output-changed"])
            .caused_by("order", "modify_payment before modify_address"),
        pair("two-reads-that-changed-places", "Agents read in any order, which is no cause of what they say.")
            .baseline_does(
                agent()
                    .calls("get_order", &order("W1"), &json!("x"))
                    .calls("get_user", &order("W1"), &json!("y"))
                    .says("a"),
            )
            .new_does(
                agent()
                    .calls("get_user", &order("W1"), &json!("y"))
                    .calls("get_order", &order("W1"), &json!("x"))
                    .says("b"),
            )
            .is(Changed, &["tool-call-moved", "output-changed"])
            .caused_by("output-only", "output"),
        pair("writes-that-were-made-at-once", "Calls that overlap have no order, so they changed no places.")
            .baseline_does(
                agent()
                    .proposes("open", &order("W1"))
                    .proposes("close", &order("W1"))
                    .at_once(&[("open", &order("W1"), &json!("x")), ("close", &order("W1"), &json!("y"))])
                    .says("a"),
            )
            .new_does(
                agent()
                    .proposes("open", &order("W1"))
                    .proposes("close", &order("W1"))
                    .at_once(&[("close", &order("W1"), &json!("y")), ("open", &order("W1"), &json!("x"))])
                    .says("b"),
            )
            .is(Changed, &["output-changed"])
            .caused_by("output-only", "output"),
    ]
}

fn said(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": text})
}

fn other_wishes() -> Vec<Labelled> {
    let wishes = |wish: &str, amount: u32| {
        agent()
            .event(said("user", wish))
            .calls("get_order", &order("W1"), &json!({"total": 900}))
            .proposes("refund", &json!({"order_id": "W1", "amount": amount}))
            .at_risk("high")
            .resting_on(&["c1"])
    };
    vec![
        pair(
            "an-amount-that-the-user-named",
            "The user of new asks for another amount, and the agent pays what it was asked for.",
        )
        .baseline_does(wishes("Refund 50 of W1, please.", 50))
        .new_does(wishes("I want 70 back, of order W1.", 70))
        .is(Changed, &["action-params-changed", "event-changed"])
        .caused_by("input-changed", "message of the user")
        .walking(&["new /proposed_actions/0", "new /events/0"])
        .also(|row| {
            let cause = row.cause.as_ref().map(|cause| cause.message.as_str());
            assert_eq!(cause, Some("the user named 70 on new only"));
        }),
        pair(
            "an-amount-that-both-users-named",
            "The users word it differently and both name both amounts, so the agent chose.",
        )
        .baseline_does(wishes("Refund 50 or 70 of W1, please.", 50))
        .new_does(wishes("I want 70 back, or at least 50, of order W1.", 70))
        .is(Changed, &["action-params-changed", "event-changed"])
        .caused_by("arguments", "refund.amount"),
    ]
}

fn other_wording() -> Vec<Labelled> {
    let exchanges = |items: &Value, total: u32| {
        agent()
            .calls("get_order", &order("W1"), &json!({"total": total}))
            .proposes("exchange", &json!({"order_id": "W1", "items": items, "total": total}))
            .at_risk("high")
            .resting_on(&["c1"])
    };
    let hands_over = |summary: &str, text: &str| {
        agent()
            .proposes("transfer_to_human_agents", &json!({"summary": summary}))
            .at_risk("medium")
            .calls("transfer_to_human_agents", &json!({"summary": summary}), &json!("ok"))
            .carrying_out("a1")
            .says(text)
    };
    let (old, new) = ("User ann_1 wants a refund of order W1.", "The customer asks for the money of W1 back.");
    vec![
        pair("a-list-written-as-text-and-another-output", "Other words of the answer are more than another form.")
            .baseline_does(exchanges(&json!(["i1", "i2"]), 50).says("You get 2 items."))
            .new_does(exchanges(&json!("['i1', 'i2']"), 50).says("Two items are on their way."))
            .is(Changed, &["output-changed"]),
        pair("a-list-written-as-text-alone", "It is a difference, and the only one.")
            .baseline_does(exchanges(&json!(["i1", "i2"]), 50))
            .new_does(exchanges(&json!("['i1', 'i2']"), 50))
            .is(Changed, &["action-params-changed"]),
        pair("a-list-written-as-text-and-another-amount", "The amount is named before the list.")
            .baseline_does(exchanges(&json!(["i1", "i2"]), 50))
            .new_does(exchanges(&json!("['i1', 'i2']"), 60))
            .is(Changed, &["action-params-changed", "tool-result-changed"])
            .also(|row| {
                let reason = &row.reasons[0].message;
                assert!(reason.starts_with("exchange: total 50 → 60"), "{reason}");
            }),
        pair("a-hand-over-in-other-words", "The person who takes over reads the same.")
            .baseline_does(hands_over(old, "A colleague will help you."))
            .new_does(hands_over(new, "I transfer you now."))
            .is(Changed, &["output-changed"])
            .caused_by("output-only", "output"),
        pair("a-hand-over-about-another-order", "The summary names another order, which is more than its words.")
            .baseline_does(hands_over(old, "A colleague will help you."))
            .new_does(hands_over("The customer asks for the money of W2 back.", "A colleague will help you."))
            .is(Changed, &["action-params-changed", "tool-args-changed"]),
    ]
}
