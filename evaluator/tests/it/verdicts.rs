//! Every verdict and every reason code, each from the smallest pair that earns it.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{DivergenceKind, GateOutcome, Verdict};
use counterproof_cases::{CaseSpec, Expected, Input, Metadata};
use counterproof_evaluator::Expectations;
use counterproof_store::write::{self, Durability};
use serde_json::{Map, Value, json};

use crate::kit::{CASE, Pair, answer, answer_with, failure};

/// One thing changed in an answer or in its events.
type Change = fn(&mut Value);

fn action(value: &mut Value) -> &mut Value {
    &mut value["proposed_actions"][0]
}

#[test]
fn a_run_compared_with_itself_is_unchanged() {
    let row = Pair::with_answers(&answer(), &answer()).is(Verdict::Unchanged, &[]);
    assert_eq!(row.first_divergence, None);
}

#[test]
fn times_latencies_attempts_ids_and_annotations_are_not_compared() {
    let new = answer_with(|answer| {
        let text = answer.to_string().replace("\"c1\"", "\"call_9f\"").replace("\"a1\"", "\"x7\"");
        *answer = serde_json::from_str(&text).unwrap();
        for (index, event) in answer["events"].as_array_mut().unwrap().iter_mut().enumerate() {
            event["ts"] = json!(900_000 + index);
        }
        answer["events"][0]["annotations"] = json!({"tags": ["money"]});
        answer["events"][1]["latency_ms"] = json!(5000.5);
        answer["attempts"] = json!([]);
        answer["final_output"]["output_hash"] = json!("abc");
    });
    Pair::with_answers(&answer(), &new).is(Verdict::Unchanged, &[]);
}

#[test]
fn key_order_number_form_and_tag_order_do_not_matter() {
    let new = answer_with(|answer| {
        action(answer)["params"] = json!({"amount": 50.0, "order_id": "W12"});
        action(answer)["risk_tags"] = json!(["write", "money"]);
    });
    Pair::with_answers(&answer(), &new).is(Verdict::Unchanged, &[]);
}

#[test]
fn another_wording_is_a_changed_output() {
    let new = answer_with(|answer| {
        answer["final_output"]["content"] = json!("Your refund of 50 is coming.");
        answer["events"][3]["content"] = json!("Your refund of 50 is coming.");
    });
    let row = Pair::with_answers(&answer(), &new).is(Verdict::Changed, &["output-changed"]);
    assert_eq!(row.first_divergence.unwrap().kind, DivergenceKind::FinalOutput);
}

#[test]
fn another_type_of_output_has_its_own_reason() {
    let new = answer_with(|answer| answer["final_output"] = json!({"content_type": "json", "content": {"refund": 50}}));
    Pair::with_answers(&answer(), &new).is(Verdict::Changed, &["output-type-changed"]);
}

#[test]
fn changed_params_are_reported_with_both_values() {
    let new = answer_with(|answer| action(answer)["params"]["amount"] = json!(500));
    let row = Pair::with_answers(&answer(), &new)
        .titled("My money, please")
        .is(Verdict::Changed, &["ungrounded-argument", "action-params-changed"]);
    assert_eq!(row.reasons[1].message, "refund_order: amount 50 → 500");
    assert_eq!(row.reasons[1].pointers[1].pointer, "/proposed_actions/0");
    assert_eq!(row.first_divergence.unwrap().kind, DivergenceKind::ProposedAction);
}

#[test]
fn a_risk_that_rises_on_evidence_is_a_change() {
    let new = answer_with(|answer| action(answer)["risk_level"] = json!("high"));
    Pair::with_answers(&answer(), &new).is(Verdict::Changed, &["risk-changed"]);
}

#[test]
fn a_risk_that_rises_without_evidence_is_a_regression() {
    let strip = |answer: &mut Value| action(answer)["evidence_refs"] = json!([]);
    let new = answer_with(|answer| {
        strip(answer);
        action(answer)["risk_level"] = json!("high");
    });
    Pair::with_answers(&answer_with(strip), &new)
        .is(Verdict::Regressed, &["risk-rose-without-evidence", "risk-changed"]);
}

#[test]
fn an_unknown_risk_is_neither_higher_nor_lower() {
    let level = |level: &'static str| {
        answer_with(|answer| {
            action(answer)["evidence_refs"] = json!([]);
            action(answer)["risk_level"] = json!(level);
        })
    };
    Pair::with_answers(&level("unknown"), &level("high")).is(Verdict::Changed, &["risk-changed"]);
}

