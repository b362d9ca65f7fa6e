//! False alarms and power of the built program over nights of synthetic agents with known pass rates.

use camino::Utf8Path;

use crate::step::Failure;

/// Simulates nights, and prints a row for each design.
#[expect(clippy::unnecessary_wraps, reason = "the section is a skeleton")]
pub(super) fn run(_program: &Utf8Path, _nights: u32, _only: Option<&str>) -> Result<(), Failure> {
    Ok(())
}
