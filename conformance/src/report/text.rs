//! For a person.

use std::fmt::Write as _;

use super::Report;

/// One line a vector, with what is wrong below it, and the sums at the end.
pub fn text(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (place, subject) in report.subjects.iter().enumerate() {
        let _ = writeln!(text, "{subject}");
        for verdict in report.verdicts.iter().filter(|verdict| verdict.subject == place) {
            let (word, reason) = match &verdict.skipped {
                Some(reason) => ("skip", format!(" ({reason})")),
                None if verdict.wrong.is_empty() => ("pass", String::new()),
                None => ("FAIL", String::new()),
            };
            let _ = writeln!(text, "  {word}  {}  {}{reason}", verdict.id, verdict.name);
            for line in verdict.wrong.iter().flat_map(|wrong| wrong.lines()) {
                let _ = writeln!(text, "        {line}");
            }
        }
    }
    for (group, id) in &report.vectors.out_of_scope {
        let _ = writeln!(text, "out of scope: {id} ({group})");
    }
    let (passed, failed, skipped) = report.counts();
    let out = report.vectors.out_of_scope.len();
    let _ = writeln!(text, "{passed} passed, {failed} failed, {skipped} skipped, {out} out of scope");
    text
}
