//! The expectations of the cases file with the result of each side.

use counterproof_artifact::evaluation::{ExpectationResult, Judgement};

use crate::view::display;
use counterproof_evaluator::text;

/// An expectation with the result of each side.
#[derive(Debug, Clone)]
pub(crate) struct ExpectationView {
    /// The key in the cases file.
    pub(crate) code: String,
    pub(crate) expected: String,
    pub(crate) baseline: Option<JudgementView>,
    pub(crate) new: Option<JudgementView>,
}

/// The result of one side.
#[derive(Debug, Clone)]
pub(crate) struct JudgementView {
    /// Whether the expectation is met.
    pub(crate) passed: bool,
    /// Whether the result is undecided.
    pub(crate) undecided: bool,
    pub(crate) found: String,
}

/// The expectations of a case.
pub(crate) fn view(results: &[ExpectationResult]) -> Vec<ExpectationView> {
    let judgement = |judgement: &Option<Judgement>| {
        judgement.as_ref().map(|judgement| JudgementView {
            passed: judgement.is_met(),
            undecided: judgement.is_undecided(),
            found: display::visible(judgement.found()),
        })
    };
    let expectation = |result: &ExpectationResult| ExpectationView {
        code: result.code.clone(),
        expected: display::visible(&result.expected),
        baseline: judgement(&result.baseline),
        new: judgement(&result.new),
    };
    results.iter().map(expectation).collect()
}

/// A summary where both sides meet all expectations; otherwise empty.
pub(crate) fn all_met(results: &[ExpectationResult]) -> String {
    let met = |judgement: &Option<Judgement>| judgement.as_ref().is_some_and(Judgement::is_met);
    if results.is_empty() || !results.iter().all(|result| met(&result.baseline) && met(&result.new)) {
        return String::new();
    }
    format!("{}, met on both sides", text::count(results.len(), "expectation", "expectations"))
}
