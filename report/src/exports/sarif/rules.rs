//! The text of a SARIF rule: the meaning of the code of a reason or a finding.

use counterproof_validation::Code;

use counterproof_evaluator::ReasonCode;

/// The meaning of a code. For a code of a newer version, the words of the code itself.
pub(crate) fn meaning(code: &str) -> String {
    let of_reason = ReasonCode::parse(code).map(ReasonCode::meaning);
    let of_violation = || Code::ALL.iter().find(|known| known.as_str() == code).map(|known| known.meaning());
    of_reason.or_else(of_violation).map_or_else(|| code.replace('-', " "), str::to_owned)
}