#[test]
fn a_new_risky_action_is_a_regression_only_without_evidence() {
    let add = |evidence: Value| {
        answer_with(|answer| {
            let mut extra = answer["proposed_actions"][0].clone();
            extra["action_id"] = json!("a2");
            extra["tool_name"] = json!("delete_account");
            extra["risk_level"] = json!("high");
            extra["evidence_refs"] = evidence;
            answer["proposed_actions"].as_array_mut().unwrap().push(extra);
        })
    };
    Pair::with_answers(&answer(), &add(json!([])))
        .is(Verdict::Regressed, &["risk-rose-without-evidence", "action-added"]);
    let kept = add(json!([{"kind": "tool_result", "call_id": "c1"}]));
    Pair::with_answers(&answer(), &kept).is(Verdict::Changed, &["action-added"]);
    Pair::with_answers(&kept, &answer()).is(Verdict::Changed, &["action-removed"]);
}

#[test]
fn evidence_that_is_gone_is_a_regression() {
    let new = answer_with(|answer| action(answer)["evidence_refs"] = json!([]));
    let row = Pair::with_answers(&answer(), &new).is(Verdict::Regressed, &["evidence-lost", "evidence-changed"]);
    assert_eq!(row.reasons[0].pointers[1].pointer, "/proposed_actions/0/evidence_refs");
}

#[test]
fn unresolved_evidence_is_a_regression_and_not_invalid() {
    let new = answer_with(|answer| action(answer)["evidence_refs"][0]["call_id"] = json!("c404"));
    Pair::with_answers(&answer(), &new).is(Verdict::Regressed, &["evidence-lost", "evidence-changed"]);
    Pair::with_answers(&new, &new).is(Verdict::Unchanged, &[]);
}

#[test]
fn other_evidence_for_the_same_action_is_shown() {
    let new = answer_with(|answer| {
        action(answer)["evidence_refs"].as_array_mut().unwrap().remove(1);
    });
    Pair::with_answers(&answer(), &new).is(Verdict::Changed, &["evidence-changed"]);
}

#[test]
fn every_kind_of_step_that_differs_has_its_reason() {
    let changed = |change: fn(&mut Value)| answer_with(|answer| change(&mut answer["events"]));
    let call_twice = |events: &mut Value| {
        let list = events.as_array_mut().unwrap();
        let call = json!({"type": "tool_call", "ts": 1, "call_id": "c2", "tool": "get_user", "args": {}});
        let result = json!({"type": "tool_result", "ts": 2, "call_id": "c2", "status": "ok", "latency_ms": 1});
        list.splice(0..0, [call, result]);
    };
    let cases: [(&str, Change, DivergenceKind); 6] = [
        ("tool-args-changed", |events| events[0]["args"]["order_id"] = json!("W13"), DivergenceKind::ToolArgs),
        ("tool-call-added", call_twice, DivergenceKind::ToolSequence),
        ("tool-result-changed", |events| events[1]["payload_summary"]["total"] = json!(51), DivergenceKind::ToolResult),
        ("tool-error", |events| events[1]["status"] = json!("error"), DivergenceKind::ToolResult),
        ("retrieval-changed", |events| events[2]["query"] = json!("returns policy"), DivergenceKind::Retrieval),
        (
            "event-changed",
            |events| events[2] = json!({"type": "handoff", "ts": 1, "to": "human"}),
            DivergenceKind::Retrieval,
        ),
    ];
    for (code, change, kind) in cases {
        // The arguments identify a call and so its evidence; only what the row itself says is looked at here.
        let row = Pair::with_answers(&answer(), &changed(change)).row();
        assert!(row.reasons.iter().any(|reason| reason.code == code), "{code}: {:#?}", row.reasons);
        assert_eq!(row.first_divergence.unwrap().kind, kind, "{code}");
    }
    let row = Pair::with_answers(&changed(call_twice), &answer()).is(Verdict::Changed, &["tool-call-removed"]);
    assert_eq!(row.first_divergence.unwrap().kind, DivergenceKind::ToolSequence);
    Pair::with_answers(&changed(|events| events[1]["status"] = json!("error")), &answer())
        .is(Verdict::Changed, &["tool-error-gone"]);
}

#[test]
fn a_payload_compares_equal_inline_and_as_an_asset() {
    let new = answer_with(|answer| {
        let result = answer["events"][1].as_object_mut().unwrap();
        result.remove("payload_summary");
        result.insert("payload_asset_href".into(), json!("assets/payload.json"));
    });
    Pair::with_answers(&answer(), &new)
        .with_asset(Side::New, "payload.json", b"{\"total\": 50.0}")
        .is(Verdict::Unchanged, &[]);
    let changed = Pair::with_answers(&answer(), &new).with_asset(Side::New, "payload.json", b"{\"total\": 51}");
    // The action's amount is still 50, which the user may have said.
    changed.is(Verdict::Changed, &["tool-result-changed"]);
}

