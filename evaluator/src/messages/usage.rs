//! Time, size and cost as text.

use counterproof_artifact::evaluation::{UsageCode, UsageMeasure};

/// The one-sided p-value up to which a rise of one quantity counts as more than chance: 0.05 over the five quantities
/// (Bonferroni), so that at most one in twenty comparisons of equal agents names one.
pub(crate) const ROSE_AT: f64 = 0.01;

/// The growth from which on a factor is easier to read than a percentage.
const FACTOR_FROM: f64 = 2.0;

/// The change of a tool time that cannot be, because it is longer than the duration.
pub const LONGER_THAN_WHOLE: &str = "longer than the duration";

/// Returns the name of a quantity.
pub const fn quantity(code: UsageCode) -> &'static str {
    match code {
        UsageCode::Duration => "duration",
        UsageCode::Steps => "steps",
        UsageCode::ToolTime => "tool time",
        UsageCode::Tokens => "tokens",
        UsageCode::Cost => "cost",
    }
}

/// Formats a value of a quantity with its unit, where the name is not the unit.
pub fn amount(code: UsageCode, value: f64, currency: Option<&str>) -> String {
    match code {
        UsageCode::Duration | UsageCode::ToolTime => duration(value),
        UsageCode::Steps | UsageCode::Tokens => three_digits(value),
        UsageCode::Cost => match currency {
            Some(currency) => format!("{} {}", three_digits(value), crate::values::text::one_line(currency, 8)),
            None => three_digits(value),
        },
    }
}

/// Compares the means per case: `duration 5.1 s → 6.2 s (+22 %, not chance)`.
pub(crate) fn mean_per_case(measure: &UsageMeasure) -> String {
    means(measure, rose(measure))
}

/// Compares the means per case of a quantity that fell by more than chance explains.
pub(crate) fn fall_per_case(measure: &UsageMeasure) -> String {
    means(measure, true)
}

fn means(measure: &UsageMeasure, is_beyond_chance: bool) -> String {
    let name = quantity(measure.code);
    let mean = |sum: f64| amount(measure.code, sum / measure.cases.max(1) as f64, measure.currency.as_deref());
    let (baseline, new) = (measure.baseline.value(), measure.new.value());
    if baseline.total_cmp(&new).is_eq() && measure.rose + measure.fell == 0 {
        return format!("{name} {} (unchanged)", mean(new));
    }
    let chance = if is_beyond_chance { ", not chance" } else { "" };
    let growth = measure.growth().map_or_else(|| "from 0".to_owned(), growth);
    format!("{name} {} → {} ({growth}{chance})", mean(baseline), mean(new))
}

/// The growth from which on a rise is named. With many cases, a test also excludes chance for a rise that costs nothing worth a
/// reader's time.
const NAMED_FROM: f64 = 0.1;

/// Rounding errors of a growth.
const ROUNDING: f64 = 1e-9;

/// Whether a quantity is larger on new by more than chance explains, and by enough to be named.
pub(crate) fn rose(measure: &UsageMeasure) -> bool {
    measure.p <= ROSE_AT && is_named_rise(measure)
}

/// Whether a quantity is larger on new by enough to be named, perhaps by chance.
pub(crate) fn is_named_rise(measure: &UsageMeasure) -> bool {
    // A rise from 0 has no percentage.
    measure.growth().map_or(measure.new.value() > 0.0, |growth| growth >= NAMED_FROM - ROUNDING)
}

/// Whether a quantity is so much smaller on new that work may have been left out. A small fall is an agent that became better.
pub(crate) fn fell_strongly(measure: &UsageMeasure) -> bool {
    measure.growth().is_some_and(|growth| (growth + 1.0) * NOTABLE_FACTOR <= 1.0 + ROUNDING)
}

/// The factor from which on the change of a single case is named, in either direction. Two answers of one agent rarely differ
/// more in their steps or tokens.
const NOTABLE_FACTOR: f64 = 1.5;

/// The milliseconds below which durations differ by the load of the machine alone.
const NOTABLE_MILLIS: f64 = 100.0;

/// The change of a quantity in a single case, where it is large enough to be named.
pub fn notable_change(code: UsageCode, baseline: f64, new: f64) -> Option<String> {
    let (smaller, larger) = if baseline < new { (baseline, new) } else { (new, baseline) };
    let is_time = matches!(code, UsageCode::Duration | UsageCode::ToolTime);
    if larger < NOTABLE_FACTOR * smaller || larger <= smaller || (is_time && larger < NOTABLE_MILLIS) {
        return None;
    }
    Some(change(baseline, new))
}

