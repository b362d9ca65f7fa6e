//! Signals over several runs: what any run of new has, unless any run of the baseline has it too.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{CaseEvaluation, Verdict};
use serde_json::Value;

use super::{case, nothing, of_one, of_runs, saying};
use crate::kit::{CASE, Pair, answer, failure};

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

fn signals(row: &CaseEvaluation) -> Vec<(&str, usize, bool)> {
    let signals = row.findings.iter().filter(|finding| finding.code.starts_with("signal-"));
    signals.map(|finding| (finding.message.as_str(), finding.pointers.len(), finding.in_baseline)).collect()
}

fn of(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| saying(text)).collect()
}

#[test]
fn a_secret_in_any_run_of_new_is_a_signal() {
    let leaking = format!("Done with {TOKEN}.");
    for position in 0..3 {
        let mut new = ["Done.", "Done.", "Done."];
        new[position] = &leaking;
        let row = of_one(&of(&["Done.", "Done."]), &of(&new), &nothing());
        let found = signals(&row);
        let message = "the output contains a secret: github token ghp_… of 40 characters";
        assert!(found[0].0.starts_with(message) && !found[0].2, "{found:?}");
        let is_shown = row.repeats.as_ref().unwrap().shown.new == position as u64;
        let run = if is_shown { String::new() } else { format!(", in run {} of 3", position + 1) };
        assert_eq!(found, [(format!("{message}{run}").as_str(), usize::from(is_shown), false)]);
        assert_ne!(row.verdict, Verdict::Unchanged);
    }
}

#[test]
fn a_signal_that_any_run_of_the_baseline_has_is_no_news() {
    let leaking = format!("Done with {TOKEN}.");
    for position in 0..3 {
        let mut baseline = ["Done.", "Done.", "Done."];
        baseline[position] = &leaking;
        let row = of_one(&of(&baseline), &of(&[&leaking, "Done.", "Done."]), &nothing());
        assert!(signals(&row).iter().all(|(_, _, in_baseline)| *in_baseline), "{:?}", row.findings);
    }
}

#[test]
fn a_contact_of_one_baseline_run_is_no_signal_in_another_run_of_new() {
    let written = "Write to help@shop.example";
    let row = of_one(&of(&["Done.", "Done.", written]), &of(&["Done.", written]), &nothing());
    assert!(signals(&row).iter().all(|(_, _, in_baseline)| *in_baseline), "{:?}", row.findings);
    let row = of_one(&of(&["Done.", "Done."]), &of(&["Done.", written]), &nothing());
    assert_eq!(signals(&row).len(), 1);
}

#[test]
fn an_answer_has_signals_although_the_baseline_failed() {
    let row = Pair::with_answers(&answer(), &saying(TOKEN)).with(Side::Baseline, CASE, &failure()).row();
    assert_eq!((row.verdict, signals(&row).len()), (Verdict::Recovered, 1));
    let runs = |artifact: Value| vec![vec![case(CASE, artifact)]];
    let evaluation = of_runs(&runs(failure()), &[runs(saying("Done.")), runs(saying(TOKEN))].concat(), &nothing());
    assert_eq!(signals(&evaluation.cases[0]).len(), 1);
    assert_eq!(evaluation.gate.review.iter().filter(|item| item.code == "secret-leaked").count(), 1);
}
