//! The test of the rule `unmet` with the baseline as its limit.

use counterproof_artifact::evaluation::{MeasureCode, RuleTest, SuiteMeasure};

/// The test of the rule `unmet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnmetTest {
    /// The test.
    pub test: RuleTest,
    /// Whether the fall is significant.
    pub fell: bool,
}

/// Whether new meets the expectations less often than the baseline, as the measures of all cases show it. `None` without
/// expectations that were judged on both sides.
pub(crate) fn unmet_test(suite: &[SuiteMeasure], level: f64) -> Option<UnmetTest> {
    let measure = |code: MeasureCode| suite.iter().find(|measure| measure.code == code);
    let expectations = measure(MeasureCode::Expectations)?;
    // A part counts as fallen only with the combined measure, so the larger p-value of the two decides.
    let p = measure(MeasureCode::Solved).map_or(expectations.p, |solved| solved.p.max(expectations.p));
    let test = RuleTest { p, level, fell: expectations.cases_fell, rose: expectations.cases_rose };
    Some(UnmetTest { test, fell: expectations.fell })
}
