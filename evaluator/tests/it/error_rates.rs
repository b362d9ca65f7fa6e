//! The error rates of the statistics, checked on simulated suites with known pass rates: false alarms without a change, and the
//! share of regressions that is found. The benchmark `trust` prints the figures.

use counterproof_evaluator::statistics::{CaseTallies, CaseTests, SuiteDecision, Thresholds, judge_with};

use crate::simulation::{
    alarm_of_one_case, benjamini_hochberg, binomial, place_nights, suite_that_falls, unchanged_suites,
};

#[test]
fn an_unchanged_case_fails_the_gate_in_at_most_5_of_100_comparisons_at_any_pass_rate() {
    let mut tests = CaseTests::default();
    for runs in [1, 2, 3, 5, 10, 30] {
        for rate in 1..20 {
            let alarm = alarm_of_one_case(runs, f64::from(rate) / 20.0, f64::from(rate) / 20.0, &mut tests);
            assert!(alarm <= 0.05, "{alarm} with {runs} runs at {rate} of 20");
        }
    }
}

#[test]
fn a_fall_from_95_to_60_percent_is_found_with_the_required_power() {
    let mut tests = CaseTests::default();
    for (runs, at_least) in [(10, 0.43), (20, 0.81), (30, 0.94)] {
        let found = alarm_of_one_case(runs, 0.95, 0.60, &mut tests);
        assert!(found >= at_least, "{found} with {runs} runs");
    }
}

#[test]
fn both_levels_together_keep_the_error_rate_over_all_permutations_of_the_labels() {
    // A small suite allows an exhaustive check: without a change, and given the number of passes of each case, all permutations
    // of its labels are equally likely, and at most 5 % of them may raise an alarm.
    let (thresholds, mut tests) = (Thresholds::default(), CaseTests::default());
    let runs = 4;
    for passed in [[7, 6, 6], [4, 4, 4], [5, 4, 8], [2, 7, 3], [4, 4, 8], [3, 5, 1]] {
        let mut alarm = 0.0;
        let permutations = |passed: u32| -> Vec<(CaseTallies, f64)> {
            // The distribution given the number of passes is the same at every rate, so any rate works here.
            let both = binomial(runs, 0.5).into_iter().flat_map(|(new, mass)| {
                let other = binomial(runs, 0.5).into_iter().filter(move |(old, _)| old.passed + new.passed == passed);
                other.map(move |(baseline, more)| (CaseTallies { baseline, new }, mass * more))
            });
            let both: Vec<_> = both.collect();
            let all: f64 = both.iter().map(|(_, mass)| mass).sum();
            both.into_iter().map(|(case, mass)| (case, mass / all)).collect()
        };
        for (first, one) in permutations(passed[0]) {
            for (second, two) in permutations(passed[1]) {
                for (third, three) in permutations(passed[2]) {
                    let judged = judge_with(&[first, second, third], &thresholds, &mut tests);
                    alarm += if judged.alarm() { one * two * three } else { 0.0 };
                }
            }
        }
        assert!(alarm <= 0.05 + 1e-9, "{alarm} for {passed:?}");
    }
}

/// The maximum number of alarms in 600 comparisons. A gate with a true rate of 5 % exceeds it with 2 % of the seeds; a gate with 9 %
/// stays below it with 3 %. The exact limit is checked above, over all permutations.
const ALARMS_OF_600: u32 = 41;

#[test]
fn an_unchanged_suite_fails_the_gate_in_at_most_5_of_100_comparisons() {
    for suite in unchanged_suites() {
        let alarms = suite.nights(600, SuiteDecision::alarm);
        assert!(alarms <= ALARMS_OF_600, "{alarms} of 600 comparisons: {}", suite.name);
    }
}

#[test]
fn a_fall_of_100_cases_from_90_to_82_percent_is_found_in_95_of_100_comparisons() {
    // The true rate is about 97 % (docs/statistics.md).
    let found = suite_that_falls().nights(400, |judged| judged.suite.as_ref().is_some_and(|suite| suite.rejected));
    assert!(found >= 380, "{found} of 400 comparisons");
}

#[test]
fn the_published_example_of_the_plain_procedure_rejects_what_was_published() {
    // Benjamini & Hochberg 1995, section 4.1: fifteen p-values; at 5 % the first four are rejected.
    let p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590,
        1.0000,
    ];
    let adjusted = benjamini_hochberg(&p);
    assert_eq!(adjusted.iter().filter(|value| **value <= 0.05).count(), 4);
    assert!((adjusted[0] - 0.0015).abs() < 1e-12 && (adjusted[14] - 1.0).abs() < 1e-12);
    assert!(adjusted.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(benjamini_hochberg(&[]).is_empty());
}

#[test]
fn the_plain_procedure_ignores_the_order() {
    assert_eq!(benjamini_hochberg(&[0.04, 0.01]), [0.04, 0.02]);
}

#[test]
fn an_unchanged_pointer_is_reported_as_changed_in_at_most_5_of_100_comparisons() {
    for noise in [0.05, 0.3, 0.8] {
        let found = place_nights(600, noise, noise);
        assert!(found <= ALARMS_OF_600, "{found} of 600 comparisons at {noise}");
    }
    let found = place_nights(200, 0.2, 0.7);
    assert!(found >= 190, "{found} of 200 comparisons");
}
