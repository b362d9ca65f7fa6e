//! The error rates of `docs/statistics.md`: false alarms without a change, and the share of regressions that is found. Seeds are
//! fixed, so the figures are the same on every machine.

use std::io::{self, Write};

use counterproof_artifact::evaluation::Tier;
use counterproof_evaluator::statistics::{CaseTests, SuiteDecision};

use crate::simulation::{
    Suite, alarm_of_one_case, benjamini_hochberg, place_nights, suite_that_falls, unchanged_suites,
};

pub(crate) fn print() -> io::Result<()> {
    let mut out = io::stdout().lock();
    print_one_case(&mut out)?;
    print_false_alarms(&mut out)?;
    print_power(&mut out)?;
    print_places(&mut out)?;
    out.flush()
}

/// Exact error rates of a single case, by the number of runs per side.
fn print_one_case(out: &mut impl Write) -> io::Result<()> {
    let mut tests = CaseTests::default();
    writeln!(out, "one case, exact: gate fails at 95 → 95, 95 → 60")?;
    for runs in [3, 5, 10, 20, 30] {
        let [kept, fell] = [0.95, 0.60].map(|new| 100.0 * alarm_of_one_case(runs, 0.95, new, &mut tests));
        let largest =
            (1..100).map(|rate| f64::from(rate) / 100.0).map(|rate| alarm_of_one_case(runs, rate, rate, &mut tests));
        let largest = 100.0 * largest.fold(0.0, f64::max);
        writeln!(out, "  {runs} runs: {kept:.1}, {fell:.1}; the most at any rate without a change {largest:.1}")?;
    }
    Ok(())
}

/// Nights in which the gate fails although nothing changed.
fn print_false_alarms(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "nothing changed: nights of 10000 in which the gate fails")?;
    for suite in unchanged_suites() {
        writeln!(out, "  {}: {}", suite.name, suite.nights(10_000, SuiteDecision::alarm))?;
    }
    Ok(())
}

/// Nights in which a fall of the suite, or of one of 100 cases, is found.
fn print_power(out: &mut impl Write) -> io::Result<()> {
    let nights = suite_that_falls().nights(10_000, |judged| judged.suite.as_ref().is_some_and(|suite| suite.rejected));
    writeln!(out, "{}: found in {nights} of 10000", suite_that_falls().name)?;
    for (runs, new) in [(5, 0.2), (10, 0.4), (10, 0.6), (20, 0.6)] {
        let mut suite = Suite::mixed("", 100, runs);
        suite.rates[0].1 = new;
        let nights = suite.nights(2000, |judged| judged.cases[0].tier == Tier::Regression);
        let plain = suite.nights(2000, |judged| {
            let p: Vec<f64> = judged.cases.iter().filter_map(|case| case.p).collect();
            benjamini_hochberg(&p)[0] <= 0.05
        });
        writeln!(out, "one of 100 cases, 100 → {:.0} %, {runs} runs: convicted in {nights} of 2000", 100.0 * new)?;
        writeln!(out, "  by the plain procedure of Benjamini & Hochberg: {plain}")?;
    }
    Ok(())
}

/// Nights in which a place is reported as changed.
fn print_places(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "places, 50 cases with 2 baseline runs and 1 new: nights of 2000 taken for changed")?;
    for (old, new) in [(0.05, 0.05), (0.3, 0.3), (0.8, 0.8), (0.05, 0.2), (0.2, 0.4), (0.2, 0.7)] {
        writeln!(out, "  another value in {old} → {new} of the runs: {}", place_nights(2000, old, new))?;
    }
    Ok(())
}
