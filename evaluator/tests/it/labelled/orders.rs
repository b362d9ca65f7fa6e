//! Arrays that hold the same in another order: one difference, which says what moved.

use counterproof_artifact::evaluation::Verdict::Changed;
use serde_json::json;

use super::agent::agent;
use super::{Labelled, pair};

pub(super) fn pairs() -> Vec<Labelled> {
    vec![
        pair(
            "elements-in-another-order",
            "The same seats in another order are one difference: none was added, and none is gone.",
        )
        .baseline_does(agent().proposes("book", &json!({"seats": ["1A", "2A", "3A", "4A"]})))
        .new_does(agent().proposes("book", &json!({"seats": ["4A", "2A", "1A", "3A"]})))
        .is(Changed, &["action-params-changed"])
        .also(|row| {
            assert_eq!(row.reasons[0].message, "book: seats: same 4 elements in a different order");
            assert_eq!(row.reasons.len(), 1);
        }),
        pair("an-element-that-moved", "One element stands in another place, and it is named with both places.")
            .baseline_does(agent().calls("book", &json!({"seats": ["1A", "2A", "3A", "4A"]}), &json!({})))
            .new_does(agent().calls("book", &json!({"seats": ["2A", "3A", "4A", "1A"]}), &json!({})))
            .is(Changed, &["tool-args-changed"])
            .also(|row| assert_eq!(row.reasons[0].message, "call of book: seats: \"1A\" moved from position 1 to 4")),
        pair("elements-that-changed-places", "Two elements stand where the other stood, and both are named.")
            .baseline_does(agent().gives(&json!({"order": [{"id": 1}, {"id": 2}, {"id": 3}]})))
            .new_does(agent().gives(&json!({"order": [{"id": 3}, {"id": 2}, {"id": 1}]})))
            .is(Changed, &["output-changed"])
            .also(|row| {
                let said = "output: order: {\"id\":1} and {\"id\":3} swapped (positions 1 and 3)";
                assert_eq!(row.reasons[0].message, said);
            }),
        pair(
            "elements-that-are-no-longer-the-same",
            "One seat more than the order changed, so the elements are compared one by one.",
        )
        .baseline_does(agent().proposes("book", &json!({"seats": ["1A", "2A"]})))
        .new_does(agent().proposes("book", &json!({"seats": ["2A", "1A", "3A"]})))
        .is(Changed, &["action-params-changed"])
        .also(|row| assert!(row.reasons[0].message.contains("added"), "{}", row.reasons[0].message)),
    ]
}
