//! For a build server: `JUnit` XML, one suite a program.

use std::fmt::Write as _;

use super::Report;

/// The whole file.
pub fn junit(report: &Report<'_>) -> String {
    let (_, failed, _) = report.counts();
    let out = &report.vectors.out_of_scope;
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let tests = report.verdicts.len() + out.len();
    let _ = writeln!(text, "<testsuites name=\"conformance\" tests=\"{tests}\" failures=\"{failed}\">");
    for (place, subject) in report.subjects.iter().enumerate() {
        let verdicts: Vec<_> = report.verdicts.iter().filter(|verdict| verdict.subject == place).collect();
        let failed = verdicts.iter().filter(|verdict| !verdict.wrong.is_empty()).count();
        let skipped = verdicts.iter().filter(|verdict| verdict.skipped.is_some()).count();
        let (name, tests) = (escaped(&subject.to_string()), verdicts.len());
        let _ = write!(text, "  <testsuite name=\"{name}\" tests=\"{tests}\"");
        let _ = writeln!(text, " failures=\"{failed}\" skipped=\"{skipped}\">");
        for verdict in verdicts {
            let (id, title) = (escaped(&verdict.id), escaped(&verdict.name));
            let _ = write!(text, "    <testcase classname=\"{name}\" name=\"{id}: {title}\"");
            let _ = match &verdict.skipped {
                Some(reason) => writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(reason)),
                None if verdict.wrong.is_empty() => writeln!(text, "/>"),
                None => {
                    let first = verdict.wrong[0].lines().next().unwrap_or_default();
                    let all = escaped(&verdict.wrong.join("\n"));
                    writeln!(text, "><failure message=\"{}\">{all}</failure></testcase>", escaped(first))
                }
            };
        }
        text.push_str("  </testsuite>\n");
    }
    if !out.is_empty() {
        let _ = writeln!(
            text,
            "  <testsuite name=\"out of scope\" tests=\"{0}\" failures=\"0\" skipped=\"{0}\">",
            out.len()
        );
        for (group, id) in out {
            let (group, id) = (escaped(group), escaped(id));
            let _ = writeln!(
                text,
                "    <testcase classname=\"{group}\" name=\"{id}\"><skipped message=\"out of scope\"/></testcase>"
            );
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// Text for XML, which has no control characters but tab, line feed and carriage return.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push(' '),
            '\u{0}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
