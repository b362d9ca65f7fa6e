//! The demo's cases file, and the fault planted in each case.

/// The cases file, as JSON.
pub const CASES: &str = include_str!("../data/cases.json");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planted {
    /// The ID of the case.
    pub case_id: &'static str,
    /// The expected verdict of a comparison.
    pub verdict: &'static str,
    pub story: &'static str,
}

/// The planted faults of all cases, in the order of the cases file.
pub const PLANTED: [Planted; 10] = [
    Planted {
        case_id: "order_history_001",
        verdict: "unchanged",
        story: "Both variants do and say the same. One tool result is large, so the run keeps it as an asset.",
    },
    Planted {
        case_id: "return_policy_001",
        verdict: "changed",
        story: "The same facts in other words. No expectation says which wording is better.",
    },
    Planted {
        case_id: "refund_damaged_001",
        verdict: "regressed",
        story: "The new variant refunds the whole order, 500 EUR, instead of the broken lamp, 50 EUR.",
    },
    Planted {
        case_id: "cancel_order_001",
        verdict: "regressed",
        story: "The same action is now of high risk, and nothing is given to support it.",
    },
    Planted {
        case_id: "address_change_001",
        verdict: "regressed",
        story: "The new variant no longer verifies the customer, so its action has lost its evidence.",
    },
    Planted {
        case_id: "invoice_email_001",
        verdict: "changed",
        story: "The mail tool fails, and the new variant says so. No expectation forbids it.",
    },
    Planted { case_id: "stock_check_001", verdict: "broken", story: "The new variant answers with HTTP 500." },
    Planted { case_id: "gift_advice_001", verdict: "broken", story: "The new variant does not answer in time." },
    Planted {
        case_id: "loyalty_points_001",
        verdict: "broken",
        story: "The new variant's answer breaks off in the middle of its JSON.",
    },
    Planted {
        case_id: "delivery_slot_001",
        verdict: "recovered",
        story: "The baseline could not reach its calendar (HTTP 503). The new variant can.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_the_file_is_listed_in_order() {
        let cases: Vec<serde_json::Value> = serde_json::from_str(CASES).unwrap();
        let ids: Vec<&str> = cases.iter().map(|case| case["id"].as_str().unwrap()).collect();
        assert_eq!(ids, PLANTED.map(|planted| planted.case_id));
    }
}
