//! Findings for a terminal: source excerpts with the position marked.

use std::fmt::Write as _;

use annotate_snippets::{Group, Level, Renderer};
use counterproof_artifact::{escape_invisible, without_inline_commands};
use counterproof_validation::{Finding, Report};

use crate::source_excerpt::snippet;

/// Renders the findings and a summary. The output is styled; the stream removes the styles if it is not a terminal.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&render_finding(&Level::ERROR, finding.code.as_str(), finding));
    }
    text.push_str(&super::summary(report));
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

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn a_finding_has_its_source_line_position_and_remedy() {
        let text: String = anstream::adapter::strip_str(&render(&fixture::report())).to_string();
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
}
