//! The test of the rule `unmet` with the baseline as its limit.

use counterproof_artifact::evaluation::{CaseEvaluation, Judgement, MeasureCode, RuleTest, SuiteMeasure};

/// The test of the rule `unmet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnmetTest {
    /// The test.
    pub test: RuleTest,
    /// Whether the fall is significant.
    pub fell: bool,
}

/// Tests whether new meets the expectations in fewer cases than the baseline. The measures of all cases decide where they
/// include the expectations; otherwise the exact test of `McNemar` on one run per side does. `None` without expectations.
pub(crate) fn unmet_test(suite: &[SuiteMeasure], cases: &[CaseEvaluation], level: f64) -> Option<UnmetTest> {
    let turns: Vec<_> = cases.iter().filter_map(turn).collect();
    let count = |turn: Turn| turns.iter().filter(|other| **other == turn).count() as u64;
    let (fell, rose) = (count(Turn::Fell), count(Turn::Rose));
    let measure = suite.iter().find(|measure| measure.code == MeasureCode::Expectations);
    let (p, is_fall) = match measure {
        // A part falls only with the combined measure, so the larger of both decides.
        Some(measure) => (
            suite.iter().fold(measure.p, |p, other| if other.code == MeasureCode::Solved { p.max(other.p) } else { p }),
            measure.fell,
        ),
        None if turns.is_empty() => return None,
        None => {
            let p = mcnemar(fell, rose);
            (p, p <= level)
        }
    };
    Some(UnmetTest { test: RuleTest { p, level, fell, rose }, fell: is_fall })
}

/// How a case changed with regard to its expectations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Fell,
    Rose,
    Same,
}

/// `None` for a case whose expectations were not judged on both sides.
fn turn(case: &CaseEvaluation) -> Option<Turn> {
    if let Some(measure) = case.measure(MeasureCode::Expectations) {
        // Cross-multiplied, so that no rounding makes equal rates differ.
        let (old, new) = (&measure.baseline, &measure.new);
        let before = u128::from(old.passed) * u128::from(new.runs);
        let after = u128::from(new.passed) * u128::from(old.runs);
        return Some(match after.cmp(&before) {
            std::cmp::Ordering::Less => Turn::Fell,
            std::cmp::Ordering::Greater => Turn::Rose,
            std::cmp::Ordering::Equal => Turn::Same,
        });
    }
    let judged: Option<Vec<_>> =
        case.expectations.iter().map(|result| Some((result.baseline.as_ref()?, result.new.as_ref()?))).collect();
    let judged = judged.filter(|judged| !judged.is_empty())?;
    let met = (judged.iter().all(|(old, _)| Judgement::is_met(old)), judged.iter().all(|(_, new)| new.is_met()));
    Some(match met {
        (true, false) => Turn::Fell,
        (false, true) => Turn::Rose,
        _ => Turn::Same,
    })
}

/// The one-sided exact p-value of the test of `McNemar`: the probability of at least so many falls among the cases that changed,
/// where a fall is as likely as a rise.
fn mcnemar(fell: u64, rose: u64) -> f64 {
    let changed = fell + rose;
    // The logarithm of each term from the one before, so that nothing overflows.
    let mut term = -(changed as f64) * std::f64::consts::LN_2;
    let mut p = 0.0;
    for falls in 0..=changed {
        if falls >= fell {
            p += term.exp();
        }
        term += ((changed - falls) as f64).ln() - ((falls + 1) as f64).ln();
    }
    p.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p_value_is_the_tail_of_the_binomial_distribution() {
        // Values of SciPy: binomtest(fell, fell + rose, alternative="greater").
        for (fell, rose, expected) in [(0, 0, 1.0), (5, 0, 0.03125), (9, 8, 0.5), (27, 6, 0.000_162_032), (0, 4, 1.0)] {
            assert!((mcnemar(fell, rose) - expected).abs() < 1e-6, "{fell} {rose}: {}", mcnemar(fell, rose));
        }
    }
}
