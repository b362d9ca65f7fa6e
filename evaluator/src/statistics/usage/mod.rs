//! Time, size and cost over all cases: the sums, the test and the typical ratio.

mod ratio;
mod signed_rank;

use counterproof_artifact::Quantity;
use counterproof_artifact::evaluation::{CaseEvaluation, UsageCode, UsageMeasure};

use ratio::{log_ratio, typical};

/// Compares each quantity over the cases in which both sides have it; quantities without such a case are left out.
pub(crate) fn compare_all(cases: &[CaseEvaluation]) -> Vec<UsageMeasure> {
    UsageCode::ALL.into_iter().filter_map(|code| compare_one(code, cases)).collect()
}

/// The p-value of the one-sided signed-rank test that a quantity grew by more than this share; 1 without a case.
pub(crate) fn growth_p(code: UsageCode, cases: &[CaseEvaluation], growth: f64) -> f64 {
    let Some((values, _)) = pairs(code, cases) else { return 1.0 };
    let allowed = growth.ln_1p();
    let beyond: Vec<_> = values.iter().map(|(baseline, new)| log_ratio(*baseline, *new) - allowed).collect();
    signed_rank::test(&beyond).p
}

/// The values of both sides, in the order of the cases.
type Values = Vec<(f64, f64)>;

/// The values of a quantity in the cases in which both sides have it, and their currency; `None` without such a case.
fn pairs(code: UsageCode, cases: &[CaseEvaluation]) -> Option<(Values, Option<&str>)> {
    let mut pairs = cases.iter().filter_map(|case| {
        let usage = case.usage.as_ref()?;
        Some((usage.compared(code)?, usage.new.as_ref()?.currency_of(code)))
    });
    let ((first, currency), others) = (pairs.next()?, pairs);
    // Sums of several currencies mean nothing: the first currency counts, the cases in others are left out.
    let same = others.filter(|(_, other)| *other == currency).map(|(values, _)| values);
    Some((std::iter::once(first).chain(same).collect(), currency))
}

fn compare_one(code: UsageCode, cases: &[CaseEvaluation]) -> Option<UsageMeasure> {
    let (values, currency) = pairs(code, cases)?;
    let logs: Vec<f64> = values.iter().map(|(baseline, new)| log_ratio(*baseline, *new)).collect();
    let tested = signed_rank::test(&logs);
    let count = |is: fn(&f64) -> bool| logs.iter().filter(|log| is(log)).count() as u64;
    Some(UsageMeasure {
        code,
        cases: values.len() as u64,
        baseline: sum(values.iter().map(|(baseline, _)| *baseline)),
        new: sum(values.iter().map(|(_, new)| *new)),
        currency: currency.map(str::to_owned),
        rose: count(|log| *log > 0.0),
        fell: count(|log| *log < 0.0),
        p: tested.p,
        method: tested.method,
        ratio: typical(logs),
    })
}

/// The sum, rounded to 15 significant digits, which hides the rounding errors of decimal fractions.
fn sum(values: impl Iterator<Item = f64>) -> Quantity {
    let sum: f64 = values.sum();
    format!("{sum:.14e}").parse().unwrap_or(sum).into()
}
