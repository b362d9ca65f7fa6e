//! What evidence and links lead to, where the easy answer would be a wrong verdict.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::Verdict;
use counterproof_store::write::{self, Durability};
use serde_json::{Value, json};

use crate::kit::{Pair, answer, answer_with};

/// An answer whose action rests on an asset.
fn resting_on(id: &str) -> Value {
    answer_with(|answer| answer["proposed_actions"][0]["evidence_refs"] = json!([{"kind": "asset", "id": id}]))
}

fn codes(pair: &Pair) -> (Verdict, Vec<String>) {
    let row = pair.row();
    (row.verdict, row.reasons.into_iter().map(|reason| reason.code).collect())
}

#[test]
fn an_asset_that_is_listed_but_gone_is_lost_evidence() {
    let both = || {
        let pair = Pair::with_answers(&resting_on("policy.txt"), &resting_on("policy.txt"));
        pair.with_asset(Side::Baseline, "policy.txt", b"p").with_asset(Side::New, "policy.txt", b"p")
    };
    both().is(Verdict::Unchanged, &[]);
    let gone = both();
    std::fs::remove_file(gone.folder(Side::New).join("assets/policy.txt")).unwrap();
    gone.is(Verdict::Regressed, &["evidence-lost", "evidence-changed"]);
}

#[test]
fn an_asset_that_is_not_the_one_that_was_recorded_is_lost_evidence() {
    let pair = Pair::with_answers(&resting_on("policy.txt"), &resting_on("policy.txt"))
        .with_asset(Side::Baseline, "policy.txt", b"refunds in full")
        .with_asset(Side::New, "policy.txt", b"refunds in full");
    pair.request();
    // Of the same size, so that only the digest tells.
    pair.is(Verdict::Unchanged, &[]);
    write::write(&pair.folder(Side::New).join("assets/policy.txt"), b"refunds in part", Durability::Cached).unwrap();
    let row = pair.is(Verdict::Regressed, &["evidence-lost", "evidence-changed"]);
    assert_eq!(row.cause.unwrap().code, "evidence-lost");
}

#[test]
fn an_asset_needs_no_manifest() {
    let pair = Pair::with_answers(&resting_on("assets/policy.txt"), &resting_on("assets/policy.txt"));
    for side in Side::BOTH {
        let assets = pair.folder(side).join("assets");
        write::create_folder(&assets).unwrap();
        write::write(&assets.join("policy.txt"), b"p", Durability::Cached).unwrap();
    }
    pair.is(Verdict::Unchanged, &[]);
}

#[test]
fn a_manifest_that_cannot_be_read_makes_what_needs_it_invalid() {
    let pair = Pair::with_answers(&resting_on("policy.txt"), &resting_on("policy.txt"));
    for side in Side::BOTH {
        let assets = pair.folder(side).join("assets");
        write::create_folder(&assets).unwrap();
        write::write(&assets.join("manifest.json"), b"{", Durability::Cached).unwrap();
    }
    assert_eq!(codes(&pair).0, Verdict::Invalid);
    let other = Pair::with_answers(&answer(), &answer());
    write::create_folder(&other.folder(Side::New).join("assets")).unwrap();
    write::write(&other.folder(Side::New).join("assets/manifest.json"), b"{", Durability::Cached).unwrap();
    other.is(Verdict::Unchanged, &[]);
}

#[test]
fn a_ref_that_no_longer_resolves_is_lost_even_if_others_resolve() {
    let refs = |refs: Value| answer_with(|answer| answer["proposed_actions"][0]["evidence_refs"] = refs);
    let old = refs(json!([{"kind": "retrieval_doc", "doc_id": "policy_v1"}, {"kind": "tool_result", "call_id": "zz"}]));
    let new = answer_with(|answer| {
        answer["events"][2]["doc_ids"] = json!(["policy_v2"]);
        answer["proposed_actions"][0]["evidence_refs"] =
            json!([{"kind": "retrieval_doc", "doc_id": "policy_v1"}, {"kind": "tool_result", "call_id": "c1"}]);
    });
    let (verdict, codes) = codes(&Pair::with_answers(&old, &new));
    assert_eq!((verdict, codes[0].as_str()), (Verdict::Regressed, "evidence-lost"));
}

#[test]
fn the_order_of_actions_does_not_decide_whether_a_risk_rose() {
    let with = |levels: &[&str]| {
        answer_with(|answer| {
            let action = answer["proposed_actions"][0].clone();
            let actions = levels.iter().enumerate().map(|(index, level)| {
                let mut action = action.clone();
                action["action_id"] = json!(format!("a{index}"));
                action["tool_name"] = json!(format!("tool_{index}"));
                action["risk_level"] = json!(level);
                action["evidence_refs"] = json!([]);
                action
            });
            answer["proposed_actions"] = actions.collect();
        })
    };
    for before in [["unknown", "low"], ["low", "unknown"]] {
        let (verdict, _) = codes(&Pair::with_answers(&with(&before), &with(&[before[0], before[1], "high"])));
        assert_eq!(verdict, Verdict::Regressed, "{before:?}");
    }
}

#[test]
fn changed_snippets_are_a_changed_retrieval() {
    let hashes = |hash: &str| answer_with(|answer| answer["events"][2]["snippets_hashes"] = json!([hash]));
    assert_eq!(codes(&Pair::with_answers(&hashes("a"), &hashes("b"))).1, ["retrieval-changed"]);
    let linked = answer_with(|answer| answer["events"][2]["snippets_asset_href"] = json!("assets/s.json"));
    let pair = Pair::with_answers(&linked, &linked)
        .with_asset(Side::Baseline, "s.json", b"[\"refunded in part\"]")
        .with_asset(Side::New, "s.json", b"[\"refunded in whole\"]");
    assert_eq!(codes(&pair).1, ["retrieval-changed"]);
    let inline = answer_with(|answer| answer["events"][2]["snippets"] = json!(["refunded in part"]));
    let pair = Pair::with_answers(&inline, &linked).with_asset(Side::New, "s.json", b"[\"refunded in part\"]");
    assert_eq!(codes(&pair).1, Vec::<String>::new(), "inline and stored snippets are equal");
}

#[test]
fn an_unknown_field_is_compared() {
    let event = answer_with(|answer| answer["events"][1]["payload"] = json!({"items": 2}));
    assert_eq!(codes(&Pair::with_answers(&answer(), &event)).1, ["tool-result-changed"]);
    let action = answer_with(|answer| answer["proposed_actions"][0]["approved_by"] = json!("nobody"));
    assert_eq!(codes(&Pair::with_answers(&answer(), &action)).1, ["action-changed"]);
}

#[test]
fn payloads_too_large_to_parse_are_still_compared() {
    let linked = answer_with(|answer| answer["events"][1]["payload_asset_href"] = json!("assets/p.json"));
    let payload = |byte: u8| vec![byte; 9 * 1024 * 1024];
    let pair = |new: u8| {
        Pair::with_answers(&linked, &linked).with_asset(Side::Baseline, "p.json", &payload(b'1')).with_asset(
            Side::New,
            "p.json",
            &payload(new),
        )
    };
    assert_eq!(codes(&pair(b'2')).1, ["tool-result-changed"]);
    pair(b'1').is(Verdict::Unchanged, &[]);
}