/// The change of a quantity: `+43 %`, `×20`, `from 0`, `unchanged`.
pub fn change(baseline: f64, new: f64) -> String {
    if baseline.total_cmp(&new).is_eq() {
        "unchanged".to_owned()
    } else if baseline > 0.0 {
        growth(new / baseline - 1.0)
    } else {
        "from 0".to_owned()
    }
}

/// The factor above which a number says nothing more: one side is simulated, or answers from a cache.
const FACTOR_UP_TO: f64 = 100.0;

/// Formats a relative growth: `+43 %`, `−3 %`, `×20`.
fn growth(growth: f64) -> String {
    let percent = (growth * 100.0).round();
    if growth + 1.0 > FACTOR_UP_TO {
        format!("over ×{FACTOR_UP_TO}")
    } else if growth + 1.0 >= FACTOR_FROM {
        format!("×{}", three_digits(growth + 1.0))
    } else if percent == 0.0 {
        "±0 %".to_owned()
    } else if percent < 0.0 {
        format!("−{} %", -percent)
    } else {
        format!("+{percent} %")
    }
}

/// Formats milliseconds in the unit that suits them.
pub(crate) fn duration(millis: f64) -> String {
    match millis {
        short if short < 999.5 => format!("{} ms", three_digits(short)),
        medium if medium < 119_950.0 => format!("{} s", three_digits(medium / 1000.0)),
        long => format!("{} min", three_digits(long / 60_000.0)),
    }
}

/// Formats a number of zero or more with three significant digits, or all digits before the decimal point.
fn three_digits(value: f64) -> String {
    if value == 0.0 || value >= 99.95 {
        return format!("{value:.0}");
    }
    // The first digit of a small cost can be far behind the point; nothing below 10^-12 is a price.
    let decimals = (0..12_u8).find(|digits| value * 10_f64.powi(i32::from(*digits)) >= 99.95).unwrap_or(12);
    let text = format!("{value:.*}", usize::from(decimals));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::evaluation::UsageMethod;

    use super::*;

    fn measure(baseline: f64, new: f64, p: f64) -> UsageMeasure {
        UsageMeasure {
            code: UsageCode::Cost,
            cases: 2,
            baseline: baseline.into(),
            new: new.into(),
            currency: Some("USD".to_owned()),
            rose: u64::from(new > baseline),
            fell: u64::from(new < baseline),
            p,
            method: UsageMethod::Exact,
            ratio: None,
        }
    }

    #[test]
    fn amounts_have_three_digits_and_a_unit() {
        let written = [0.0, 0.4, 12.0, 999.6, 51_234.0, 119_940.0, 3_600_000.0].map(duration);
        assert_eq!(written, ["0 ms", "0.4 ms", "12 ms", "1 s", "51.2 s", "120 s", "60 min"]);
        assert_eq!(amount(UsageCode::Tokens, 12_345.6, None), "12346");
        assert_eq!(amount(UsageCode::Cost, 0.000_123_456, Some("EUR")), "0.000123 EUR");
        assert_eq!(amount(UsageCode::Cost, 1.5, None), "1.5");
        assert_eq!(amount(UsageCode::Steps, 9.996, None), "10");
    }

    #[test]
    fn a_change_in_one_case_is_named_from_half_as_much_on() {
        let named = |code, baseline, new| notable_change(code, baseline, new).unwrap_or_default();
        let steps = [(5.0, 7.0), (5.0, 7.5), (5.0, 95.0), (6.0, 4.0), (6.0, 5.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)];
        let steps = steps.map(|(baseline, new)| named(UsageCode::Steps, baseline, new));
        assert_eq!(steps, ["", "+50 %", "×19", "−33 %", "", "from 0", "−100 %", ""]);
        assert_eq!(named(UsageCode::Duration, 4.0, 99.0), "", "a few milliseconds are the machine's");
        assert_eq!(named(UsageCode::Duration, 900.0, 50.0), "−94 %");
        assert_eq!((change(2.0, 2.0), change(2.0, 2.1)), ("unchanged".to_owned(), "+5 %".to_owned()));
    }

    #[test]
    fn a_comparison_of_means_has_its_growth_and_whether_a_rise_is_chance() {
        assert_eq!(mean_per_case(&measure(1.0, 1.43, 0.004)), "cost 0.5 USD → 0.715 USD (+43 %, not chance)");
        assert_eq!(mean_per_case(&measure(1.0, 20.0, 0.2)), "cost 0.5 USD → 10 USD (×20)");
        assert_eq!(mean_per_case(&measure(1.0, 0.5, 1.0)), "cost 0.5 USD → 0.25 USD (−50 %)");
        assert_eq!(mean_per_case(&measure(0.0, 0.5, 0.5)), "cost 0 USD → 0.25 USD (from 0)");
        assert_eq!(mean_per_case(&measure(1.0, 1.0, 1.0)), "cost 0.5 USD (unchanged)");
    }
}
