//! For a build server: `JUnit` XML, one suite a program.

use std::fmt::Write as _;

use super::Report;
use super::xml::{attribute, content};

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
        let (name, tests) = (attribute(&subject.to_string()), verdicts.len());
        let _ = write!(text, "  <testsuite name=\"{name}\" tests=\"{tests}\"");
        let _ = writeln!(text, " failures=\"{failed}\" skipped=\"{skipped}\">");
        for verdict in verdicts {
            let (id, title) = (attribute(&verdict.id), attribute(&verdict.name));
            let _ = write!(text, "    <testcase classname=\"{name}\" name=\"{id}: {title}\"");
            let _ = match &verdict.skipped {
                Some(reason) => writeln!(text, "><skipped message=\"{}\"/></testcase>", attribute(reason)),
                None if verdict.wrong.is_empty() => writeln!(text, "/>"),
                None => {
                    let first = verdict.wrong[0].lines().next().unwrap_or_default();
                    let all = content(&verdict.wrong.join("\n"));
                    writeln!(text, "><failure message=\"{}\">{all}</failure></testcase>", attribute(first))
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
            let (group, id) = (attribute(group), attribute(id));
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
