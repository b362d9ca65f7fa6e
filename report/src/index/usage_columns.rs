//! The columns of a list of cases about time, size and cost.

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, UsageCode};

use counterproof_evaluator::messages::usage;

/// The quantities that lists can show. Tool time is a part of the duration, and only on the page of the case.
const LISTED: [UsageCode; 4] = [UsageCode::Duration, UsageCode::Steps, UsageCode::Tokens, UsageCode::Cost];

/// The quantities that the lists of a comparison show: those that new has in some case.
#[derive(Debug, Clone)]
pub(crate) struct UsageColumns {
    codes: Vec<UsageCode>,
}

/// A quantity of a case on new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageCell {
    /// The name of the quantity, for lists without columns.
    pub(crate) name: &'static str,
    /// The value; empty where new does not have it.
    pub(crate) value: String,
    /// The change against baseline, where it is notable; otherwise empty.
    pub(crate) change: String,
}

impl UsageColumns {
    /// The columns of a comparison. A quantity that is 0 in every case has none.
    pub(crate) fn new(evaluation: &Evaluation) -> Self {
        let on_new = |case: &CaseEvaluation, code| case.usage.as_ref()?.new.as_ref()?.get(code);
        let is_shown =
            |code: &UsageCode| evaluation.cases.iter().any(|case| on_new(case, *code).is_some_and(|value| value > 0.0));
        Self { codes: LISTED.into_iter().filter(is_shown).collect() }
    }

    /// The heading of each column.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.codes.iter().map(|code| usage::quantity(*code)).collect()
    }

    /// The cells of a case, one for each column.
    pub(crate) fn cells(&self, case: &CaseEvaluation) -> Vec<UsageCell> {
        self.codes.iter().map(|code| cell(*code, case)).collect()
    }
}

fn cell(code: UsageCode, case: &CaseEvaluation) -> UsageCell {
    let new = case.usage.as_ref().and_then(|sides| sides.new.as_ref());
    let value = new.and_then(|side| Some(usage::amount(code, side.get(code)?, side.currency_of(code))));
    let change = case.usage.as_ref().and_then(|sides| sides.compared(code));
    UsageCell {
        name: usage::quantity(code),
        value: value.unwrap_or_default(),
        change: change.and_then(|(baseline, new)| usage::notable_change(code, baseline, new)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(usage: &serde_json::Value) -> CaseEvaluation {
        let case = json!({"case_id": "c", "verdict": "changed", "reasons": [], "usage": usage});
        serde_json::from_value(case).unwrap()
    }

    #[test]
    fn a_cell_has_the_value_of_new_and_a_notable_change() {
        let both =
            |baseline: serde_json::Value, new: serde_json::Value| case(&json!({"baseline": baseline, "new": new}));
        let text = |code, case: &CaseEvaluation| {
            let cell = cell(code, case);
            (cell.value, cell.change)
        };
        let strings = |value: &str, change: &str| (value.to_owned(), change.to_owned());
        let grown =
            both(json!({"steps": 5, "cost": 1, "currency": "USD"}), json!({"steps": 95, "cost": 3, "currency": "EUR"}));
        assert_eq!(text(UsageCode::Steps, &grown), strings("95", "×19"));
        assert_eq!(text(UsageCode::Cost, &grown), strings("3 EUR", ""), "other currencies are not compared");
        assert_eq!(text(UsageCode::Duration, &grown), strings("", ""));
        assert_eq!(text(UsageCode::Steps, &case(&json!({"new": {"steps": 3}}))), strings("3", ""));
        assert_eq!(text(UsageCode::Steps, &case(&json!({"baseline": {"steps": 3}}))), strings("", ""));
    }
}
