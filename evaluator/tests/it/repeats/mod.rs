//! Several runs a side: what is noise, what is not, and what counts say.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use camino::Utf8Path;
use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{CaseEvaluation, DifferingPairs, Evaluation, NoiseBasis, Tier, Verdict};
use counterproof_evaluator::{
    Expectations, GateRules, Request, Rules, SideRuns, SignalSettings, Thresholds, evaluation_text,
};
use counterproof_store::RunWriter;
use counterproof_store::write::{self, Durability};
use serde_json::{Value, json};

use crate::kit::{self, CASE, answer, answer_of, failure, finished};

mod lost;
mod never_in_baseline;
mod noise_of_steps;
mod outages;
mod signals;
mod suites;

/// Each run is a list of cases with their artifacts; a case without one is selected and has no file.
pub(crate) type RunOf = Vec<(String, Option<Value>)>;

pub(crate) fn case(id: &str, artifact: impl Into<Option<Value>>) -> (String, Option<Value>) {
    (id.to_owned(), artifact.into())
}

/// Compares runs of the one case of the kit.
fn of_one(baseline: &[Value], new: &[Value], expected: &Value) -> CaseEvaluation {
    let run = |artifact: &Value| vec![case(CASE, artifact.clone())];
    let mut evaluation =
        of_runs(&baseline.iter().map(run).collect::<Vec<_>>(), &new.iter().map(run).collect::<Vec<_>>(), expected);
    assert_eq!(evaluation.cases.len(), 1);
    evaluation.cases.remove(0)
}

/// Compares runs; the same is expected of every case.
pub(crate) fn of_runs(baseline: &[RunOf], new: &[RunOf], expected: &Value) -> Evaluation {
    under(Rules::default(), baseline, new, expected)
}

/// The same by rules of comparison.
fn under(rules: Rules, baseline: &[RunOf], new: &[RunOf], expected: &Value) -> Evaluation {
    compared(rules, GateRules::default(), baseline, new, expected)
}

/// The same with limits of the gate.
fn of_runs_within(limits: &GateRules, baseline: &[RunOf], new: &[RunOf], expected: &Value) -> Evaluation {
    compared(Rules::default(), limits.clone(), baseline, new, expected)
}

