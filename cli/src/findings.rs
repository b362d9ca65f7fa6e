//! Findings of `counterproof validate` in all output formats: text, GitHub annotations, JSON and SARIF.

use std::fmt::Write as _;

use annotate_snippets::{Group, Level, Renderer};
use counterproof_artifact::{escape_invisible, without_inline_commands};
use counterproof_report::{encode_path, sarif};
use counterproof_validation::{Code, Finding, Position, Report};
use serde_json::{Map, Value, json};

use crate::document_errors::snippet;

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

pub(crate) fn render(report: &Report, format: Format) -> String {
    match format {
        Format::Human => render_human(report),
        Format::Json => render_json(report),
        Format::Sarif => render_sarif(report),
        Format::Github => render_github(report),
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

/// Renders the findings and a summary. The output is styled; the stream removes the styles if it is not a terminal.
fn render_human(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&render_finding(&Level::ERROR, finding.code.as_str(), finding));
    }
    text.push_str(&summary(report));
    text.push('\n');
    // No line starts with the text of others, which leaves the older syntax of workflow commands. The styles have none.
    without_inline_commands(&text)
}

/// Renders one finding, with a blank line after it.
pub(crate) fn render_finding(level: &Level<'static>, code: &'static str, finding: &Finding) -> String {
    let renderer = Renderer::styled();
    let title = level.clone().primary_title(escape_invisible(&finding.message)).id(code);
    let mut text = renderer.render(&[Group::with_title(title)]);
    // The renderer would derive the column from the excerpt, which may be shortened or have escapes.
    let _ = write!(text, "\n --> {}", escape_invisible(finding.file.as_str()));
    if let Some(position) = finding.position {
        let _ = write!(text, ":{}:{}", position.line, position.column);
    }
    let _ = write!(text, "\n{}\n\n", renderer.render(&[body(level, finding)]));
    text
}

