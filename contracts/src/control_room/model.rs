//! The control room as a value.

use jiff::Timestamp;
use serde::Serialize;

use super::Item;

/// The contracts of a store by the attention that they need.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ControlRoom {
    /// The time at which it was read. Durations end at it.
    pub generated_at: Timestamp,
    /// The number of contracts in the store.
    pub contracts: u64,
    /// The number of cancelled contracts, which are in no tier.
    pub cancelled: u64,
    /// All tiers, highest first.
    pub tiers: Vec<TierList>,
}

/// The attention that a contract needs, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A person must decide.
    NeedsDecision,
    /// The work failed, was undone, or makes no progress.
    Anomaly,
    /// The check passed.
    Completed,
    /// Someone works on it.
    Running,
    /// It waits for its dependencies or for an owner.
    Queued,
}

/// The contracts of a tier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierList {
    pub tier: Tier,
    /// The number of its contracts.
    pub count: u64,
    /// The oldest ones, oldest first. Of the completed contracts, the newest ones.
    pub items: Vec<Item>,
}

impl Tier {
    /// All tiers, highest first.
    pub const ALL: [Tier; 5] = [Tier::NeedsDecision, Tier::Anomaly, Tier::Completed, Tier::Running, Tier::Queued];

    /// Returns the heading.
    pub const fn title(self) -> &'static str {
        match self {
            Tier::NeedsDecision => "Needs a decision",
            Tier::Anomaly => "Anomalies",
            Tier::Completed => "Completed",
            Tier::Running => "Running",
            Tier::Queued => "Queued",
        }
    }
}

impl TierList {
    /// Returns a note on the contracts that are not listed. Empty if all are.
    pub fn omission(&self, listed: usize) -> String {
        let omitted = self.count.saturating_sub(listed as u64);
        let omitted = counterproof_artifact::group_digits(omitted);
        match (self.count > listed as u64, self.tier) {
            (false, _) => String::new(),
            (true, Tier::Completed) => format!("the latest {listed}; {omitted} earlier ones are not listed"),
            (true, _) => format!("the oldest {listed}; {omitted} more are not listed"),
        }
    }
}

impl ControlRoom {
    pub fn tier(&self, tier: Tier) -> Option<&TierList> {
        self.tiers.iter().find(|it| it.tier == tier)
    }
}
