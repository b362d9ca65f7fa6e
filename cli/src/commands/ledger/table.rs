//! Tables for people: columns aligned for a terminal.

use counterproof_artifact::one_line;

/// The longest text of a cell in characters.
const LONGEST: usize = 300;

/// A value that is not known yet.
pub(super) const NO_VALUE: &str = "-";

/// An identity that is not set.
pub(super) const UNKNOWN: &str = "unknown";

/// Returns a table as text: a line for the names of the columns, and one for each row.
pub(super) fn table<const N: usize>(names: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut lines = vec![names.map(str::to_owned)];
    lines.extend(rows.into_iter().map(|row| row.map(|text| one_line(&text, LONGEST))));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns the text of a value that may be missing.
pub(super) fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NO_VALUE.to_owned(), |value| value.to_string())
}

/// Returns the text of an identity that may be missing.
pub(super) fn known(value: Option<&str>) -> String {
    value.filter(|value| !value.is_empty()).unwrap_or(UNKNOWN).to_owned()
}

/// Returns a time of the ledger to the millisecond.
pub(super) fn short_time(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, fraction)) => format!("{seconds}.{fraction:.3}Z"),
        None => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_texts_cannot_break_a_line() {
        let rows = [["a\nb".to_owned(), "2".to_owned()], ["\u{202e}".to_owned(), String::new()]];
        assert_eq!(table(["name", "n"], rows), "name      n\na b       2\n\\u{202e}\n");
    }

    #[test]
    fn times_are_shown_to_the_millisecond() {
        assert_eq!(short_time("2026-01-31T12:00:00.123456789Z"), "2026-01-31T12:00:00.123Z");
        assert_eq!(short_time("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00Z");
    }
}
