//! Names of measures, and probabilities as text.

use counterproof_artifact::evaluation::MeasureCode;

/// Returns what a measure counts, for use after a number of runs.
pub(crate) const fn measure(code: MeasureCode) -> &'static str {
    match code {
        MeasureCode::Answered => "answered",
        MeasureCode::Expectations => "expectations met",
        MeasureCode::Evidence => "evidence resolved",
    }
}

/// Formats a probability with three decimals. Values below 0.001 are not told apart: no threshold is that fine.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}
