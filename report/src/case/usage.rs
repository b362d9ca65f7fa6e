//! Time, size and cost of a case on both sides.

use counterproof_artifact::evaluation::{CaseUsage, SideUsage, UsageCode};

use super::context::CaseContext;
use counterproof_evaluator::messages::usage;

/// The section.
#[derive(Debug, Clone)]
pub(crate) struct UsageView {
    /// A row for each quantity that a side has; at least one.
    pub(crate) rows: Vec<UsageRow>,
    /// Whether the values are medians over several runs.
    pub(crate) is_median: bool,
}

/// A quantity on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageRow {
    pub(crate) name: &'static str,
    /// The value on baseline; empty where it is unknown.
    pub(crate) baseline: String,
    /// The value on new; empty where it is unknown.
    pub(crate) new: String,
    /// The change from baseline to new; empty where a value is unknown.
    pub(crate) change: String,
}

/// The section, where a side has an answer.
pub(crate) fn view(context: &CaseContext<'_>) -> Option<UsageView> {
    let row = &context.case.row;
    let sides = row.usage.as_ref()?;
    let rows: Vec<_> = UsageCode::ALL.into_iter().filter_map(|code| usage_row(code, sides)).collect();
    (!rows.is_empty()).then_some(UsageView { rows, is_median: row.repeats.is_some() })
}

/// The row of a quantity; `None` where no side has it.
fn usage_row(code: UsageCode, sides: &CaseUsage) -> Option<UsageRow> {
    let text = |side: &Option<SideUsage>| {
        let side = side.as_ref()?;
        Some(usage::amount(code, side.get(code)?, side.currency_of(code)))
    };
    let (baseline, new) = (text(&sides.baseline), text(&sides.new));
    if baseline.is_none() && new.is_none() {
        return None;
    }
    Some(UsageRow {
        name: usage::quantity(code),
        baseline: baseline.unwrap_or_default(),
        new: new.unwrap_or_default(),
        change: sides.compared(code).map(|(before, after)| usage::change(before, after)).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(steps: f64, cost: Option<f64>, currency: &str) -> SideUsage {
        SideUsage {
            steps: steps.into(),
            cost: cost.map(Into::into),
            currency: Some(currency.to_owned()),
            ..SideUsage::default()
        }
    }

    fn row(code: UsageCode, baseline: Option<&SideUsage>, new: Option<&SideUsage>) -> Option<[String; 3]> {
        let sides = CaseUsage { baseline: baseline.cloned(), new: new.cloned() };
        usage_row(code, &sides).map(|row| [row.baseline, row.new, row.change])
    }

    #[test]
    fn a_row_has_the_values_that_are_known_and_their_change() {
        let (old, new) = (side(5.0, Some(1.0), "USD"), side(95.0, Some(1.43), "USD"));
        let strings = |row: [&str; 3]| Some(row.map(str::to_owned));
        assert_eq!(row(UsageCode::Steps, Some(&old), Some(&new)), strings(["5", "95", "×19"]));
        assert_eq!(row(UsageCode::Cost, Some(&old), Some(&new)), strings(["1 USD", "1.43 USD", "+43 %"]));
        assert_eq!(row(UsageCode::Steps, None, Some(&new)), strings(["", "95", ""]));
        assert_eq!(row(UsageCode::Duration, Some(&old), Some(&new)), None);
        let euro = side(5.0, Some(2.0), "EUR");
        assert_eq!(row(UsageCode::Cost, Some(&old), Some(&euro)), strings(["1 USD", "2 EUR", ""]));
    }
}