fn compared(rules: Rules, limits: GateRules, baseline: &[RunOf], new: &[RunOf], expected: &Value) -> Evaluation {
    let folder = tempfile::tempdir().unwrap();
    let out = Utf8Path::from_path(folder.path()).unwrap();
    let mut ids: Vec<&str> = baseline.iter().chain(new).flatten().map(|(id, _)| id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let cases = ids.iter().map(|id| {
        let mut case = json!({"id": id, "title": id, "input": {"user": "Hello"}, "expected": expected});
        // `refunds-7` is a case of the suite `refunds`.
        if let Some((suite, _)) = id.split_once('-') {
            case["suite"] = json!(suite);
        }
        case
    });
    let path = out.join("cases.json");
    write::write_json(&path, &cases.collect::<Vec<_>>(), Durability::Cached).unwrap();
    let cases = counterproof_cases::load(&path).unwrap().cases;

    let side = |side: Side, runs: &[RunOf]| {
        let open = |(number, cases): (usize, &RunOf)| {
            let writer = RunWriter::create(out, side, &format!("run-{number}").parse().unwrap()).unwrap();
            for (id, artifact) in cases {
                let Some(mut artifact) = artifact.clone() else { continue };
                artifact["case_id"] = json!(id);
                artifact["version"] = json!(side);
                let path = writer.folder().join(format!("{id}.json"));
                write::write_json(&path, &artifact, Durability::Cached).unwrap();
            }
            finished(&writer, &cases.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>())
        };
        SideRuns::new(runs.iter().enumerate().map(open).collect()).unwrap()
    };
    let request = Request {
        baseline: side(Side::Baseline, baseline),
        new: side(Side::New, new),
        cases: &cases,
        expectations: Expectations::compile(&cases).unwrap(),
        rules,
        limits,
        thresholds: Thresholds::default(),
        is_deterministic: false,
        signals: SignalSettings::default(),
        is_alone: false,
    };
    crate::kit::compare(&request)
}

fn saying(text: &str) -> Value {
    answer_of(&json!({"final_output": {"content_type": "text", "content": text}}))
}

fn codes(row: &CaseEvaluation) -> Vec<&str> {
    row.reasons.iter().map(|reason| reason.code.as_str()).collect()
}

/// Nothing is expected.
fn nothing() -> Value {
    json!({})
}

#[test]
fn a_difference_that_baseline_has_with_itself_is_noise_with_its_counts() {
    let row = of_one(&[saying("Hello."), saying("Hi.")], &[saying("Good day.")], &nothing());
    assert_eq!((row.verdict, codes(&row)), (Verdict::Noisy, vec!["noise", "output-changed"]), "{row:#?}");
    let place = &row.repeats.unwrap().places[0];
    assert_eq!((place.place.as_str(), place.noise, place.basis), ("output", true, NoiseBasis::CaseSeen));
    assert_eq!((place.baseline, place.new), (DifferingPairs { differ: 1, of: 1 }, DifferingPairs { differ: 2, of: 2 }));
}

#[test]
fn a_difference_that_baseline_never_has_with_itself_is_a_change() {
    let runs = |baseline, new| of_one(&vec![saying("Hello."); baseline], &vec![saying("Good day."); new], &nothing());
    for (baseline, new) in [(7, 1), (4, 2), (3, 3)] {
        let row = runs(baseline, new);
        assert_eq!((row.verdict, codes(&row)), (Verdict::Changed, vec!["beyond-noise", "output-changed"]), "{row:#?}");
        assert_eq!(row.repeats.unwrap().places[0].basis, NoiseBasis::NeverSeen);
    }
    for (baseline, new) in [(2, 2), (3, 2), (6, 1)] {
        assert_eq!(runs(baseline, new).verdict, Verdict::Undecided, "an agent that varies may agree with itself");
    }
}

#[test]
fn enough_runs_tell_a_change_from_noise_at_a_place_that_is_noisy_too() {
    let texts = |texts: &[&str]| texts.iter().map(|text| saying(text)).collect::<Vec<_>>();
    let baseline = texts(&["a", "a", "a", "a", "a", "a", "b"]);
    let row = of_one(&baseline, &texts(&["c", "c", "c", "c", "c", "c", "c"]), &nothing());
    assert_eq!(row.verdict, Verdict::Changed, "{row:#?}");
    assert_eq!(row.repeats.unwrap().places[0].basis, NoiseBasis::CaseTest);
    let row = of_one(&baseline, &texts(&["a", "a", "b", "a", "a", "a", "a"]), &nothing());
    assert_eq!(row.verdict, Verdict::Noisy, "{row:#?}");
}

#[test]
fn noise_of_other_cases_at_the_same_location_counts() {
    let run = |other: &str, this: &str| vec![case("other_001", saying(other)), case(CASE, saying(this))];
    let evaluation = of_runs(&[run("a", "x"), run("b", "x")], &[run("a", "y")], &nothing());
    let row = evaluation.cases.iter().find(|case| case.case_id.as_str() == CASE).unwrap();
    assert_eq!(row.verdict, Verdict::Noisy, "{row:#?}");
    assert_eq!(row.repeats.as_ref().unwrap().places[0].basis, NoiseBasis::PooledSeen);
}

#[test]
fn runs_that_are_all_the_same_are_unchanged() {
    let row = of_one(&[answer(), answer()], &[answer(), answer(), answer()], &nothing());
    assert_eq!((row.verdict, codes(&row)), (Verdict::Unchanged, vec![]), "{row:#?}");
}

#[test]
fn one_failed_run_is_no_regression_and_reports_how_many_more_would_decide() {
    let expected = json!({"must_include": ["50"]});
    let row = of_one(&[saying("50"), saying("50 EUR")], &[saying("40")], &expected);
    assert_ne!(row.verdict, Verdict::Regressed, "{row:#?}");
    let measure = row.repeats.as_ref().unwrap().measures.iter().find(|it| it.code.as_str() == "expectations").unwrap();
    assert!(matches!(measure.tier, Tier::Watch | Tier::Likely | Tier::Unknown), "{measure:?}");
    assert!(measure.more_runs.is_some(), "{measure:?}");
    assert_eq!(row.reasons[0].code, "pass-rate-may-have-fallen");
}

#[test]
fn a_fall_from_a_single_baseline_run_stays_unconfirmed_and_in_the_review() {
    let expected = json!({"must_include": ["refund"]});
    let runs = |texts: &[&str]| -> Vec<RunOf> { texts.iter().map(|text| vec![case(CASE, saying(text))]).collect() };
    let compared = |baseline: &[&str], new: &[&str]| of_runs(&runs(baseline), &runs(new), &expected);
    let evaluation = compared(&["refund"], &["no"; 5]);
    let row = &evaluation.cases[0];
    assert_eq!((row.verdict, row.unconfirmed), (Verdict::Regressed, true), "{row:#?}");
    let message = &row.reasons[0].message;
    assert!(message.starts_with("expectations met in 0 of 5 runs, baseline in 1 of 1"), "{message}");
    assert!(message.ends_with("or 1 more of baseline alone, would decide"), "{message}");
    assert!(evaluation.gate.review.iter().any(|item| item.code == "unconfirmed"), "{:#?}", evaluation.gate.review);
    // New mostly does what baseline did.
    let row = compared(&["refund"], &["no", "refund", "refund", "refund"]).cases.remove(0);
    assert_ne!(row.verdict, Verdict::Regressed, "{row:#?}");
    // From always to never, on too few runs for a test: a person should see it.
    let evaluation = compared(&["refund", "a refund"], &["no"]);
    assert_ne!(evaluation.cases[0].verdict, Verdict::Regressed);
    assert!(evaluation.gate.review.iter().any(|item| item.code == "unconfirmed"), "{:#?}", evaluation.gate.review);
}

#[test]
fn a_case_that_meets_its_expectations_far_less_often_is_regressed() {
    let expected = json!({"must_include": ["50"]});
    let runs = |good: usize, bad: usize| [vec![saying("50"); good], vec![saying("40"); bad]].concat();
    let row = of_one(&runs(10, 0), &runs(3, 7), &expected);
    assert_eq!(row.verdict, Verdict::Regressed, "{row:#?}");
    assert_eq!(row.reasons[0].code, "pass-rate-fell");
    assert!(row.reasons[0].message.starts_with("expectations met in 3 of 10 runs, baseline in 10 of 10"), "{row:#?}");
    // The pair that is shown is one in which it is seen.
    assert_eq!(row.repeats.unwrap().shown.new, 3);
    assert!(
        row.expectations[0].baseline.as_ref().unwrap().is_met() && !row.expectations[0].new.as_ref().unwrap().is_met()
    );

    let row = of_one(&runs(3, 7), &runs(10, 0), &expected);
    assert_eq!((row.verdict, row.reasons[0].code.as_str()), (Verdict::Improved, "pass-rate-rose"), "{row:#?}");
}

#[test]
fn a_side_that_never_answers_is_broken_and_one_that_sometimes_fails_is_counted() {
    let row = of_one(&[answer(), answer()], &[failure(), failure()], &nothing());
    assert_eq!((row.verdict, codes(&row)), (Verdict::Broken, vec!["runner-failure"]), "{row:#?}");
    let row = of_one(&vec![answer(); 10], &[vec![answer(); 2], vec![failure(); 8]].concat(), &nothing());
    assert_eq!((row.verdict, row.reasons[0].code.as_str()), (Verdict::Broken, "pass-rate-fell"), "{row:#?}");
    let row = of_one(&[answer(), answer(), answer()], &[answer(), failure(), answer()], &nothing());
    assert_eq!((row.verdict, row.reasons[0].code.as_str()), (Verdict::Undecided, "pass-rate-undecided"), "{row:#?}");
    let repeats = row.repeats.unwrap();
    assert_eq!((repeats.measures[0].new.passed, repeats.shown.new), (2, 1), "the failure is what is shown");
    let row = of_one(&[failure(), failure()], &[failure()], &nothing());
    assert_eq!(row.verdict, Verdict::StillBroken, "{row:#?}");
}

#[test]
fn an_artifact_that_breaks_the_contract_in_any_run_makes_the_case_invalid() {
    let row = of_one(&[answer(), json!({"schema_version": "case.v1"})], &[answer()], &nothing());
    assert_eq!(row.verdict, Verdict::Invalid, "{row:#?}");
}

#[test]
fn a_run_of_some_cases_makes_the_others_neither_missing_nor_added() {
    let both = || vec![case(CASE, answer()), case("other_001", answer())];
    let evaluation = of_runs(&[both()], &[both(), vec![case(CASE, answer())]], &nothing());
    assert!(evaluation.cases.iter().all(|case| case.verdict == Verdict::Unchanged), "{evaluation:#?}");
    assert!(evaluation.gate.passed);
    let evaluation = of_runs(&[both(), both()], &[vec![case(CASE, answer()), case("other_001", None)]], &nothing());
    assert_eq!(evaluation.cases[1].verdict, Verdict::Missing, "{evaluation:#?}");
}

#[test]
fn a_suite_whose_cases_all_fail_a_little_more_often_fails_the_gate_though_no_case_fails_by_default() {
    let expected = json!({"must_include": ["50"]});
    let run_of = |is_bad: &dyn Fn(usize) -> bool| -> RunOf {
        let said = |number| saying(if is_bad(number) { "40" } else { "50" });
        (0..30).map(|number| case(&format!("case_{number:03}"), said(number))).collect()
    };
    let baseline: Vec<_> = (0..3).map(|_| run_of(&|_| false)).collect();
    let new: Vec<_> = (0..3).map(|run| run_of(&|number| number % 3 == run)).collect();
    let evaluation = of_runs(&baseline, &new, &expected);
    assert_eq!(evaluation.counts[&Verdict::Regressed], 0, "{evaluation:#?}");
    let suite = &evaluation.repeats.unwrap().suite;
    let fell: Vec<_> = suite.iter().filter(|measure| measure.fell).map(|measure| measure.code.as_str()).collect();
    assert_eq!(fell, ["solved", "expectations"]);
    assert!(!evaluation.gate.passed, "{:#?}", evaluation.gate);
}

#[test]
fn a_gate_that_passes_reports_the_cases_with_too_few_runs_to_decide() {
    let expected = json!({"must_include": ["50"]});
    let runs = |said: &[&str]| said.iter().map(|said| vec![case(CASE, saying(said))]).collect::<Vec<_>>();
    let outcome =
        |new: &[&str]| evaluation_text::outcome(&of_runs(&runs(&["50", "50 EUR", "50"]), &runs(new), &expected));
    assert_eq!(outcome(&["50"]), "Gate passed: no case got worse");
    assert_eq!(
        outcome(&["40"]),
        "Not confirmed: 1 case looks worse, and one run does not exclude chance; no rule of the gate is violated"
    );
    assert_eq!(outcome(&["40", "50"]), "Gate passed: 1 case looks worse, unconfirmed");
}

#[test]
fn excluded_values_are_neither_a_change_nor_noise() {
    let rules = kit::rules(
        "[[rule]]\npath = \"/args/trace\"\nignore = true\n[[rule]]\npath = \"/args/amount\"\ntolerance = 1.0\n",
    );
    let run = |trace: &str, amount: f64| {
        let events = kit::step("c1", "refund", &json!({"trace": trace, "amount": amount}), &json!("done"));
        vec![case(CASE, answer_of(&json!({"events": events})))]
    };
    let verdict = |new: RunOf| {
        let baseline = [run("a", 10.0), run("b", 10.5)];
        under(rules.clone(), &baseline, &[new], &nothing()).cases[0].verdict
    };
    assert_eq!(verdict(run("c", 9.5)), Verdict::Unchanged);
    assert_eq!(verdict(run("c", 20.0)), Verdict::Changed);
}

#[test]
fn noise_lowers_the_severity_of_differences_but_not_of_pass_rates() {
    let expected = json!({"must_include": ["refunded"]});
    let said = |amount: u32, outcome: &str| saying(&format!("Your {amount} EUR are {outcome}."));
    let noisy = of_one(&[said(50, "refunded"), said(60, "refunded")], &[said(60, "refunded")], &expected);
    let severity = noisy.severity.unwrap();
    assert!(severity.score.abs() < 1e-9, "{severity:?}");
    assert_eq!(severity.parts.last().map(|part| part.code.as_str()), Some("noise"), "{severity:?}");

    let worse = of_one(&[said(50, "refunded"), said(60, "refunded")], &[said(60, "lost")], &expected);
    let severity = worse.severity.unwrap();
    assert_eq!(severity.parts[0].code, "expectation-failed");
    assert!((severity.score - severity.parts[0].share).abs() < 1e-3, "{severity:?}");

    // Of two runs one still meets it: half as far.
    let half =
        of_one(&[said(50, "refunded"), said(60, "refunded")], &[said(60, "lost"), said(50, "refunded")], &expected);
    assert!((half.severity.unwrap().score * 2.0 - severity.score).abs() < 1e-3);
}

/// A refund whose amount may be off by one, beside an output that never stays the same.
fn refund(trace: &str, amount: f64, output: &str) -> Value {
    let events = kit::step("c1", "refund", &json!({"trace": trace, "amount": amount}), &json!("done"));
    answer_of(&json!({"events": events, "final_output": {"content_type": "text", "content": output}}))
}

const NEAR: &str =
    "[[rule]]\npath = \"/args/trace\"\nignore = true\n[[rule]]\npath = \"/args/amount\"\ntolerance = 1.0\n";

fn under_near(baseline: &[Value], new: &[Value], expected: &Value) -> CaseEvaluation {
    let run = |artifact: &Value| vec![case(CASE, artifact.clone())];
    let [baseline, new] = [baseline, new].map(|runs| runs.iter().map(run).collect::<Vec<_>>());
    under(kit::rules(NEAR), &baseline, &new, expected).cases.remove(0)
}

#[test]
fn a_number_beyond_its_tolerance_is_no_noise_though_the_words_are() {
    let baseline = [refund("a", 10.0, "You get it."), refund("b", 10.5, "It is yours.")];
    assert_eq!(under_near(&baseline, &[refund("c", 9.5, "There it goes.")], &nothing()).verdict, Verdict::Noisy);
    assert_eq!(under_near(&baseline, &[refund("c", 20.0, "There it goes.")], &nothing()).verdict, Verdict::Changed);
}

#[test]
fn one_run_beyond_a_tolerance_is_undecided() {
    let expected = json!({"expect": ["events[0].args.amount < 15.0"]});
    let near = || refund("a", 10.0, "Done.");
    let row = under_near(&[near(), near(), near()], &[refund("a", 20.0, "Done."), near(), near()], &expected);
    assert_eq!(row.verdict, Verdict::Undecided, "{:?}", row.reasons);
}

#[test]
fn no_rule_hides_a_finding_in_several_runs() {
    let rules = "[[rule]]\npath = \"/args/trace\"\nignore = true\n[[rule]]\npath = \"/args/amount\"\nignore = true\n";
    let given = |amount: u32| {
        let mut events = kit::step("c1", "look", &json!({}), &json!({"total": 50})).to_vec();
        events.extend(kit::step("c2", "refund", &json!({"amount": amount}), &json!("done")));
        vec![case(CASE, answer_of(&json!({"events": events})))]
    };
    let row = under(kit::rules(rules), &[given(50), given(50)], &[given(777), given(777)], &nothing()).cases.remove(0);
    assert_eq!(row.verdict, Verdict::Changed, "{row:?}");
    assert!(codes(&row).contains(&"unrecorded-source"));
}

#[test]
fn calls_that_overlap_have_no_order_in_several_runs_either() {
    let at_once = |tools: [&str; 2]| {
        let [first, second] = tools.map(|tool| kit::step(tool, tool, &json!({}), &json!("ok")));
        answer_of(&json!({"events": [first[0], second[0], first[1], second[1]]}))
    };
    let (one, other) = (at_once(["get_order", "get_user"]), at_once(["get_user", "get_order"]));
    assert_eq!(of_one(&[one.clone(), one.clone()], &[other], &nothing()).verdict, Verdict::Unchanged);
    let after = |tools: [&str; 2]| {
        let steps = tools.map(|tool| kit::step(tool, tool, &json!({}), &json!("ok")));
        answer_of(&json!({"events": steps.concat()}))
    };
    let one = after(["get_order", "get_user"]);
    let row = of_one(&vec![one; 7], &[after(["get_user", "get_order"])], &nothing());
    assert_eq!(row.verdict, Verdict::Changed, "one after the other they have one");
}

#[test]
fn ignored_arguments_of_a_call_are_ignored_in_evidence_too() {
    let run = |trace: &str| {
        let events = kit::step("c1", "refund", &json!({"trace": trace}), &json!("done"));
        let actions = [kit::action("a1", "pay", &json!({}), &["c1"])];
        answer_of(&json!({"events": events, "proposed_actions": actions}))
    };
    let row = under_near(&[run("v1"), run("v1")], &[run("v2"), run("v2")], &nothing());
    assert_eq!(row.verdict, Verdict::Unchanged, "{row:?}");
}

#[test]
fn the_risk_of_a_case_is_the_highest_of_any_run() {
    let of = |risk: &str| {
        let mut action = kit::action("a1", "pay", &json!({}), &[]);
        action["risk_level"] = json!(risk);
        answer_of(&json!({"proposed_actions": [action]}))
    };
    let row = of_one(&[of("low"), of("low")], &[of("low"), of("high")], &nothing());
    assert_eq!(row.risk_level, Some(counterproof_artifact::RiskLevel::High));
}

#[test]
fn an_expectation_that_a_failed_run_cannot_show_is_judged_by_the_others() {
    let expected = json!({"must_include": ["refunded"]});
    let (unmet, failed) = (saying("lost"), failure());
    let row = of_one(&[unmet.clone(), unmet.clone()], &[failed, unmet.clone(), unmet], &expected);
    assert!(row.is_judged_on_new() && row.is_unmet_on_new() && row.was_unmet_before(), "{row:?}");
}

#[test]
fn a_noisy_time_in_a_result_does_not_hide_the_price_next_to_it() {
    let priced = |price: u32, at: &str| {
        let payload = json!({"price": price, "at": at});
        answer_of(&json!({"events": kit::step("c1", "price", &json!({}), &payload)}))
    };
    let baseline = [priced(50, "10:00"), priced(50, "10:05"), priced(50, "10:10")];
    let later = of_one(&baseline, &[priced(50, "11:00"), priced(50, "11:05")], &nothing());
    assert_eq!(later.verdict, Verdict::Noisy, "{:?}", later.reasons);
    let dearer = of_one(&baseline, &[priced(99_999, "11:00"), priced(99_999, "11:05")], &nothing());
    assert_eq!(dearer.verdict, Verdict::Undecided, "{:?}", dearer.reasons);
}

#[test]
fn a_case_with_a_lost_artifact_is_missing_whatever_its_other_runs_show() {
    let expected = json!({"must_include": ["50"]});
    let whole = || vec![case(CASE, saying("50"))];
    let lost = || vec![case(CASE, None)];
    let bad = || vec![case(CASE, saying("40"))];
    let row = |baseline: &[RunOf], new: &[RunOf]| of_runs(baseline, new, &expected).cases.remove(0);
    let good = [whole(), whole(), whole()];

    let found = row(&good, &[whole(), lost(), whole()]);
    assert_eq!((found.verdict, found.reasons[0].code.as_str()), (Verdict::Missing, "artifact-absent"), "{found:#?}");
    assert!(found.reasons[0].message.contains("in 1 of 3 runs"), "{found:#?}");
    assert_eq!(row(&[whole(), lost()], &good).verdict, Verdict::Added);
    assert!(!of_runs(&good, &[whole(), lost()], &expected).gate.passed);

    let convicted = row(&good, &[bad(), bad(), bad(), lost()]);
    assert_eq!(convicted.verdict, Verdict::Regressed, "{convicted:#?}");
    assert!(convicted.reasons.iter().any(|reason| reason.code == "artifact-absent"), "{convicted:#?}");

    let not_selected = row(&good, &[whole(), Vec::new(), whole()]);
    assert_eq!(
        not_selected.verdict,
        Verdict::Unchanged,
        "a run that does not select the case has no missing case: {not_selected:#?}"
    );
}

#[test]
fn a_changed_action_in_the_review_has_its_object_and_how_often_baseline_changes_it_itself() {
    let refunds = |amounts: [u32; 5]| {
        let answer = |amount: u32| {
            let params = json!({"order_id": "W12", "amount": amount});
            answer_of(&json!({
                "events": kit::step("c1", "get_order", &json!({"order_id": "W12"}), &json!({"prices": [40, 50, 500]})),
                "proposed_actions": [kit::action("a1", "refund_order", &params, &["c1"])],
            }))
        };
        amounts.map(answer)
    };
    let items = |baseline: [u32; 5]| {
        let [old, new] = [refunds(baseline), refunds([500; 5])].map(|runs| runs.map(|run| vec![case(CASE, run)]));
        let evaluation = of_runs(&old, &new, &nothing());
        let items = evaluation.gate.review.into_iter().filter(|item| item.code == "high-risk-changed");
        items.map(|item| item.message).collect::<Vec<_>>()
    };
    assert_eq!(items([50; 5]), ["refund_order W12: amount 50 → 500"]);
    let [item] = &items([50, 50, 50, 50, 40])[..] else { panic!("one item") };
    assert!(item.starts_with("refund_order W12: amount"), "{item}");
    assert!(item.ends_with("(also between baseline runs: 4 of 10)"), "{item}");
}
