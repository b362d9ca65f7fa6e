//! Time zones: offsets such as `+01:30`, and names of the IANA database, which is part of the program.

use jiff::tz::{Offset, TimeZone};

use crate::budget::{Stop, failed};
use crate::values::shortened;

/// Longest name or offset that is looked up, in bytes.
const MAX_BYTES: usize = 64;

pub(super) fn zone(name: &str) -> Result<TimeZone, Stop> {
    if let Some(offset) = fixed_offset(name) {
        return Ok(TimeZone::fixed(offset));
    }
    let known = (name.len() <= MAX_BYTES).then(|| TimeZone::get(name).ok()).flatten();
    match known {
        Some(zone) => Ok(zone),
        None => failed(format!("“{}” is not a time zone, such as Europe/Berlin or +01:00", shortened(name))),
    }
}

/// Parses `+01:30`, `-01:30` and `01:30`.
fn fixed_offset(text: &str) -> Option<Offset> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = unsigned.split_once(':')?;
    let number = |digits: &str| {
        let valid = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        valid.then(|| digits.parse::<i32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}
