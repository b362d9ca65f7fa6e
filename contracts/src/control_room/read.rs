//! Reads the tiers of a store.

use super::evidence::process;
use super::item::stalled;
use super::{ControlRoom, ControlRoomOptions, Item, Tier, TierList};
use crate::contract::ContractKey;
use crate::lifecycle::State;
use crate::store::{Status, Store, StoreError, VersionHistory};

impl ControlRoom {
    /// Reads the control room of a store.
    pub fn read(store: &Store, options: &ControlRoomOptions<'_>) -> Result<Self, StoreError> {
        let mut statuses = store.statuses()?;
        let contracts = statuses.len() as u64;
        let cancelled = statuses.iter().filter(|it| it.state == State::Cancelled).count() as u64;
        statuses.sort_by(|a, b| (a.in_state_since(), &a.project, &a.id).cmp(&(b.in_state_since(), &b.project, &b.id)));
        let mut lists: Vec<(Tier, Vec<Status>)> = Tier::ALL.into_iter().map(|tier| (tier, Vec::new())).collect();
        for status in statuses {
            let tier = tier_of(store, &status, options)?;
            if let Some((_, list)) = lists.iter_mut().find(|(it, _)| Some(*it) == tier) {
                list.push(status);
            }
        }
        let tiers = lists.into_iter().map(|(tier, list)| tier_list(store, tier, list, options));
        Ok(Self { generated_at: options.now, contracts, cancelled, tiers: tiers.collect::<Result<_, _>>()? })
    }
}

fn tier_of(store: &Store, status: &Status, options: &ControlRoomOptions<'_>) -> Result<Option<Tier>, StoreError> {
    let needs_decision = status.awaits_approval || status.rollback_refused;
    Ok(Some(match status.state {
        State::Cancelled => return Ok(None),
        State::Completed | State::RolledBack if needs_decision => return Ok(None),
        _ if needs_decision => Tier::NeedsDecision,
        State::Failed | State::RollingBack | State::RolledBack => Tier::Anomaly,
        State::Completed => Tier::Completed,
        State::Pending | State::Ready => Tier::Queued,
        State::Claimed | State::Executing | State::Verifying => {
            // Only these read the history of the contract, because only they can be worked on by a process.
            let process = || Ok(process(&version(store, status)?));
            match stalled(status, options, process)? {
                Some(_) => Tier::Anomaly,
                None if status.state == State::Claimed => Tier::Queued,
                None => Tier::Running,
            }
        }
    }))
}

fn version(store: &Store, status: &Status) -> Result<VersionHistory, StoreError> {
    store.version(&ContractKey { id: status.id.clone(), version: Some(status.version) })
}

/// Lists the contracts of a tier, which are sorted by age.
fn tier_list(
    store: &Store,
    tier: Tier,
    mut sorted: Vec<Status>,
    options: &ControlRoomOptions<'_>,
) -> Result<TierList, StoreError> {
    let count = sorted.len() as u64;
    if tier == Tier::Completed {
        // What was completed last is of interest; in the other tiers, what waits for longest.
        sorted.drain(..sorted.len().saturating_sub(options.listed_completed));
    } else {
        sorted.truncate(options.listed);
    }
    let item = |status: &Status| Ok(Item::new(status, tier, &version(store, status)?, options));
    Ok(TierList { tier, count, items: sorted.iter().map(item).collect::<Result<_, StoreError>>()? })
}
