//! `junit.xml`: test results for CI servers. The file is valid against `junit-10.xsd` of Jenkins' plug-in xUnit, and each of its
//! suites against `surefire-test-report-3.0.xsd` of Maven.
//!
//! Only attributes and elements that both schemas allow are written, so the facts about a test are lines of its text.

use std::fmt::Write as _;

use super::test_results::{Outcome, TestResult, TestSuite};
use crate::view::display;

pub fn render(suites: &[TestSuite]) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all = Counts::new(suites);
    // Without `skipped`, which Jenkins does not allow here.
    let Counts { tests, failures, errors, time, .. } = &all;
    let _ = writeln!(xml, "<testsuites tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time}\">");
    for suite in suites {
        write_suite(&mut xml, suite);
    }
    xml + "</testsuites>\n"
}

struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    /// In seconds, with three decimals.
    time: String,
}

impl Counts {
    fn new(suites: &[TestSuite]) -> Self {
        let tests = || suites.iter().flat_map(|suite| &suite.tests);
        let count = |is_counted: fn(&Outcome) -> bool| tests().filter(|test| is_counted(&test.outcome)).count();
        Self {
            tests: tests().count(),
            failures: count(|outcome| matches!(outcome, Outcome::Failed { .. })),
            errors: count(|outcome| matches!(outcome, Outcome::Error { .. })),
            skipped: count(|outcome| matches!(outcome, Outcome::Skipped { .. })),
            time: seconds(tests().map(|test| test.duration_ms).fold(0, u64::saturating_add)),
        }
    }
}

/// A time in seconds with three decimals, the most that Surefire's schema allows.
fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

fn write_suite(xml: &mut String, suite: &TestSuite) {
    let Counts { tests, failures, errors, skipped, time } = Counts::new(std::slice::from_ref(suite));
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{}\" time=\"{time}\" tests=\"{tests}\" errors=\"{errors}\" skipped=\"{skipped}\" failures=\"{failures}\">",
        escaped(&suite.name)
    );
    if !suite.properties.is_empty() {
        xml.push_str("    <properties>\n");
        for (name, value) in &suite.properties {
            let _ = writeln!(xml, "      <property name=\"{}\" value=\"{}\"/>", escaped(name), escaped(value));
        }
        xml.push_str("    </properties>\n");
    }
    for test in &suite.tests {
        write_test(xml, &suite.name, test);
    }
    xml.push_str("  </testsuite>\n");
}

fn write_test(xml: &mut String, class: &str, test: &TestResult) {
    let (name, class) = (escaped(&test.name), escaped(class));
    let _ = write!(xml, "    <testcase name=\"{name}\" classname=\"{class}\" time=\"{}\"", seconds(test.duration_ms));
    let facts = test.properties.iter().map(|(name, value)| format!("{name}: {value}"));
    let details = Some(test.details.clone()).filter(|details| !details.is_empty());
    let text = escaped(&details.into_iter().chain(facts).collect::<Vec<_>>().join("\n"));
    let problem = |element: &str, code: &str, message: &str| {
        format!("      <{element} message=\"{}\" type=\"{}\">{text}</{element}>\n", escaped(message), escaped(code))
    };
    let (element, has_text) = match &test.outcome {
        Outcome::Passed => (String::new(), false),
        Outcome::Skipped { message } => (format!("      <skipped message=\"{}\"/>\n", escaped(message)), false),
        Outcome::Failed { code, message } => (problem("failure", code, message), true),
        Outcome::Error { code, message } => (problem("error", code, message), true),
    };
    let output =
        if has_text || text.is_empty() { String::new() } else { format!("      <system-out>{text}</system-out>\n") };
    let content = element + &output;
    let _ = match content.as_str() {
        "" => writeln!(xml, "/>"),
        content => writeln!(xml, ">\n{content}    </testcase>"),
    };
}

/// Any text as XML text. Characters that XML does not allow are spelled out.
fn escaped(text: &str) -> String {
    let visible = display::visible(text);
    let mut safe = String::with_capacity(visible.len());
    for c in visible.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}
