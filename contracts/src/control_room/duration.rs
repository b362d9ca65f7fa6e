//! Durations for people.

use jiff::Timestamp;

/// Returns the milliseconds from one time to another. Zero if the second one is earlier, as after a change of the clock.
pub fn millis_between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.duration_since(start).as_millis()).unwrap_or(0)
}

/// Returns a duration with its two largest units.
pub fn show(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    };
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{seconds}.{} s", millis % 1000 / 100),
        _ if hours == 0 => two(minutes, "min", seconds % 60, "s"),
        _ if days == 0 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_its_two_largest_units() {
        for (millis, shown) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (12_345, "12.3 s"),
            (60_000, "1 min"),
            (90_500, "1 min 30 s"),
            (3_600_000, "1 h"),
            (7_261_000, "2 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(show(millis), shown);
        }
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_duration() {
        let (one, two) = ("2026-01-01T00:00:00Z".parse().unwrap(), "2026-01-01T00:00:02Z".parse().unwrap());
        assert_eq!((millis_between(one, two), millis_between(two, one)), (2000, 0));
    }
}
