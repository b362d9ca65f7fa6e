//! Faults in recorded answers: what each kind changes is seen by an expectation that names it, and survives without one.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use camino::Utf8Path;
use counterproof_artifact::Side;
use counterproof_evaluator::{ComparedRun, Expectations, Fault, FaultReport, Request, SideRuns, survey_faults};
use counterproof_store::RunReader;
use serde_json::{Value, json};

use crate::kit::{Pair, answer_of, step};

/// An agent that looks a customer and an order up, and refunds by a call and an action that rests on both.
fn refund() -> Value {
    let [get_customer, customer] =
        step("c1", "get_customer", &json!({"email": "ann@shop.example"}), &json!({"customer_id": "C-7"}));
    let [get_order, order] = step("c2", "get_order", &json!({"order_id": "A-1001"}), &json!({"total": 50}));
    let params = json!({"order_id": "A-1001", "amount": 50, "email": "ann@shop.example"});
    let [mut refund_order, refunded] = step("c3", "refund_order", &params, &json!({"refund": "done"}));
    refund_order["action_id"] = json!("a1");
    let text = "Your refund of 50 EUR for the order A-1001 is on its way. Thank you for your patience.";
    answer_of(&json!({
        "proposed_actions": [{
            "action_id": "a1", "action_type": "refund", "tool_name": "refund_order", "params": params,
            "risk_level": "low", "risk_tags": [], "evidence_refs": [{"kind": "tool_result", "call_id": "c2"}],
        }],
        "events": [get_customer, customer, get_order, order, refund_order, refunded],
        "final_output": {"content_type": "text", "content": text},
    }))
}

/// A baseline of these answers, by an agent that always does the same.
fn baseline(answers: &[(&str, Value)]) -> (Pair, SideRuns) {
    let mut pair = Pair::empty();
    for (id, answer) in answers {
        pair = pair.with(Side::Baseline, id, answer);
    }
    let run = pair.finished(Side::Baseline);
    (pair, run.into())
}

fn survey(runs: SideRuns, expectations: Expectations) -> Vec<FaultReport> {
    let request = Request { is_deterministic: true, expectations, ..Request::new(runs.clone(), runs) };
    survey_faults(request, 20).unwrap()
}

fn report(reports: &[FaultReport], fault: Fault) -> &FaultReport {
    reports.iter().find(|report| report.fault == fault).unwrap()
}

/// What the cases file must say of a case so that the draft is an expectation of it.
fn expecting(report: &FaultReport) -> Expectations {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
    let cases: Vec<Value> = report
        .draft
        .iter()
        .map(|draft| {
            let mut case = serde_json::to_value(draft).unwrap();
            case["input"] = json!({"user": "My money, please"});
            case
        })
        .collect();
    counterproof_store::write::write_json(&path, &cases, counterproof_store::write::Durability::Cached).unwrap();
    Expectations::compile(&counterproof_cases::load(&path).unwrap().cases).unwrap()
}

#[test]
fn every_kind_is_killed_by_the_gate_or_by_the_expectation_that_is_drafted_for_it() {
    let (_pair, runs) = baseline(&[("refund", refund())]);
    let reports = survey(runs.clone(), Expectations::default());
    assert_eq!(reports.len(), 12);
    for found in &reports {
        assert_eq!((found.mutants, found.killed + found.survived.len()), (1, 1), "{found:?}");
        if found.killed == 0 {
            assert_eq!(found.draft.len(), 1, "no draft: {found:?}");
            let with_draft = survey(runs.clone(), expecting(found));
            assert_eq!(report(&with_draft, found.fault).killed, 1, "{found:?}");
        }
    }
}

#[test]
fn what_an_answer_does_not_have_cannot_be_changed() {
    let talk = answer_of(&json!({"final_output": {"content_type": "text", "content": "We are open."}}));
    let object = answer_of(&json!({"final_output": {"content_type": "json", "content": {"total": 50, "year": 2025}}}));
    let (_pair, runs) = baseline(&[("talk", talk), ("object", object)]);
    let reports = survey(runs.clone(), Expectations::default());
    let mutants: Vec<_> = reports.iter().map(|report| (report.fault.as_str(), report.mutants)).collect();
    assert_eq!(
        mutants,
        [
            ("drop", 0),
            ("repeat", 0),
            ("reorder", 0),
            ("id", 0),
            ("amount", 1),
            ("recipient", 0),
            ("evidence", 0),
            ("refusal", 2),
            ("leak", 2),
            ("language", 1),
            ("cut", 0),
            ("quota", 2),
        ]
    );
    // The gate of an agent that varies does not find the amount.
    let reports = survey_faults(Request::new(runs.clone(), runs), 20).unwrap();
    let drafts: Vec<_> =
        report(&reports, Fault::Amount).draft.iter().map(|draft| &draft.expected.expect[0].expr).collect();
    assert_eq!(drafts, ["final_output.content.total == 50"]);
}

