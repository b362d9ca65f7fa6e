//! What the rules of comparison take for the same, and what they still tell apart.

use counterproof_artifact::evaluation::Verdict::{Changed, Regressed, Unchanged};
use serde_json::json;

use super::agent::agent;
use super::{Labelled, pair};

pub(super) fn pairs() -> Vec<Labelled> {
    [ignoring(), ignoring_a_tool(), normalising(), renaming(), numbers_and_defaults(), arrays()]
        .into_iter()
        .flatten()
        .collect()
}

fn ignoring() -> Vec<Labelled> {
    let traced = |trace: &str, id: &str| {
        agent()
            .calls("get_order", &json!({"id": id, "trace": trace}), &json!({"total": 50}))
            .proposes("refund", &json!({}))
    };
    let rule = r#"[[rule]]
        tool = "get_*"
        path = "/args/trace"
        ignore = true"#;
    vec![
        pair("an-ignored-argument", "The only argument that differs is one that the project does not want compared.")
            .baseline_does(traced("t-1", "W1").resting_on(&["c1"]))
            .new_does(traced("t-2", "W1").resting_on(&["c1"]))
            .under(rule)
            .is(Unchanged, &[]),
        pair("an-argument-beside-an-ignored-one", "Ignoring the trace says nothing of the order that is looked up.")
            .baseline_does(traced("t-1", "W1"))
            .new_does(traced("t-2", "W2"))
            .under(rule)
            .is(Changed, &["tool-args-changed"])
            .also(|row| assert_eq!(row.reasons[0].message, "call of get_order: id \"W1\" → \"W2\"")),
        pair("a-rule-for-another-tool", "The rule is for tools that get something, and this one sets something.")
            .baseline_does(agent().calls("set_order", &json!({"trace": "t-1"}), &json!({})))
            .new_does(agent().calls("set_order", &json!({"trace": "t-2"}), &json!({})))
            .under(rule)
            .is(Changed, &["tool-args-changed"]),
        pair("an-ignored-output", "The project judges what is done and not what is said, and the same was done.")
            .baseline_does(agent().says("Your refund is on its way."))
            .new_does(agent().says("Refunded!"))
            .under("[[rule]]\nevent = \"final_output\"\npath = \"/content\"\nignore = true")
            .is(Unchanged, &[]),
    ]
}

fn ignoring_a_tool() -> Vec<Labelled> {
    let noted = |note: &str| agent().calls("note", &json!({"text": note}), &json!({"stored": note}));
    let rule = "[[rule]]\ntool = \"note\"\nignore = true";
    vec![
        pair(
            "an-ignored-tool",
            "What the agent notes down for itself is its own business, and so is what it reads back.",
        )
        .baseline_does(noted("first").proposes("note", &json!({"text": "first"})))
        .new_does(noted("second").proposes("note", &json!({"text": "second"})))
        .under(rule)
        .is(Unchanged, &[]),
        pair("an-empty-path-is-the-same-as-none", "An empty JSON Pointer leads to all of it.")
            .baseline_does(noted("first"))
            .new_does(noted("second"))
            .under("[[rule]]\ntool = \"note\"\npath = \"\"\nignore = true")
            .is(Unchanged, &[]),
        pair(
            "an-ignored-tool-that-is-called-no-more",
            "That something was noted down at all is a step like any other.",
        )
        .baseline_does(noted("first"))
        .new_does(agent())
        .under(rule)
        .is(Changed, &["tool-call-removed"]),
        pair("an-ignored-tool-that-fails", "What it says is ignored, and not how it ends.")
            .baseline_does(noted("first"))
            .new_does(agent().fails("note", &json!({"text": "second"}), "full"))
            .under(rule)
            .is(Changed, &["tool-error"]),
        pair("an-ignored-action-that-became-risky", "What it is given is ignored, and not what is at stake.")
            .baseline_does(agent().proposes("note", &json!({"text": "first"})).at_risk("low"))
            .new_does(agent().proposes("note", &json!({"text": "second"})).at_risk("medium"))
            .under(rule)
            .is(Regressed, &["risk-rose-without-evidence", "risk-changed"]),
        pair("an-ignored-retrieval", "The documents are the index's business; that they were looked for is told.")
            .baseline_does(agent().retrieves("refunds", &["d1"]))
            .new_does(agent().retrieves("how to refund", &["d2", "d3"]))
            .under("[[rule]]\nevent = \"retrieval\"\nignore = true")
            .is(Unchanged, &[]),
    ]
}