#[test]
fn unknown_events_and_unknown_fields_are_no_error() {
    let new = answer_with(|answer| {
        answer["events"].as_array_mut().unwrap().insert(0, json!({"type": "thought", "ts": 1, "text": "hm"}));
        answer["future"] = json!(true);
    });
    Pair::with_answers(&answer(), &new).is(Verdict::Changed, &["event-changed"]);
    Pair::with_answers(&new, &new).is(Verdict::Unchanged, &[]);
}

#[test]
fn runner_failures_have_verdicts_of_their_own() {
    let row = Pair::with_answers(&answer(), &failure()).is(Verdict::Broken, &["runner-failure"]);
    assert_eq!(row.reasons[0].message, "runner error on new: http_error 500, after 3 attempts");
    assert_eq!(row.first_divergence.unwrap().kind, DivergenceKind::RunnerError);
    Pair::with_answers(&failure(), &answer()).is(Verdict::Recovered, &["runner-failure-gone"]);
    Pair::with_answers(&failure(), &failure()).is(Verdict::StillBroken, &["runner-failure-on-both-sides"]);
}

#[test]
fn a_case_on_one_side_only_fails_the_gate() {
    let missing = Pair::empty().with(Side::Baseline, CASE, &answer());
    missing.is(Verdict::Missing, &["only-in-baseline"]);
    let gate = missing.evaluation().gate;
    assert_eq!(gate.outcome, GateOutcome::Failed);
    Pair::empty().with(Side::New, CASE, &answer()).is(Verdict::Added, &["only-in-new"]);
}

/// A baseline of the runner without the case, which new has.
fn added(new: &Value) -> Pair {
    let digest = "0".repeat(64);
    Pair::empty()
        .with(Side::Baseline, "old", &answer())
        .with(Side::New, "old", &answer())
        .with_field(Side::Baseline, "case_digests", json!({"old": digest}))
        .with(Side::New, CASE, new)
}

#[test]
fn a_case_that_was_added_after_the_baseline_fails_the_gate_only_if_it_fails() {
    let found = |pair: Pair| {
        let evaluation = pair.evaluation();
        let row = evaluation.cases.iter().find(|row| row.case_id.as_str() == CASE).unwrap();
        assert_eq!(row.verdict, Verdict::Added);
        let codes: Vec<_> = row.reasons.iter().map(|reason| reason.code.clone()).collect();
        (evaluation.gate.outcome, codes.join(" "))
    };
    let says = |text: &str| json!({"must_include": [text]});
    let text = answer()["final_output"]["content"].as_str().unwrap().to_owned();
    assert_eq!(found(added(&answer()).expecting(&says(&text))), (GateOutcome::Passed, "new-case".to_owned()));
    let unmet = found(added(&answer()).expecting(&says("nowhere")));
    assert_eq!(unmet, (GateOutcome::Failed, "expectation-failed new-case".to_owned()));
    let unanswered = found(added(&failure()).expecting(&says(&text)));
    assert_eq!(unanswered, (GateOutcome::Failed, "runner-failure new-case".to_owned()));
    // A baseline of a selection does not show that the case is new.
    let selection = added(&answer()).with_field(Side::Baseline, "selection", json!(true));
    assert_eq!(found(selection), (GateOutcome::Failed, "only-in-new".to_owned()));
}

#[test]
fn an_artifact_that_breaks_the_contract_makes_the_case_invalid_for_any_other_side() {
    for bytes in [&b""[..], b"{", b"\xff\xfe", b"null", b"[1]", b"{\"schema_version\": \"case.v1\"}"] {
        let broken = Pair::empty().with_bytes(Side::Baseline, CASE, bytes).with(Side::New, CASE, &answer());
        let row = broken.row();
        assert_eq!(row.verdict, Verdict::Invalid, "{bytes:?}");
        assert!(!row.reasons.is_empty());
    }
    let misnamed = serde_json::to_vec(&answer_with(|answer| {
        answer["case_id"] = json!("other");
        answer["version"] = json!("new");
    }));
    let pair = Pair::empty().with(Side::Baseline, CASE, &failure()).with_bytes(Side::New, CASE, &misnamed.unwrap());
    assert_eq!(pair.row().verdict, Verdict::Invalid);
}

