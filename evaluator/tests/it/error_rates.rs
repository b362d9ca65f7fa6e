//! The statistics on synthetic agents whose chances are known: how often a night fails though nothing changed, and how often a
//! fall is found. What can be summed over all outcomes is; the rest is drawn from fixed seeds.
//!
//! `cargo test --package counterproof-evaluator --test it -- --ignored --nocapture nights::` prints the figures of
//! `docs/statistics.md`.

use counterproof_evaluator::statistics::{
    CaseRounds, CaseTallies, CaseTests, Judgement, PlaceValues, RoundTests, Tally, Thresholds, Tier,
    benjamini_hochberg, judge_place, judge_rounds, judge_with, open,
};

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn happens(&mut self, chance: f64) -> bool {
        ((self.next() >> 11) as f64) < chance * (1u64 << 53) as f64
    }

    fn runs(&mut self, count: u32, chance: f64) -> Tally {
        (0..count).map(|_| self.happens(chance)).collect()
    }
}

/// A suite: the chance of each case on baseline and on new, and the runs of a side.
struct Suite {
    name: &'static str,
    runs: u32,
    chances: Vec<(f64, f64)>,
}

impl Suite {
    /// All cases alike.
    fn alike(name: &'static str, cases: usize, runs: u32, old: f64, new: f64) -> Self {
        Self { name, runs, chances: vec![(old, new); cases] }
    }

    /// Nothing changed, and cases from steady to flaky.
    fn mixed(name: &'static str, cases: usize, runs: u32) -> Self {
        let chances = [1.0, 0.98, 0.95, 0.9, 0.7, 0.5, 0.3, 1.0, 0.0, 0.85].map(|chance| (chance, chance));
        Self { name, runs, chances: chances.into_iter().cycle().take(cases).collect() }
    }

    /// In how many of the nights the judgement has the property.
    fn nights(&self, nights: u32, is: impl Fn(&Judgement) -> bool) -> u32 {
        let (thresholds, mut tests) = (Thresholds::default(), CaseTests::default());
        let mut found = 0;
        for night in 0..nights {
            let mut random = Random(u64::from(night) << 20);
            let case = |(old, new): &(f64, f64)| CaseTallies {
                baseline: random.runs(self.runs, *old),
                new: random.runs(self.runs, *new),
            };
            let cases: Vec<CaseTallies> = self.chances.iter().map(case).collect();
            found += u32::from(is(&judge_with(&cases, &thresholds, &mut tests)));
        }
        found
    }
}

/// The suites with which the rate of false alarms is held to its limit.
fn unchanged() -> Vec<Suite> {
    vec![
        Suite::mixed("100 cases × 5, steady to flaky", 100, 5),
        Suite::alike("50 cases × 3, all at 50 %", 50, 3, 0.5, 0.5),
        Suite::mixed("20 cases × 20, steady to flaky", 20, 20),
        Suite::alike("10 cases × 10, all at 80 %", 10, 10, 0.8, 0.8),
        Suite::mixed("100 cases × 1, steady to flaky", 100, 1),
        Suite::alike("2 cases × 8, both at 60 %", 2, 8, 0.6, 0.6),
    ]
}

fn fall_of_the_suite() -> Suite {
    Suite::alike("100 cases × 5, from 90 % to 82 %", 100, 5, 0.9, 0.82)
}

/// Each number of passes with its chance.
fn binomial(runs: u32, chance: f64) -> Vec<(Tally, f64)> {
    let mut masses = vec![1.0];
    for _ in 0..runs {
        let mut next = vec![0.0; masses.len() + 1];
        for (passed, mass) in masses.iter().enumerate() {
            next[passed] += mass * (1.0 - chance);
            next[passed + 1] += mass * chance;
        }
        masses = next;
    }
    (0..).zip(masses).map(|(passed, mass)| (Tally::new(passed, runs - passed), mass)).collect()
}

/// How likely a suite of this one case fails the gate: the sum over all outcomes.
fn alarm_of_one_case(runs: u32, old: f64, new: f64, tests: &mut CaseTests) -> f64 {
    let mut alarm = 0.0;
    for (baseline, mass) in binomial(runs, old) {
        for (new, more) in binomial(runs, new) {
            let judged = judge_with(&[CaseTallies { baseline, new }], &Thresholds::default(), tests);
            alarm += if judged.alarm() { mass * more } else { 0.0 };
        }
    }
    alarm
}

#[test]
fn a_single_case_fails_the_gate_by_chance_in_at_most_five_of_a_hundred_nights_at_any_rate() {
    let mut tests = CaseTests::default();
    for runs in [1, 2, 3, 5, 10, 30] {
        for rate in 1..20 {
            let alarm = alarm_of_one_case(runs, f64::from(rate) / 20.0, f64::from(rate) / 20.0, &mut tests);
            assert!(alarm <= 0.05, "{alarm} with {runs} runs at {rate} of 20");
        }
    }
}

