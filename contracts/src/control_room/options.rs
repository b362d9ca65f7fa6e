//! What the caller of the control room passes in.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::WorkProcess;

/// The time after which a claimed contract should have been started.
const CLAIM_LIMIT: Duration = Duration::from_mins(5);

/// The time after which an execution or a verification should have ended.
const WORK_LIMIT: Duration = Duration::from_hours(24);

/// The maximum number of listed contracts of a tier.
const LISTED: usize = 500;

/// The maximum number of listed completed contracts.
const LISTED_COMPLETED: usize = 100;

/// Clock, limits and surroundings of a control room.
pub struct ControlRoomOptions<'a> {
    /// The time.
    pub now: Timestamp,
    /// A contract that is claimed for longer and was not started is an anomaly.
    pub claim_limit: Duration,
    /// A contract that is executed or verified for longer is an anomaly.
    pub work_limit: Duration,
    /// The maximum number of listed contracts of a tier.
    pub listed: usize,
    /// The maximum number of listed completed contracts.
    pub listed_completed: usize,
    /// Returns whether a process runs. `None` if that is unknown, as for a process of another machine.
    pub is_running: &'a dyn Fn(&WorkProcess) -> Option<bool>,
}

impl<'a> ControlRoomOptions<'a> {
    /// Options with the default limits.
    pub fn new(now: Timestamp, is_running: &'a dyn Fn(&WorkProcess) -> Option<bool>) -> Self {
        Self {
            now,
            claim_limit: CLAIM_LIMIT,
            work_limit: WORK_LIMIT,
            listed: LISTED,
            listed_completed: LISTED_COMPLETED,
            is_running,
        }
    }
}

impl fmt::Debug for ControlRoomOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlRoomOptions").field("now", &self.now).finish_non_exhaustive()
    }
}
