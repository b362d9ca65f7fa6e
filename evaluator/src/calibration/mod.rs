//! How often the gate fails for nothing on a suite, and what it would find: measured with the runs of one baseline.
//!
//! [`calibrate`] deals the runs to a "baseline" and a "new" side in many ways, and compares each deal as if they were two versions.
//! Both sides are the same agent, so every failed gate is a false alarm.

mod calibrate;
mod deals;
mod smallest_fall;

pub use calibrate::{Calibration, FalseAlarms, calibrate};
pub use deals::Design;
pub use smallest_fall::SmallestFall;
