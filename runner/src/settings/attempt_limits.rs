//! The time and size limits of one attempt.

use std::time::Duration;

use super::run_settings::{ByteLimits, PhaseTimeouts, Settings};

/// The cap on configured time-outs. A longer one has no practical use, and the system's clocks cannot represent all of them.
const MAX_TIMEOUT: Duration = Duration::from_hours(24 * 365);

/// The time and size limits of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptLimits {
    /// From the first packet to the last byte.
    pub(crate) timeout: Duration,
    /// From the first packet to the response headers; never more than `timeout`.
    pub(crate) first_byte: Duration,
    /// The longest pause within the body.
    pub(crate) idle: Duration,
    pub(crate) bytes: ByteLimits,
}

impl AttemptLimits {
    pub(crate) fn from_settings(settings: &Settings) -> Self {
        let timeout = settings.timeout.min(MAX_TIMEOUT);
        let PhaseTimeouts { first_byte, idle, .. } = settings.phases;
        let first_byte = first_byte.map_or(timeout, |first_byte| first_byte.min(timeout));
        Self { timeout, first_byte, idle: idle.min(MAX_TIMEOUT), bytes: settings.limits }
    }
}
