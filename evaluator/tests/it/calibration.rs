//! Calibration: the runs of one baseline are dealt out as both sides.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use counterproof_artifact::Side;
use counterproof_evaluator::{ComparedRun, Limit, Measure, Request, SideRuns, calibrate};
use counterproof_store::RunWriter;
use serde_json::{Value, json};

use crate::kit::{Pair, answer_of, failure, finished};

/// A baseline with this many runs, whose artifacts depend on the run and the case.
fn runs(count: usize, cases: usize, artifact: impl Fn(usize, usize) -> Value) -> (Pair, SideRuns) {
    let pair = Pair::empty();
    let runs: Vec<ComparedRun> = (0..count)
        .map(|run| {
            let id = format!("run{run}").parse().unwrap();
            let writer = RunWriter::create(&pair.path().join("runs"), Side::Baseline, &id).unwrap();
            let selected: Vec<String> = (0..cases).map(|case| format!("case_{case}")).collect();
            for (case, id) in selected.iter().enumerate() {
                let mut artifact = artifact(run, case);
                artifact["case_id"] = json!(id);
                artifact["version"] = json!("baseline");
                let path = writer.folder().join(format!("{id}.json"));
                counterproof_store::write::write_json(&path, &artifact, counterproof_store::write::Durability::Cached)
                    .unwrap();
            }
            finished(&writer, &selected)
        })
        .collect();
    (pair, SideRuns::new(runs).unwrap())
}

fn text(content: &str) -> Value {
    answer_of(&json!({"final_output": {"content_type": "text", "content": content}}))
}

fn request(runs: &SideRuns) -> Request<'static> {
    Request::new(runs.clone(), runs.clone())
}

#[test]
fn an_agent_that_always_does_the_same_gives_no_false_alarm() {
    let (_pair, runs) = runs(4, 6, |_, _| text("Done."));
    let calibration = calibrate(&request(&runs), 50).unwrap();
    let designs: Vec<_> = calibration.false_alarms.iter().map(|it| (it.design.to_string(), it.deals, it.red)).collect();
    assert_eq!(designs, [("1/1".to_owned(), 12, 0), ("2/2".to_owned(), 6, 0), ("2/1 + confirm 1".to_owned(), 12, 0)]);
    assert!(calibration.noisy.is_empty());
    assert!(calibration.false_alarms.iter().all(|it| it.interval.low < 1e-9 && it.interval.high > 0.2));
}

#[test]
fn a_strict_gate_has_the_false_alarms_of_its_suite() {
    // One of three runs says something else in one case: four of the six deals put it against another.
    let (_pair, runs) = runs(3, 4, |run, case| text(if (run, case) == (2, 0) { "Other." } else { "Done." }));
    let strict = request(&runs).limits.with(Measure::Changed, Limit::Count(0));
    let calibration = calibrate(&Request { limits: strict, ..request(&runs) }, 50).unwrap();
    let measured = calibration.false_alarms[0];
    assert_eq!((measured.red, measured.deals, measured.is_complete), (4, 6, true));
    assert!(measured.interval.low < measured.share() && measured.share() < measured.interval.high);
}

#[test]
fn a_case_that_is_seldom_solved_is_too_noisy_and_a_steady_one_is_not() {
    let (_pair, runs) = runs(5, 3, |run, case| match case {
        0 if run > 0 => failure(),
        _ => text("Done."),
    });
    let calibration = calibrate(&request(&runs), 20).unwrap();
    assert_eq!(calibration.noisy.iter().map(counterproof_artifact::CaseId::as_str).collect::<Vec<_>>(), ["case_0"]);
    assert_eq!(calibration.smallest_fall.iter().map(|fall| fall.runs).collect::<Vec<_>>(), [1, 3, 5, 10]);
}

#[test]
fn the_same_runs_give_the_same_figures() {
    let (_pair, runs) = runs(6, 5, |run, case| text(&format!("{}", run * case % 3)));
    let measure = || calibrate(&request(&runs), 15).unwrap();
    assert_eq!(measure(), measure());
}
