//! The decision of a policy about a call.

use counterproof_ledger::event::{BreakerTrip, DecisionRecord};

/// The decision about one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The decision, as the event states it.
    pub record: DecisionRecord,
    /// Risk classes that tag rules have added to the call.
    pub tags: Vec<String>,
    pub breaker: Option<BreakerTrip>,
}