#[test]
fn one_broken_artifact_does_not_change_other_verdicts() {
    let pair = Pair::with_answers(&answer(), &answer()).with_bytes(Side::New, "torn", b"{\"case_id\": ").with(
        Side::Baseline,
        "torn",
        &answer(),
    );
    let evaluation = pair.evaluation();
    let verdicts: Vec<_> = evaluation.cases.iter().map(|case| (case.case_id.as_str(), case.verdict)).collect();
    assert_eq!(verdicts, [(CASE, Verdict::Unchanged), ("torn", Verdict::Invalid)]);
    assert_eq!(evaluation.counts[&Verdict::Invalid], 1);
    assert_eq!(evaluation.counts.len(), Verdict::ALL.len());
}

#[test]
fn an_unrelated_file_in_a_run_folder_is_no_case() {
    let pair = Pair::with_answers(&answer(), &answer());
    write::write(&pair.folder(Side::New).join("notes.json"), b"{\"mine\": true}", Durability::Cached).unwrap();
    pair.is(Verdict::Unchanged, &[]);
    // What claims to be an artifact, or cannot be read at all, is looked at.
    write::write(&pair.folder(Side::New).join("torn.json"), b"{\"case_id\": ", Durability::Cached).unwrap();
    assert_eq!(pair.evaluation().counts[&Verdict::Invalid], 1);
}

#[test]
fn each_expectation_turns_a_verdict_both_ways() {
    let strip_evidence = |answer: &mut Value| {
        answer["proposed_actions"][0]["evidence_refs"] = json!([]);
        answer["proposed_actions"][0]["risk_level"] = json!("unknown");
    };
    let cases: [(Value, Change); 8] = [
        (json!({"action_required": ["refund"]}), |answer| answer["proposed_actions"][0]["action_type"] = json!("note")),
        (json!({"tool_required": ["get_order"]}), |answer| answer["events"][0]["tool"] = json!("find_order")),
        (json!({"tool_sequence": ["get_order"]}), |answer| {
            let call = json!({"type": "tool_call", "ts": 1, "call_id": "c0", "tool": "get_user", "args": {}});
            answer["events"].as_array_mut().unwrap().insert(0, call);
        }),
        (json!({"must_include": ["REFUND of 50"]}), |answer| answer["final_output"]["content"] = json!("No.")),
        (json!({"must_not_include": ["sorry"]}), |answer| {
            answer["final_output"]["content"] = json!("Sorry, refund of 50.");
        }),
        (json!({"retrieval_required": {"doc_ids": ["policy_v1"]}}), |answer| {
            answer["events"][2]["doc_ids"] = json!(["policy_v2"]);
        }),
        (json!({"json_schema": {"type": "string", "minLength": 5}}), |answer| {
            answer["final_output"]["content"] = json!("No.");
        }),
        (json!({"evidence_required_for_actions": true}), strip_evidence),
    ];
    for (expected, change) in cases {
        let code = expected.as_object().unwrap().keys().next().unwrap().clone();
        let worse = Pair::with_answers(&answer(), &answer_with(change)).expecting(&expected).row();
        assert_eq!(worse.verdict, Verdict::Regressed, "{code}: {:#?}", worse.reasons);
        assert_eq!(worse.reasons[0].code, "expectation-failed");
        assert!(worse.reasons[0].message.starts_with(&code), "{}", worse.reasons[0].message);
        assert_eq!(worse.title.as_deref(), Some("A refund"));

        let better = Pair::with_answers(&answer_with(change), &answer()).expecting(&expected).row();
        assert_eq!(better.verdict, Verdict::Improved, "{code}: {:#?}", better.reasons);
        let same = Pair::with_answers(&answer_with(change), &answer_with(change)).expecting(&expected).row();
        assert_eq!(same.verdict, Verdict::Unchanged, "{code}: failing on both sides is no change");
        assert!(!same.expectations[0].new.as_ref().unwrap().is_met());
    }
}

#[test]
fn an_expectation_without_an_answer_is_not_judged() {
    let row = Pair::with_answers(&answer(), &failure()).expecting(&json!({"must_include": ["refund"]})).row();
    assert_eq!(row.verdict, Verdict::Broken);
    assert!(row.expectations[0].baseline.as_ref().unwrap().is_met());
    assert_eq!(row.expectations[0].new, None);
}

#[test]
fn an_invalid_schema_is_reported_before_the_comparison() {
    let spec = CaseSpec {
        id: CASE.parse().unwrap(),
        title: None,
        input: Input { user: "My money".into(), context: None, extra: Map::new() },
        turns: Vec::new(),
        tool_results: Map::new(),
        expected: Expected { json_schema: Some(json!({"type": "nonsense"})), ..Expected::default() },
        metadata: Metadata::default(),
        suite: None,
        extra: Map::new(),
    };
    let error = Expectations::compile(&[spec]).unwrap_err();
    assert!(error.to_string().starts_with("case `refund_001`: `expected.json_schema`"), "{error}");
}