fn normalising() -> Vec<Labelled> {
    let rule = "[[rule]]\npath = \"/**/at\"\nnormalise = \"timestamp\"";
    let at = |at: &str| agent().calls("log", &json!({"at": at}), &json!({"at": at, "ok": true}));
    vec![
        pair(
            "another-point-in-time",
            "Both runs logged the time at which they ran, which differs between any two runs.",
        )
        .baseline_does(at("2026-01-31T12:00:00Z"))
        .new_does(at("2026-02-01 08:30:15.25"))
        .under(rule)
        .is(Unchanged, &[]),
        pair(
            "no-point-in-time-any-more",
            "What stood where a time belongs is no time: the rule does not speak of that.",
        )
        .baseline_does(at("2026-01-31T12:00:00Z"))
        .new_does(at("never"))
        .under(rule)
        .is(Changed, &["tool-args-changed", "tool-result-changed"]),
        pair("a-ticket-in-a-text", "The text differs only in a UUID that was made for the occasion.")
            .baseline_does(agent().says("Ticket 0f8fad5b-d9cb-469f-a165-70867728950e is open."))
            .new_does(agent().says("Ticket 7c9e6679-7425-40de-944b-e07fc1f90ae7 is open."))
            .under("[[rule]]\nevent = \"final_output\"\npath = \"/content\"\nnormalise = \"uuid\"")
            .is(Unchanged, &[]),
        pair("other-words-around-a-ticket", "The UUID may differ, and the words around it may not.")
            .baseline_does(agent().says("Ticket 0f8fad5b-d9cb-469f-a165-70867728950e is open."))
            .new_does(agent().says("Ticket 7c9e6679-7425-40de-944b-e07fc1f90ae7 is closed."))
            .under("[[rule]]\nevent = \"final_output\"\npath = \"/content\"\nnormalise = \"uuid\"")
            .is(Changed, &["output-changed"]),
    ]
}

fn renaming() -> Vec<Labelled> {
    let rule = "[[rule]]\npath = \"/**/draft\"\nnormalise = \"id\"";
    let drafts = |first: &str, second: &str, sent: &str| {
        agent()
            .calls("new_draft", &json!({"to": "Ann"}), &json!({"draft": first}))
            .calls("new_draft", &json!({"to": "Bob"}), &json!({"draft": second}))
            .proposes("send", &json!({"draft": sent}))
    };
    vec![
        pair("ids-renamed-throughout", "Each draft got another id, and wherever the old one stood the new one stands.")
            .baseline_does(drafts("d-1", "d-2", "d-1"))
            .new_does(drafts("d-8", "d-9", "d-8"))
            .under(rule)
            .is(Unchanged, &[]),
        pair("the-wrong-one-of-two-ids", "The mail to Bob would be sent and not the one to Ann, under whatever ids.")
            .baseline_does(drafts("d-1", "d-2", "d-1"))
            .new_does(drafts("d-8", "d-9", "d-9"))
            .under(rule)
            .is(Changed, &["action-params-changed"])
            .also(|row| assert_eq!(row.reasons[0].message, "send: draft \"d-1\" → \"d-9\"")),
        pair("two-ids-become-one", "Two drafts were two things and are now one: that is no renaming.")
            .baseline_does(drafts("d-1", "d-2", "d-1"))
            .new_does(drafts("d-8", "d-8", "d-8"))
            .under(rule)
            .is(Changed, &["tool-result-changed"]),
        pair(
            "an-id-that-both-sides-have",
            "An id that is on both sides is itself: to take another one of them is a change.",
        )
        .baseline_does(agent().proposes("send", &json!({"draft": "d-1"})).proposes("drop", &json!({"draft": "d-2"})))
        .new_does(agent().proposes("send", &json!({"draft": "d-2"})).proposes("drop", &json!({"draft": "d-1"})))
        .under(rule)
        .is(Changed, &["action-params-changed", "action-params-changed"]),
    ]
}

