//! Lines of output without what is for terminals and logs: colours, control characters, and the times of a CI log.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// A regular expression of this program, which is valid.
pub(in crate::suite) fn regex(pattern: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "the patterns are constants that tests compile")]
    Regex::new(pattern).expect("a valid pattern")
}

/// Removes colours and other escape sequences, and carriage returns.
pub(super) fn plain(line: &str) -> Cow<'_, str> {
    static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
        regex("\u{1b}\\[[0-9;:?]*[ -/]*[@-~]|\u{1b}\\][^\u{7}\u{1b}]*(?:\u{7}|\u{1b}\\\\)|\u{1b}[@-Z\\\\-_]|\r")
    });
    ESCAPES.replace_all(line, "")
}

/// Removes the time at the start of a line of a CI log.
pub(super) fn without_time(line: &str) -> &str {
    static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"^\u{feff}?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z "));
    TIME.find(line).map_or(line, |time| &line[time.end()..])
}

/// Reports whether a line looks like a failure. Counts of zero do not.
pub(super) fn looks_failed(line: &str) -> bool {
    static FAILED: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"(?i)\b(?:fail(?:ed|ure|ures|s|ing)?|errors?|not ok|panic(?:ked)?|fatal|segmentation fault)\b|[✗✖✘✕]")
    });
    static NONE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?i)\b(?:0|no|zero) (?:tests? )?(?:fail(?:ed|ures?|ing)?|errors?)\b|\b(?:fail(?:ed|ures?)?|errors?)[:=] ?0\b",
        )
    });
    FAILED.is_match(line) && !NONE.is_match(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_times_and_carriage_returns_are_removed() {
        assert_eq!(plain("\u{1b}[1m\u{1b}[38;5;12mFAIL\u{1b}[0m x\r"), "FAIL x");
        assert_eq!(plain("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{7}"), "link");
        assert_eq!(without_time("2026-01-02T03:04:05.1234567Z ok 1"), "ok 1");
    }

    #[test]
    fn counts_of_zero_are_not_failures() {
        assert!(looks_failed("check 3: FAILED"));
        assert!(looks_failed("make: *** [Makefile:2: test] Error 1"));
        assert!(!looks_failed("12 checks, 0 failed"));
        assert!(!looks_failed("failures: 0"));
        assert!(!looks_failed("unfailing"));
    }
}
