//! Names of measures, and probabilities as text.

use counterproof_artifact::evaluation::MeasureCode;

use crate::values::text;

/// Returns what a measure counts, for use after a number of runs.
pub const fn measure(code: MeasureCode) -> &'static str {
    match code {
        MeasureCode::Solved => "solved",
        MeasureCode::Answered => "answered",
        MeasureCode::Expectations => "expectations met",
        MeasureCode::Evidence => "evidence resolved",
    }
}

/// The further runs that would probably decide a case: `3 more runs per side, or 12 of baseline alone, would decide`.
pub fn more_runs(per_side: u64, of_baseline: Option<u64>) -> String {
    let more = text::count(usize::try_from(per_side).unwrap_or(usize::MAX), "more run", "more runs");
    match of_baseline {
        Some(baseline) => format!("{more} per side, or {baseline} more of baseline alone, would decide"),
        None => format!("{more} per side would decide"),
    }
}

/// Formats a probability with three decimals. Values below 0.001 are not told apart: no threshold is that fine.
pub fn probability(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}