fn numbers_and_defaults() -> Vec<Labelled> {
    let scored = |score: f64| agent().calls("rank", &json!({"score": score}), &json!({})).proposes("pick", &json!({}));
    let near = "[[rule]]\ntool = \"rank\"\npath = \"/args/score\"\ntolerance = 0.05";
    let share = "[[rule]]\ntool = \"rank\"\npath = \"/args/score\"\ntolerance = { relative = 0.1 }";
    let verbose = "[[rule]]\ntool = \"search\"\npath = \"/args/verbose\"\ndefault = false";
    vec![
        pair(
            "a-number-within-its-tolerance",
            "The score differs by less than the project cares for, also as evidence.",
        )
        .baseline_does(scored(0.71).resting_on(&["c1"]))
        .new_does(scored(0.74).resting_on(&["c1"]))
        .under(near)
        .is(Unchanged, &[])
        .aligned([2, 0, 0, 0, 0], 0.0),
        pair("a-number-beyond-its-tolerance", "The score differs by more than the project cares for.")
            .baseline_does(scored(0.71))
            .new_does(scored(0.81))
            .under(near)
            .is(Changed, &["tool-args-changed"]),
        pair(
            "a-rule-behind-another-one",
            "The first rule says that any point in time is as good, and the second does not take that back.",
        )
        .baseline_does(scored(1_767_600_000.0))
        .new_does(scored(1_767_690_000.0))
        .under("[[rule]]\npath = \"/args/score\"\nnormalise = \"timestamp\"\n[[rule]]\npath = \"/args/score\"\ntolerance = 1.0")
        .is(Unchanged, &[]),
        pair("a-share-of-the-number", "Nine in a hundred are within ten in a hundred, however large the number is.")
            .baseline_does(scored(1000.0))
            .new_does(scored(1090.0))
            .under(share)
            .is(Unchanged, &[]),
        pair(
            "an-argument-at-its-default",
            "Leaving the argument out and giving its default asks the tool for the same.",
        )
        .baseline_does(agent().calls("search", &json!({"q": "shoes"}), &json!({})))
        .new_does(agent().calls("search", &json!({"q": "shoes", "verbose": false}), &json!({})))
        .under(verbose)
        .is(Unchanged, &[]),
        pair(
            "an-argument-that-is-not-its-default",
            "The argument was left out and is now given, and not as its default.",
        )
        .baseline_does(agent().calls("search", &json!({"q": "shoes"}), &json!({})))
        .new_does(agent().calls("search", &json!({"q": "shoes", "verbose": true}), &json!({})))
        .under(verbose)
        .is(Changed, &["tool-args-changed"]),
    ]
}

fn arrays() -> Vec<Labelled> {
    let tags = "[[rule]]\npath = \"/*/tags\"\nunordered = true";
    let lines = "[[rule]]\npath = \"/params/lines\"\nkey = \"sku\"";
    let order = |lines: serde_json::Value| agent().proposes("order", &json!({"lines": lines}));
    vec![
        pair("an-array-in-another-order", "The project says that tags have no order, and they are the same tags.")
            .baseline_does(agent().calls("tag", &json!({"tags": ["a", "b", "b"]}), &json!({})))
            .new_does(agent().calls("tag", &json!({"tags": ["b", "a", "b"]}), &json!({})))
            .under(tags)
            .is(Unchanged, &[]),
        pair("an-array-with-another-count", "Without an order it still matters how often an element is there.")
            .baseline_does(agent().calls("tag", &json!({"tags": ["a", "b", "b"]}), &json!({})))
            .new_does(agent().calls("tag", &json!({"tags": ["b", "a", "a"]}), &json!({})))
            .under(tags)
            .is(Changed, &["tool-args-changed"]),
        pair("documents-as-a-set", "The project takes what was found as a set, and the same was found.")
            .baseline_does(agent().retrieves("refunds", &["policy", "faq"]))
            .new_does(agent().retrieves("refunds", &["faq", "policy"]))
            .under("[[rule]]\nevent = \"retrieval\"\npath = \"/doc_ids\"\nunordered = true")
            .is(Unchanged, &[]),
        pair(
            "order-lines-known-by-their-article",
            "The lines stand in another order, and of one article there is one more.",
        )
        .baseline_does(order(json!([{"sku": "A", "n": 1}, {"sku": "B", "n": 2}, {"sku": "C", "n": 3}])))
        .new_does(order(json!([{"sku": "C", "n": 3}, {"sku": "A", "n": 1}, {"sku": "B", "n": 3}])))
        .under(lines)
        .is(Changed, &["action-params-changed"])
        .also(|row| assert_eq!(row.reasons[0].message, "order: lines.2.n 2 → 3")),
        pair(
            "an-order-line-of-another-article",
            "A line of an article that was not there is a line more, whatever stands beside it.",
        )
        .baseline_does(order(json!([{"sku": "A", "n": 1}])))
        .new_does(order(json!([{"sku": "B", "n": 1}])))
        .under(lines)
        .is(Changed, &["action-params-changed"])
        .also(|row| {
            let said = "order: lines.0 removed (was {\"sku\":\"A\",\"n\":1}) and lines.0 added {\"sku\":\"B\",\"n\":1}";
            assert_eq!(row.reasons[0].message, said);
        }),
    ]
}