#[test]
fn a_case_that_falls_from_95_to_60_is_found_as_often_as_it_has_to_be() {
    let mut tests = CaseTests::default();
    for (runs, at_least) in [(10, 0.43), (20, 0.81), (30, 0.94)] {
        let found = alarm_of_one_case(runs, 0.95, 0.60, &mut tests);
        assert!(found >= at_least, "{found} with {runs} runs");
    }
}

#[test]
fn both_levels_together_keep_the_rate_for_every_way_to_deal_out_the_labels() {
    // Exhaustive where a suite is small: given how often each case passed, all deals of its labels are equally likely if
    // nothing changed, and at most one in twenty may be an alarm.
    let (thresholds, mut tests) = (Thresholds::default(), CaseTests::default());
    let runs = 4;
    for passed in [[7, 6, 6], [4, 4, 4], [5, 4, 8], [2, 7, 3], [4, 4, 8], [3, 5, 1]] {
        let mut alarm = 0.0;
        let deal = |passed: u32| -> Vec<(CaseTallies, f64)> {
            // The draws of new, from the product of two binomials at any one rate.
            let both = binomial(runs, 0.5).into_iter().flat_map(|(new, mass)| {
                let other = binomial(runs, 0.5).into_iter().filter(move |(old, _)| old.passed + new.passed == passed);
                other.map(move |(baseline, more)| (CaseTallies { baseline, new }, mass * more))
            });
            let both: Vec<_> = both.collect();
            let all: f64 = both.iter().map(|(_, mass)| mass).sum();
            both.into_iter().map(|(case, mass)| (case, mass / all)).collect()
        };
        for (first, one) in deal(passed[0]) {
            for (second, two) in deal(passed[1]) {
                for (third, three) in deal(passed[2]) {
                    let judged = judge_with(&[first, second, third], &thresholds, &mut tests);
                    alarm += if judged.alarm() { one * two * three } else { 0.0 };
                }
            }
        }
        assert!(alarm <= 0.05 + 1e-9, "{alarm} for {passed:?}");
    }
}

/// Of 600 nights, a gate that fails by chance in exactly 5 of 100 fails more often than this with 2 seeds in 100; one that fails
/// in 9 of 100 stays below it with 3 seeds in 100. That the limit is kept exactly is shown above, by summing over all deals.
const ALARMS_OF_600: u32 = 41;

#[test]
fn with_nothing_changed_the_gate_fails_in_at_most_five_of_a_hundred_nights() {
    for suite in unchanged() {
        let alarms = suite.nights(600, Judgement::alarm);
        assert!(alarms <= ALARMS_OF_600, "{alarms} of 600 nights: {}", suite.name);
    }
}

#[test]
fn a_hundred_cases_that_fall_from_90_to_82_are_found_in_95_of_a_hundred_nights() {
    // It is 98 of 100 (docs/statistics.md): below 95, three standard deviations off, is no bad luck.
    let found = fall_of_the_suite().nights(400, |judged| judged.suite.as_ref().is_some_and(|suite| suite.rejected));
    assert!(found >= 380, "{found} of 400 nights");
}

/// Repeats that stop when they have decided: the judgement, and the runs that were spent.
fn adaptive(chances: &[(f64, f64)], baseline: u32, max: u32, seed: u64, tests: &mut RoundTests) -> (Judgement, u32) {
    let thresholds = Thresholds::default();
    let mut random = Random(seed);
    let case =
        |(old, _): &(f64, f64)| CaseRounds { baseline: random.runs(baseline, *old), new: Vec::new(), left_out: 0 };
    let mut cases: Vec<CaseRounds> = chances.iter().map(case).collect();
    let (mut asked, mut spent): (Vec<usize>, u32) = ((0..cases.len()).collect(), 0);
    for round in 1..=max {
        for index in &asked {
            let (_, new) = chances[*index];
            cases[*index].new.push(random.happens(new));
            spent += 1;
        }
        if round >= thresholds.full_rounds {
            asked = open(&judge_rounds(&cases, max, &thresholds, tests)).collect();
        }
        if asked.is_empty() {
            break;
        }
    }
    (judge_rounds(&cases, max, &thresholds, tests), spent)
}

/// In how many nights the adaptive gate fails, and how many runs a night spends at most and on average.
fn adaptive_nights(chances: &[(f64, f64)], baseline: u32, max: u32, nights: u32) -> (u32, f64) {
    let mut tests = RoundTests::default();
    let (mut alarms, mut spent) = (0, 0);
    for night in 0..nights {
        let (judged, runs) = adaptive(chances, baseline, max, u64::from(night) << 20, &mut tests);
        alarms += u32::from(judged.alarm());
        spent += runs;
    }
    (alarms, f64::from(spent) / f64::from(nights))
}

#[test]
fn adaptive_repeats_keep_the_rate_over_all_looks_and_spend_fewer_runs() {
    let suite = Suite::mixed("", 20, 0);
    let (alarms, spent) = adaptive_nights(&suite.chances, 10, 15, 600);
    assert!(alarms <= ALARMS_OF_600, "{alarms} of 600 nights");
    assert!(spent < 0.85 * 20.0 * 15.0, "{spent} runs a night in place of 300");
}