#[test]
fn a_draft_names_the_value_that_the_fault_changed() {
    let (_pair, runs) = baseline(&[("refund", refund())]);
    // Without the declaration, only a hard expectation fails the gate over one run a side.
    let reports = survey_faults(Request::new(runs.clone(), runs), 20).unwrap();
    let draft = |fault| {
        let draft = &report(&reports, fault).draft[0].expected.expect[0];
        (draft.must, draft.expr.as_str())
    };
    assert_eq!(
        draft(Fault::Amount),
        (true, "proposed_actions.exists(a, a.tool_name == 'refund_order' && a.params.amount == 50)")
    );
    assert_eq!(
        draft(Fault::Recipient),
        (true, "proposed_actions.exists(a, a.tool_name == 'refund_order' && a.params.email == 'ann@shop.example')")
    );
    assert_eq!(
        draft(Fault::Reorder),
        (
            true,
            "events.filter(e, e.type == 'tool_call' && e.tool in ['get_order', 'refund_order'])[0].tool == 'get_order'"
        )
    );
}

#[test]
fn a_fault_is_in_all_runs_and_a_case_without_it_in_one_of_them_is_left_out() {
    let mut pair = Pair::empty();
    pair = pair.with(Side::Baseline, "refund", &refund()).with(Side::New, "refund", &refund());
    let runs = [Side::Baseline, Side::New].map(|side| pair.finished(side));
    let runs = SideRuns::new(runs.to_vec()).unwrap();
    let reports = survey_faults(Request::new(runs.clone(), runs), 20).unwrap();
    assert!(reports.iter().all(|report| report.mutants == 1), "{reports:?}");
    let talk = answer_of(&json!({"final_output": {"content_type": "text", "content": "I called it off."}}));
    let pair = Pair::empty().with(Side::Baseline, "refund", &refund()).with(Side::New, "refund", &talk);
    let runs = [Side::Baseline, Side::New].map(|side| pair.finished(side));
    let runs = SideRuns::new(runs.to_vec()).unwrap();
    let reports = survey_faults(Request::new(runs.clone(), runs), 20).unwrap();
    assert_eq!((report(&reports, Fault::Drop).mutants, report(&reports, Fault::Leak).mutants), (0, 1));
}

#[test]
fn the_number_of_changed_cases_has_a_limit() {
    let ids: Vec<String> = (0..5).map(|number| format!("case_{number}")).collect();
    let answers: Vec<_> = ids.iter().map(|id| (id.as_str(), refund())).collect();
    let (_pair, runs) = baseline(&answers);
    let request = Request { is_deterministic: true, ..Request::new(runs.clone(), runs) };
    let reports = survey_faults(request, 2).unwrap();
    assert!(reports.iter().all(|report| report.mutants == 2), "{reports:?}");
}

#[test]
fn a_rule_that_the_original_violates_too_kills_nothing() {
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs");
    let open = || ComparedRun::new(RunReader::open(&folder.join("runs/baseline/sample-baseline")).unwrap());
    let cases = counterproof_cases::load(&folder.join("cases.json")).unwrap().cases;
    let request = || Request {
        cases: &cases,
        expectations: Expectations::compile(&cases).unwrap(),
        ..Request::new(open().into(), open().into())
    };
    let killed = |request| survey_faults(request, 20).unwrap().iter().map(|report| report.killed).collect::<Vec<_>>();
    let by_default = killed(request());
    // The sample has a case that the baseline cannot run.
    let strict =
        request().limits.with(counterproof_evaluator::Measure::StillBroken, counterproof_evaluator::Limit::Count(0));
    assert_eq!(killed(Request { limits: strict, ..request() }), by_default);
    assert!(by_default.iter().sum::<usize>() > 20, "{by_default:?}");
}
