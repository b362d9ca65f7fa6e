//! The report as text.

use std::fmt::Write as _;

use super::Report;
use super::summary::Counts;
use crate::VectorStatus;

/// Returns one line per vector, its problems in the lines below it, and the counts in the last line.
pub fn text(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (subject, results) in report.by_subject() {
        let _ = writeln!(text, "{subject}");
        for result in results {
            let (word, reason) = match &result.status {
                VectorStatus::Passed => ("pass", String::new()),
                VectorStatus::Failed(_) => ("FAIL", String::new()),
                VectorStatus::Skipped(reason) => ("skip", format!(" ({reason})")),
            };
            let _ = writeln!(text, "  {word}  {}  {}{reason}", result.id, result.name);
            for line in result.problems().iter().flat_map(|problem| problem.lines()) {
                let _ = writeln!(text, "        {line}");
            }
        }
    }
    for (group, id) in &report.vectors.out_of_scope {
        let _ = writeln!(text, "out of scope: {id} ({group})");
    }
    let Counts { passed, failed, skipped } = report.counts();
    let out = report.vectors.out_of_scope.len();
    let _ = writeln!(text, "{passed} passed, {failed} failed, {skipped} skipped, {out} out of scope");
    text
}