#[test]
fn one_case_is_decided_sooner_than_after_all_rounds_whether_it_fell_or_not() {
    let (kept, spent_on_kept) = adaptive_nights(&[(0.95, 0.95)], 20, 20, 600);
    assert!(kept <= ALARMS_OF_600 && spent_on_kept < 12.0, "{kept} alarms, {spent_on_kept} runs");
    let (found, spent) = adaptive_nights(&[(0.95, 0.3)], 20, 20, 200);
    assert!(found >= 190 && spent < 10.0, "{found} found, {spent} runs");
}

/// In how many nights a place is taken for changed: two baseline runs and a new one of fifty cases, with a value that is
/// another in each run with one chance on baseline and another on new.
fn place_nights(nights: u32, old: f64, new: f64) -> u32 {
    let mut found = 0;
    for night in 0..nights {
        let mut random = Random(u64::from(night) << 20);
        let mut value = |chance: f64| if random.happens(chance) { 1 + random.next() % 3 } else { 0 };
        let cases: Vec<PlaceValues> =
            (0..50).map(|_| PlaceValues { baseline: vec![value(old), value(old)], new: vec![value(new)] }).collect();
        found += u32::from(judge_place(&cases).pooled.p.is_some_and(|p| p <= 0.05));
    }
    found
}

#[test]
fn a_place_is_taken_for_changed_by_chance_in_at_most_five_of_a_hundred_nights() {
    for noise in [0.05, 0.3, 0.8] {
        let found = place_nights(600, noise, noise);
        assert!(found <= ALARMS_OF_600, "{found} of 600 nights at {noise}");
    }
    let found = place_nights(200, 0.2, 0.7);
    assert!(found >= 190, "{found} of 200 nights");
}

#[test]
#[ignore = "prints the figures of docs/statistics.md"]
fn figures() {
    let mut tests = CaseTests::default();
    println!("one case, exact: gate fails at 95 → 95, 95 → 60");
    for runs in [3, 5, 10, 20, 30] {
        let [kept, fell] = [0.95, 0.60].map(|new| 100.0 * alarm_of_one_case(runs, 0.95, new, &mut tests));
        let largest =
            (1..100).map(|rate| f64::from(rate) / 100.0).map(|rate| alarm_of_one_case(runs, rate, rate, &mut tests));
        let largest = 100.0 * largest.fold(0.0, f64::max);
        println!("  {runs} runs: {kept:.1}, {fell:.1}; the most at any rate without a change {largest:.1}");
    }
    println!("nothing changed: nights of 10000 in which the gate fails");
    for suite in unchanged() {
        println!("  {}: {}", suite.name, suite.nights(10_000, Judgement::alarm));
    }
    let nights = fall_of_the_suite().nights(10_000, |judged| judged.suite.as_ref().is_some_and(|suite| suite.rejected));
    println!("{}: found in {nights} of 10000", fall_of_the_suite().name);
    for (runs, new) in [(5, 0.2), (10, 0.4), (10, 0.6), (20, 0.6)] {
        let mut suite = Suite::mixed("", 100, runs);
        suite.chances[0].1 = new;
        let nights = suite.nights(2000, |judged| judged.cases[0].tier == Tier::Regression);
        let plain = suite.nights(2000, |judged| {
            let p: Vec<f64> = judged.cases.iter().filter_map(|case| case.p).collect();
            benjamini_hochberg(&p)[0] <= 0.05
        });
        println!("one of 100 cases, 100 → {:.0} %, {runs} runs: convicted in {nights} of 2000", 100.0 * new);
        println!("  by the plain procedure of Benjamini & Hochberg: {plain}");
    }
    println!("adaptive, 20 baseline runs, at most 20 rounds: alarms of 2000, runs a night");
    for new in [0.95, 0.8, 0.6, 0.3] {
        let (alarms, spent) = adaptive_nights(&[(0.95, new)], 20, 20, 2000);
        println!("  one case 95 → {:.0} %: {alarms}, {spent:.1}", 100.0 * new);
    }
    let mut suite = Suite::mixed("", 20, 0);
    let (alarms, spent) = adaptive_nights(&suite.chances, 20, 20, 2000);
    println!("  20 cases, steady to flaky: {alarms}, {spent:.1} in place of 400");
    suite.chances[0].1 = 0.3;
    let (alarms, spent) = adaptive_nights(&suite.chances, 20, 20, 2000);
    println!("  20 cases, one of them 100 → 30 %: {alarms}, {spent:.1} in place of 400");
    println!("places, 50 cases with 2 baseline runs and 1 new: nights of 2000 taken for changed");
    for (old, new) in [(0.05, 0.05), (0.3, 0.3), (0.8, 0.8), (0.05, 0.2), (0.2, 0.4), (0.2, 0.7)] {
        println!("  another value in {old} → {new} of the runs: {}", place_nights(2000, old, new));
    }
}
