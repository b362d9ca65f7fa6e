//! Flipped cases: cases that look worse on new than on the baseline, before a confirmation decides whether they are.

use std::convert::Infallible;

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::Verdict;
use counterproof_store::ReadError;

use super::compare::{CompareError, Request, compare, pair};
use crate::repeats;

/// A case that looks worse on new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlippedCase {
    /// The case.
    pub case_id: CaseId,
    /// What is worse.
    pub reason: String,
}

/// Returns the flipped cases, in the order of the comparison.
///
/// With one run per side, these are the cases with the verdict `regressed` or `broken`: the ones that [`compare`] calls
/// unconfirmed. With more runs, these are the cases with a measure that looks worse.
pub fn flipped_cases(request: &Request<'_>) -> Result<Vec<FlippedCase>, ReadError> {
    if request.baseline.is_repeated() || request.new.is_repeated() {
        let ids = pair(&request.baseline, &request.new)?;
        let hints = repeats::hints(&request.baseline, &request.new, &ids, &request.expectations, &request.thresholds);
        return Ok(hints.into_iter().map(|(case_id, reason)| FlippedCase { case_id, reason }).collect());
    }
    let evaluation = match compare(request, |_| Ok::<_, Infallible>(())) {
        Ok(evaluation) => evaluation,
        Err(CompareError::Read(error)) => return Err(error),
        Err(CompareError::Sink(never)) => match never {},
    };
    let is_flipped = |verdict| matches!(verdict, Verdict::Regressed | Verdict::Broken);
    let flipped = evaluation.cases.into_iter().filter(|case| is_flipped(case.verdict)).map(|case| FlippedCase {
        reason: case.reasons.first().map(|reason| reason.message.clone()).unwrap_or_default(),
        case_id: case.case_id,
    });
    Ok(flipped.collect())
}
