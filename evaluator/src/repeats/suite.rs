//! All cases together: the rates of each measure, and the gate rule that tests them.

use counterproof_artifact::evaluation::{GateRule, MeasureCode, RuleTest, SuiteMeasure};

use super::measures::{ConfirmationRuns, Measures};
use super::run_result::CaseResults;
use crate::gate::{self, GateRules};
use crate::statistics::Thresholds;

/// The rates of all cases together, and the p-value of the whole night.
#[derive(Debug, Clone)]
pub(crate) struct SuiteAnalysis {
    /// One entry for each measure that at least one case has.
    pub(crate) measures: Vec<SuiteMeasure>,
    /// The p-value of the worst result on either level, a case or the suite.
    p: Option<f64>,
    /// The level of the tests.
    pub(crate) level: f64,
}

impl SuiteAnalysis {
    /// Tests one run per side: the exact test of `McNemar` over the cases that both sides have.
    pub(crate) fn of_one_run(cases: &[CaseResults], thresholds: &Thresholds) -> Self {
        Self::of_measures(&Measures::new(cases, &ConfirmationRuns::one_run(), thresholds), thresholds)
    }

    pub(super) fn of_measures(measures: &Measures, thresholds: &Thresholds) -> Self {
        Self { measures: measures.suite.clone(), p: measures.p, level: thresholds.alpha.value() }
    }
}

/// The gate rule over all cases together: violated if the combined measure fell.
pub(crate) fn suite_rule(suite: &SuiteAnalysis, limits: &GateRules) -> GateRule {
    let solved = suite.measures.iter().find(|measure| measure.code == MeasureCode::Solved);
    let fell = solved.is_some_and(|solved| solved.fell);
    let rule = gate::at_most("suite_fell", limits.suite_fell, u64::from(fell), u64::from(solved.is_some()));
    let test = solved.filter(|_| rule.limit.is_some()).map(|solved| RuleTest {
        // The suite is rejected only if the joint test of both levels is, so the larger of the two decides.
        p: suite.p.map_or(solved.p, |p| p.max(solved.p)),
        level: suite.level,
        fell: solved.cases_fell,
        rose: solved.cases_rose,
    });
    GateRule { test, ..rule }
}
