//! Findings as workflow commands, which GitHub Actions shows as annotations in a pull request.
//!
//! Escaping follows the runner's toolkit (`@actions/core`, `command.ts`): `%`, CR and LF in data, and `:` and `,` too in
//! properties.

use std::fmt::Write as _;

use counterproof_artifact::escape_invisible;
use counterproof_validation::Report;

pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let _ = write!(text, "::error file={}", property(finding.file.as_str()));
        if let Some(position) = finding.position {
            let _ = write!(text, ",line={},col={}", position.line, position.column);
        }
        let place = if finding.pointer.is_empty() { String::new() } else { format!(" at {}", finding.pointer) };
        let message = format!("{}{place}; expected {} ({})", finding.message, finding.expected, finding.remedy);
        let _ = writeln!(text, ",title={}::{}", property(finding.code.as_str()), data(&message));
    }
    text.push_str(&super::summary(report));
    text.push('\n');
    text
}

/// Escapes the data of a command. Invisible characters, including line breaks, are spelled out first, which leaves only `%`.
fn data(text: &str) -> String {
    escape_invisible(text).replace('%', "%25")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::fixture;

    #[test]
    fn commands_are_escaped() {
        insta::assert_snapshot!(super::render(&fixture::report()), @r#"
        ::error file=runs/new/r 1/a%2Cb%3Ac.json,line=7,col=14,title=wrong-value::100%25 wrong at /version\u{202e}; expected one of `baseline`, `new` (write one of the allowed values)
        ::error file=b.json,title=unreadable::permission denied; expected a file that can be read (check that it exists and that you have permission to read it)
        2 findings in 2 of 12 files (1 run folder, 3 other JSON files skipped)
        "#);
    }
}
