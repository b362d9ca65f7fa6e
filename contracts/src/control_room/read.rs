//! Reads the tiers of a store. Memory is limited by the listed contracts, not by the size of the store.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::evidence::process;
use super::item::stalled;
use super::{ControlRoom, ControlRoomOptions, Item, Tier, TierList};
use crate::contract::{ContractId, ContractKey};
use crate::index::{AgeOrder, AgeQuery};
use crate::lifecycle::State;
use crate::store::{Status, Store, StoreError, VersionHistory};

/// The states of a contract in which a person can be needed.
const OPEN: [State; 7] = [
    State::Pending,
    State::Ready,
    State::Claimed,
    State::Executing,
    State::Verifying,
    State::Failed,
    State::RollingBack,
];

impl ControlRoom {
    /// Reads the control room of a store.
    pub fn read(store: &Store, options: &ControlRoomOptions<'_>) -> Result<Self, StoreError> {
        let counts = store.counts()?;
        let oldest = |states: &[State], needs_decision: bool| {
            let query = AgeQuery { states, needs_decision };
            let (count, found) = store.by_age(&query, AgeOrder::OldestFirst, options.listed)?;
            Ok::<_, StoreError>(Oldest { count, limit: options.listed, kept: found.into_iter().map(entry).collect() })
        };
        let decisions = oldest(&OPEN, true)?;
        let mut anomalies = oldest(&[State::Failed, State::RollingBack, State::RolledBack], false)?;
        let mut queued = oldest(&[State::Pending, State::Ready], false)?;
        let mut running = Oldest { count: 0, limit: options.listed, kept: BTreeMap::new() };
        for state in [State::Claimed, State::Executing, State::Verifying] {
            store.for_each(Some(state), |status| {
                if status.awaits_approval || status.rollback_refused {
                    return Ok(());
                }
                let tier = if stalled(status, options, || Ok(process(&version(store, status)?)))?.is_some() {
                    &mut anomalies
                } else if state == State::Claimed {
                    &mut queued
                } else {
                    &mut running
                };
                tier.push(status);
                Ok(())
            })?;
        }
        let query = AgeQuery { states: &[State::Completed], needs_decision: false };
        let (count, mut found) = store.by_age(&query, AgeOrder::NewestFirst, options.listed_completed)?;
        found.reverse();
        let lists =
            [decisions.into_list(), anomalies.into_list(), (count, found), running.into_list(), queued.into_list()];
        let tiers = Tier::ALL.into_iter().zip(lists);
        Ok(Self {
            generated_at: options.now,
            contracts: counts.values().sum(),
            cancelled: counts.get(&State::Cancelled).copied().unwrap_or_default(),
            tiers: tiers.map(|(tier, list)| tier_list(store, tier, list, options)).collect::<Result<_, _>>()?,
        })
    }
}

fn version(store: &Store, status: &Status) -> Result<VersionHistory, StoreError> {
    store.version(&ContractKey { id: status.id.clone(), version: Some(status.version) })
}

fn tier_list(
    store: &Store,
    tier: Tier,
    (count, listed): (u64, Vec<Status>),
    options: &ControlRoomOptions<'_>,
) -> Result<TierList, StoreError> {
    let item = |status: Status| Ok(Item::new(&status, tier, &version(store, &status)?, options));
    let items: Result<Vec<Item>, StoreError> = listed.into_iter().map(item).collect();
    Ok(TierList { tier, count, items: items? })
}

/// The order within a tier: oldest first, then by project.
type AgeKey = (Option<Timestamp>, String, ContractId);

/// The oldest contracts of a tier.
struct Oldest {
    count: u64,
    limit: usize,
    kept: BTreeMap<AgeKey, Status>,
}

fn entry(status: Status) -> (AgeKey, Status) {
    ((status.in_state_since(), status.project.clone(), status.id.clone()), status)
}

impl Oldest {
    fn push(&mut self, status: &Status) {
        self.count += 1;
        let (key, status) = entry(status.clone());
        self.kept.insert(key, status);
        if self.kept.len() > self.limit {
            self.kept.pop_last();
        }
    }

    fn into_list(self) -> (u64, Vec<Status>) {
        (self.count, self.kept.into_values().collect())
    }
}
