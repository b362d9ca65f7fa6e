//! Output formats of `counterproof validate`: one function per format, from a report to text.

mod github;
mod human;
mod json;
mod sarif;

use std::fmt::Write as _;

use counterproof_validation::Report;

pub(crate) use human::render_finding;

/// Values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Source excerpts with the finding, the expected value and a remedy
    Human,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
    /// Workflow commands, which GitHub shows as annotations in a pull request
    Github,
}

/// Renders a report.
pub(crate) fn render(report: &Report, format: Format) -> String {
    match format {
        Format::Human => human::render(report),
        Format::Json => json::render(report),
        Format::Sarif => sarif::render(report),
        Format::Github => github::render(report),
    }
}

/// Returns one line with the number of findings and of checked files.
fn summary(report: &Report) -> String {
    let count = |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let mut text = if report.findings.is_empty() {
        format!("{} valid", count(report.files, "file is", "files are"))
    } else {
        let mut files: Vec<_> = report.findings.iter().map(|finding| &finding.file).collect();
        files.sort_unstable();
        files.dedup();
        let findings = count(report.findings.len(), "finding", "findings");
        format!("{findings} in {} of {}", files.len(), count(report.files, "file", "files"))
    };
    let mut notes = Vec::new();
    if report.runs > 0 {
        notes.push(count(report.runs, "run folder", "run folders"));
    }
    if report.skipped > 0 {
        notes.push(format!("{} skipped", count(report.skipped, "other JSON file", "other JSON files")));
    }
    if !notes.is_empty() {
        let _ = write!(text, " ({})", notes.join(", "));
    }
    text
}

#[cfg(test)]
mod fixture {
    use camino::Utf8PathBuf;
    use counterproof_validation::{Code, Excerpt, Finding, Position, Report};

    /// Returns two findings: one at a position of a file with control characters, one about a whole file.
    pub(super) fn report() -> Report {
        let text = "  \"events\": [],\n  \"version\": \"\u{1b}[2Jold\u{202e}\",\t\"x\": 1".to_owned();
        let start = text.find("\"\u{1b}").unwrap();
        let end = text.find(",\t").unwrap();
        let placed = Finding {
            code: Code::WrongValue,
            file: Utf8PathBuf::from("runs/new/r 1/a,b:c.json"),
            pointer: "/version\u{202e}".to_owned(),
            position: Some(Position { line: 7, column: 14 }),
            excerpt: Some(Excerpt { text, first_line: 6, span: start..end }),
            message: "100% wrong".to_owned(),
            expected: "one of `baseline`, `new`".to_owned(),
            remedy: Code::WrongValue.remedy().to_owned(),
        };
        let whole = Finding {
            code: Code::Unreadable,
            file: Utf8PathBuf::from("b.json"),
            pointer: String::new(),
            position: None,
            excerpt: None,
            message: "permission denied".to_owned(),
            expected: "a file that can be read".to_owned(),
            remedy: Code::Unreadable.remedy().to_owned(),
        };
        Report { findings: vec![placed, whole], files: 12, runs: 1, skipped: 3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_findings_and_files() {
        assert_eq!(
            summary(&fixture::report()),
            "2 findings in 2 of 12 files (1 run folder, 3 other JSON files skipped)"
        );
        assert_eq!(summary(&Report { files: 1, ..Report::default() }), "1 file is valid");
        assert_eq!(summary(&Report { files: 4, runs: 2, ..Report::default() }), "4 files are valid (2 run folders)");
    }

    #[test]
    fn no_format_prints_control_characters() {
        for format in [Format::Json, Format::Sarif, Format::Github, Format::Human] {
            let text = render(&fixture::report(), format);
            let text = text.replace("\u{1b}[0m", "").replace("\u{1b}[1m", "");
            let hostile = text.contains("\u{1b}[2J") || text.contains('\u{202e}');
            assert!(!hostile, "{format:?}: {text}");
        }
    }
}
