//! Reads the tiers of a store.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::Item;
use super::item::{process, stalled};
use crate::contract::ContractKey;
use crate::lifecycle::State;
use crate::store::{Status, Store, StoreError, VersionHistory};

impl ControlRoom {
    pub fn read(store: &Store, options: &ControlRoomOptions<'_>) -> Result<Self, StoreError> {
        let mut statuses = store.statuses()?;
        let contracts = statuses.len() as u64;
        let cancelled = statuses.iter().filter(|it| it.state == State::Cancelled).count() as u64;
        // By age first: what waits for longest needs attention most.
        statuses.sort_by(|a, b| (a.in_state_since(), &a.project, &a.id).cmp(&(b.in_state_since(), &b.project, &b.id)));
        let mut lists: Vec<(Tier, Vec<Status>)> = Tier::ALL.into_iter().map(|tier| (tier, Vec::new())).collect();
        for status in statuses {
            let tier = tier_of(store, &status, options)?;
            // A cancelled contract has no tier and is only counted.
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

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ControlRoom {
    /// The time at which it was read. Durations end at it.
    pub generated_at: Timestamp,
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
    NeedsDecision,
    /// The work failed, was undone, or makes no progress.
    Anomaly,
    Completed,
    Running,
    /// It waits for its dependencies or for an owner.
    Queued,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierList {
    pub tier: Tier,
    /// The number of its contracts.
    pub count: u64,
    /// The oldest ones, oldest first. Of the completed contracts, the newest ones.
    pub items: Vec<Item>,
}

impl Tier {
    pub const ALL: [Tier; 5] = [Tier::NeedsDecision, Tier::Anomaly, Tier::Completed, Tier::Running, Tier::Queued];

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

const CLAIM_LIMIT: Duration = Duration::from_mins(5);

const WORK_LIMIT: Duration = Duration::from_hours(24);

const LISTED: usize = 500;

const LISTED_COMPLETED: usize = 100;

pub struct ControlRoomOptions<'a> {
    pub now: Timestamp,
    /// A contract that is claimed for longer and was not started is an anomaly.
    pub claim_limit: Duration,
    /// A contract that is executed or verified for longer is an anomaly.
    pub work_limit: Duration,
    /// The maximum number of listed contracts of a tier.
    pub listed: usize,
    pub listed_completed: usize,
    /// The command line before the name of a decision, with the store as a shell reads it.
    pub command: &'a str,
    /// Returns whether a process runs. `None` if that is unknown, as for a process of another machine.
    pub is_running: &'a dyn Fn(&WorkProcess) -> Option<bool>,
}

impl<'a> ControlRoomOptions<'a> {
    pub fn new(now: Timestamp, is_running: &'a dyn Fn(&WorkProcess) -> Option<bool>) -> Self {
        Self {
            now,
            claim_limit: CLAIM_LIMIT,
            work_limit: WORK_LIMIT,
            listed: LISTED,
            listed_completed: LISTED_COMPLETED,
            command: "counterproof contract",
            is_running,
        }
    }
}

impl fmt::Debug for ControlRoomOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlRoomOptions").field("now", &self.now).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkProcess {
    pub pid: u32,
    /// The name of its machine. `None` if it is not recorded.
    pub host: Option<String>,
}

impl WorkProcess {
    /// Returns whether the process runs on this machine, whose name is `host`. `None` for processes of other machines. A process
    /// that has got the same number later counts as the same one.
    pub fn is_running_on(&self, host: &str) -> Option<bool> {
        use rustix::io::Errno;
        use rustix::process::{Pid, test_kill_process};

        // A number means nothing on another machine. An empty name could be any machine.
        if host.is_empty() || self.host.as_deref() != Some(host) {
            return None;
        }
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        match test_kill_process(pid) {
            // A process of another user exists, although it cannot be signalled.
            Ok(()) | Err(Errno::PERM) => Some(true),
            Err(Errno::SRCH) => Some(false),
            Err(_) => None,
        }
    }
}
