//! What became of the proposed actions: the calls that carried them out, and whether anything came of them.

use counterproof_artifact::evaluation::Verdict::{Changed, Unchanged};
use serde_json::{Value, json};

use super::agent::{Agent, agent};
use super::{Labelled, pair};

/// An agent that is to pay back.
fn refunding(amount: u64) -> Agent {
    agent().proposes("refund", &paid_back(amount)).at_risk("high")
}

fn paid_back(amount: u64) -> Value {
    json!({"order_id": "W1", "amount": amount})
}

trait Refund: Sized {
    /// The call that carries the action out, and what comes of it.
    fn succeeding(self, amount: u64) -> Self;
    /// The same, refused.
    fn refused(self, amount: u64) -> Self;
}

impl Refund for Agent {
    fn succeeding(self, amount: u64) -> Self {
        self.calls("refund", &paid_back(amount), &json!({"done": true})).carrying_out("a1")
    }

    fn refused(self, amount: u64) -> Self {
        self.fails("refund", &paid_back(amount), "more than was paid").carrying_out("a1")
    }
}

pub(super) fn pairs() -> Vec<Labelled> {
    vec![
        pair(
            "an-action-that-was-refused",
            "Other arguments are a change, and that the tool refused them is what became of it: that comes first.",
        )
        .baseline_does(refunding(50).succeeding(50))
        .new_does(refunding(500).refused(500))
        .is(Changed, &["tool-error", "action-params-changed", "tool-args-changed"])
        .also(|row| assert_eq!(row.reasons[0].message, "result of refund: failed, but succeeded on baseline")),
        pair("an-action-that-was-refused-before", "Both sides were refused, so only the arguments differ.")
            .baseline_does(refunding(50).refused(50))
            .new_does(refunding(500).refused(500))
            .is(Changed, &["action-params-changed", "tool-args-changed"]),
        pair(
            "an-action-that-is-no-longer-refused",
            "Nothing failed that held: the action is told first, and that the call holds behind it.",
        )
        .baseline_does(refunding(50).refused(50))
        .new_does(refunding(40).succeeding(40))
        .is(Changed, &["action-params-changed", "tool-args-changed", "tool-error-gone"]),
        pair(
            "an-action-that-is-refused-and-not-tried-again",
            "Each step of new's is one of baseline's, and yet nothing came of the action: that is told of the action.",
        )
        .baseline_does(refunding(50).refused(50).succeeding(50))
        .new_does(refunding(50).refused(50))
        .is(Changed, &["tool-error", "tool-call-removed"])
        .also(|row| {
            let places: Vec<_> = row.reasons[0].pointers.iter().map(|place| place.pointer.as_str()).collect();
            assert_eq!(places, ["/events/3", "/events/1"], "the result that held, and the one that did not");
        }),
        pair(
            "an-action-that-was-tried-twice",
            "The first call failed and the second did not, so the action was done on both sides.",
        )
        .baseline_does(refunding(50).succeeding(50))
        .new_does(refunding(50).refused(50).succeeding(50))
        .is(Changed, &["tool-error", "tool-call-added"]),
        pair("an-action-that-nobody-carried-out", "An action that was only proposed did not fail.")
            .baseline_does(refunding(50))
            .new_does(refunding(50))
            .is(Unchanged, &[]),
    ]
}
