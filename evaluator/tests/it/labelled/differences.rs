//! What differs within two values that stand for each other: by place, never by key order or by form.

use counterproof_artifact::evaluation::Verdict::{Changed, Improved, Regressed, Unchanged};
use serde_json::json;

use super::agent::agent;
use super::{Labelled, pair};

pub(super) fn pairs() -> Vec<Labelled> {
    vec![
        pair("keys-in-another-order", "The keys of a JSON object have no order, so there is nothing that differs.")
            .baseline_does(agent().calls("search", &json!({"from": "SFO", "to": "JFK"}), &json!({"a": 1, "b": 2})))
            .new_does(agent().calls("search", &json!({"to": "JFK", "from": "SFO"}), &json!({"b": 2, "a": 1})))
            .is(Unchanged, &[]),
        pair("a-whole-number-as-a-float", "Fifty is fifty, however the producer's JSON library writes it.")
            .baseline_does(agent().proposes("refund", &json!({"amount": 50})))
            .new_does(agent().proposes("refund", &json!({"amount": 50.0})))
            .is(Unchanged, &[]),
        pair("a-number-as-a-text", "The tool would be given a text where it got a number, which is not the same call.")
            .baseline_does(agent().proposes("refund", &json!({"amount": 50})))
            .new_does(agent().proposes("refund", &json!({"amount": "50"})))
            .is(Changed, &["action-params-changed"]),
        pair("an-element-put-in-front", "One more seat in front of the others is one place that differs, not three.")
            .baseline_does(agent().proposes("book", &json!({"seats": ["2A", "2B"]})))
            .new_does(agent().proposes("book", &json!({"seats": ["1A", "2A", "2B"]})))
            .is(Changed, &["action-params-changed"])
            .also(|row| assert_eq!(row.reasons[0].message, "book: seats.0 added \"1A\"")),
        pair(
            "ten-times-the-amount",
            "The same action on the same order, with one param that differs: named with both values.",
        )
        .baseline_does(agent().proposes("refund", &json!({"order_id": "W1", "amount": 50})))
        .new_does(agent().proposes("refund", &json!({"order_id": "W1", "amount": 500})))
        .is(Changed, &["action-params-changed"])
        .also(|row| assert_eq!(row.reasons[0].message, "refund: amount 50 → 500")),
        pair("other-words", "Other words are a change, and nothing says whether they are better or worse.")
            .baseline_does(agent().says("Your refund is on its way."))
            .new_does(agent().says("Your refund is coming."))
            .is(Changed, &["output-changed"]),
        pair(
            "what-had-to-be-said",
            "The number that the case expects is no longer said, so the new version got worse.",
        )
        .baseline_does(agent().says("You get 50 back."))
        .new_does(agent().says("You get your money back."))
        .expecting(json!({"must_include": ["50"]}))
        .is(Regressed, &["expectation-failed", "output-changed"]),
        pair("what-must-not-be-said", "What the case forbids was said and no longer is, so the new version is better.")
            .baseline_does(agent().says("I am sorry, no."))
            .new_does(agent().says("Of course."))
            .expecting(json!({"must_not_include": ["sorry"]}))
            .is(Improved, &["expectation-met", "output-changed"]),
        pair(
            "a-payload-that-differs",
            "The tool was asked the same and said something else: the result differs, not the call.",
        )
        .baseline_does(agent().calls("get_order", &json!({"id": "W1"}), &json!({"total": 50})))
        .new_does(agent().calls("get_order", &json!({"id": "W1"}), &json!({"total": 51})))
        .is(Changed, &["tool-result-changed"])
        .diverging_at(&["baseline /events/1", "new /events/1"]),
        pair("a-tool-that-fails", "The same call failed where it did not before, which explains what comes after it.")
            .baseline_does(agent().calls("get_order", &json!({"id": "W1"}), &json!({"total": 50})))
            .new_does(agent().fails("get_order", &json!({"id": "W1"}), "no such order"))
            .is(Changed, &["tool-error"]),
        pair(
            "an-object-of-another-shape",
            "The output's object has another value at one place, and that place is named.",
        )
        .baseline_does(agent().gives(&json!({"refund": {"amount": 50, "currency": "EUR"}})))
        .new_does(agent().gives(&json!({"refund": {"amount": 50, "currency": "USD"}})))
        .is(Changed, &["output-changed"])
        .also(|row| assert_eq!(row.reasons[0].message, "output: refund.currency \"EUR\" → \"USD\"")),
        pair(
            "evidence-that-is-gone",
            "A risky action that rested on a result rests on nothing now: nobody can check it.",
        )
        .baseline_does(
            agent()
                .calls("get_order", &json!({"id": "W1"}), &json!({"total": 50}))
                .proposes("refund", &json!({"id": "W1"}))
                .at_risk("high")
                .resting_on(&["c1"]),
        )
        .new_does(
            agent()
                .calls("get_order", &json!({"id": "W1"}), &json!({"total": 50}))
                .proposes("refund", &json!({"id": "W1"}))
                .at_risk("high"),
        )
        .is(Regressed, &["evidence-lost", "evidence-changed"]),
        pair("documents-in-another-order", "Documents are listed best first, so another order is another finding.")
            .baseline_does(agent().retrieves("refunds", &["policy", "faq"]))
            .new_does(agent().retrieves("refunds", &["faq", "policy"]))
            .is(Changed, &["retrieval-changed"]),
    ]
}