fn body(level: &Level<'static>, finding: &Finding) -> Group<'static> {
    let mut group = Group::with_level(level.clone());
    let expected = escape_invisible(&finding.expected);
    match &finding.excerpt {
        Some(excerpt) => group = group.element(snippet(excerpt, &format!("expected {expected}"))),
        None => group = group.element(Level::NOTE.with_name("expected").message(expected)),
    }
    if !finding.pointer.is_empty() {
        group = group.element(Level::NOTE.with_name("pointer").message(escape_invisible(&finding.pointer)));
    }
    group.element(Level::HELP.message(escape_invisible(&finding.remedy)))
}

fn render_github(report: &Report) -> String {
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
    text.push_str(&summary(report));
    text.push('\n');
    text
}

/// Returns a workflow command of GitHub Actions on its own line, such as an annotation without a file.
pub(crate) fn workflow_command(command: &str, title: &str, message: &str) -> String {
    format!("::{command} title={}::{}\n", property(title), data(message))
}

/// Escapes the data of a command. Invisible characters, including line breaks, are spelled out first, which leaves only `%`.
fn data(text: &str) -> String {
    escape_invisible(text).replace('%', "%25")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn render_json(report: &Report) -> String {
    let finding = |finding: &Finding| {
        let mut fields = json!({"code": finding.code.as_str(), "file": finding.file, "pointer": finding.pointer});
        // Left out and not null for a finding about a whole file: the fields have one type.
        if let Some(Position { line, column }) = finding.position {
            (fields["line"], fields["column"]) = (json!(line), json!(column));
        }
        fields["message"] = json!(finding.message);
        fields["expected"] = json!(finding.expected);
        fields["remedy"] = json!(finding.remedy);
        fields
    };
    crate::streams::to_json(&json!({
        "schema_version": "validation.v1",
        "summary": {
            "findings": report.findings.len(),
            "files": report.files,
            "run_folders": report.runs,
            "skipped": report.skipped,
        },
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    }))
}

fn render_sarif(report: &Report) -> String {
    let rule = |code: &Code| {
        json!({
            "id": code.as_str(),
            "shortDescription": {"text": code.meaning()},
            "help": {"text": code.remedy()},
            "defaultConfiguration": {"level": sarif::ERROR},
        })
    };
    let rules: Vec<_> = Code::ALL.iter().map(rule).collect();
    let results = report.findings.iter().map(sarif_result).collect();
    crate::streams::to_json(&sarif::log(&rules, Map::new(), results))
}

fn sarif_result(finding: &Finding) -> Value {
    let region = finding.position.map(|at| json!({"startLine": at.line, "startColumn": at.column}));
    let mut location = sarif::location(&uri(finding.file.as_str()), region);
    if !finding.pointer.is_empty() {
        location["logicalLocations"] = json!([{"fullyQualifiedName": finding.pointer, "kind": "value"}]);
    }
    json!({
        "ruleId": finding.code.as_str(),
        "ruleIndex": Code::ALL.iter().position(|code| *code == finding.code).unwrap_or_default(),
        "level": sarif::ERROR,
        "message": {"text": format!("{}; expected {}", finding.message, finding.expected)},
        "locations": [location],
    })
}

/// A path as a URI reference: an absolute path becomes a `file` URI, and a relative path stays relative.
fn uri(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let has_drive = cfg!(windows) && path.as_bytes().get(1) == Some(&b':');
    let scheme = if path.starts_with('/') {
        "file://"
    } else if has_drive {
        "file:///"
    } else {
        ""
    };
    format!("{scheme}{}", encode_path(&path))
}

#[cfg(test)]
mod tests {
    use super::{fixture, *};

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

    #[test]
    fn a_finding_has_its_source_line_position_and_remedy() {
        let text: String = anstream::adapter::strip_str(&render_human(&fixture::report())).to_string();
        insta::assert_snapshot!(text, @r#"
        error[wrong-value]: 100% wrong
         --> runs/new/r 1/a,b:c.json:7:14
          |
        6 |   "events": [],
        7 |   "version": "\u{1b}[2Jold\u{202e}",    "x": 1
          |              ^^^^^^^^^^^^^^^^^^^^^^ expected one of `baseline`, `new`
          |
          = pointer: /version\u{202e}
          = help: write one of the allowed values

        error[unreadable]: permission denied
         --> b.json
         = expected: a file that can be read
         = help: check that it exists and that you have permission to read it

        2 findings in 2 of 12 files (1 run folder, 3 other JSON files skipped)
        "#);
    }

    #[test]
    fn commands_are_escaped() {
        insta::assert_snapshot!(super::render_github(&fixture::report()), @r#"
        ::error file=runs/new/r 1/a%2Cb%3Ac.json,line=7,col=14,title=wrong-value::100%25 wrong at /version\u{202e}; expected one of `baseline`, `new` (write one of the allowed values)
        ::error file=b.json,title=unreadable::permission denied; expected a file that can be read (check that it exists and that you have permission to read it)
        2 findings in 2 of 12 files (1 run folder, 3 other JSON files skipped)
        "#);
    }

    #[test]
    fn the_document_has_the_documented_fields() {
        insta::assert_snapshot!(super::render_json(&fixture::report()), @r#"
        {
          "schema_version": "validation.v1",
          "summary": {
            "findings": 2,
            "files": 12,
            "run_folders": 1,
            "skipped": 3
          },
          "findings": [
            {
              "code": "wrong-value",
              "file": "runs/new/r 1/a,b:c.json",
              "pointer": "/version\u202e",
              "line": 7,
              "column": 14,
              "message": "100% wrong",
              "expected": "one of `baseline`, `new`",
              "remedy": "write one of the allowed values"
            },
            {
              "code": "unreadable",
              "file": "b.json",
              "pointer": "",
              "message": "permission denied",
              "expected": "a file that can be read",
              "remedy": "check that it exists and that you have permission to read it"
            }
          ]
        }
        "#);
    }

    #[test]
    fn results_refer_to_listed_rules_and_files_as_uris() {
        let log: Value = serde_json::from_str(&render_sarif(&fixture::report())).unwrap();
        let run = &log["runs"][0];
        assert_eq!(log["version"], "2.1.0");
        assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), Code::ALL.len());
        for result in run["results"].as_array().unwrap() {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
        let location = &run["results"][0]["locations"][0];
        assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], "runs/new/r%201/a%2Cb%3Ac.json");
        assert_eq!(location["physicalLocation"]["region"], json!({"startLine": 7, "startColumn": 14}));
        assert_eq!(run["results"][1]["locations"][0]["physicalLocation"]["region"], json!({"startLine": 1}));
    }

    #[test]
    fn absolute_paths_become_file_uris() {
        assert_eq!(uri("/tmp/é"), "file:///tmp/%C3%A9");
    }
}
