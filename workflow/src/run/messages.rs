//! What the model is asked: the task, and the results of checks.
//!
//! The texts have no time, no random id, and no path of the workspace: a run that goes on elsewhere sends the same requests.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use camino::Utf8Path;
use counterproof_artifact::one_line;
use regex::Regex;
use serde_json::{Value, json};

use super::state::{RunState, Settings, Workflow};
use crate::suite::Target;

/// The end of an output that the model gets, in characters.
const MAX_OUTPUT: usize = 12_000;

const RULES: &str = "You are a software engineer. You work in a copy of a git repository, by calling tools. All paths are relative to \
the top folder of the repository. Read the code before you change it, and follow its conventions. Change as little as is needed. \
You do not need to commit or push. When the work is done, answer with a short text and without a tool call. The tests then run, \
and you receive their output if they fail.";

pub(super) fn first_messages(state: &RunState) -> Vec<Value> {
    let settings = &state.settings;
    let mut task = match settings.workflow {
        Workflow::FixFailingTest => fix(state),
        Workflow::ImplementFeature => feature(settings),
    };
    for (title, paths) in [("Files to change:", &settings.target_files), ("Examples to follow:", &settings.examples)] {
        if !paths.is_empty() {
            let _ = write!(task, "\n\n{title}\n- {}", paths.join("\n- "));
        }
    }
    if let Some(suite) = state.commands.as_ref().and_then(|commands| commands.suite.as_deref()) {
        let _ = write!(task, "\n\nThe command that runs all tests: {suite}");
    }
    vec![json!({"role": "system", "content": RULES}), user(&task)]
}

fn fix(state: &RunState) -> String {
    let test = state.target.as_ref().map(Target::name).unwrap_or_default();
    let output = state.reproduced.as_ref().map_or("", |report| report.output.as_str());
    format!(
        "Fix the code so that this test passes: {test}\n\nDo not change, skip or remove the test itself. Its output now:\n\n\
         {}\n\nIn your last answer, say what was wrong and how you fixed it.",
        fenced(output)
    )
}

fn feature(settings: &Settings) -> String {
    let specification = settings.specification.as_deref().unwrap_or_default();
    format!(
        "Implement this feature:\n\n{specification}\n\nWrite tests for it in the style of the tests that exist. Existing tests must \
         still pass. In your last answer, describe what you implemented and the decisions that you made."
    )
}

pub(super) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(super) fn tool_result(call_id: Option<&str>, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": call_id.unwrap_or_default(), "content": text})
}

/// A red check, as the model receives it.
pub(super) fn red_check(title: &str, output: &str) -> Value {
    user(&format!("{title}\n\n{}\n\nCorrect the code. Answer without a tool call when it is done.", fenced(output)))
}

/// Lines of the output of a red check that a person sees at once.
const LINES_SHOWN: usize = 5;

/// Maximum characters of such a line, and of a command, in the message of a failure.
const MAX_LINE: usize = 300;

/// Returns the last lines of an output that are not blank.
fn last_lines(output: &str, count: usize) -> Vec<&str> {
    let mut lines: Vec<&str> = output.lines().rev().filter(|line| !line.trim().is_empty()).take(count).collect();
    lines.reverse();
    lines
}

/// Lines that are shown about a test, and lines after one that names it that belong to it.
const LINES_ABOUT: usize = 8;
const LINES_AFTER: usize = 3;

/// Returns the lines of an output about a test: the longest of the parts that name it.
pub(super) fn lines_about<'a>(output: &'a str, test: &str) -> Vec<&'a str> {
    let name = test.rsplit([':', '/', '>']).next().unwrap_or(test).trim();
    // The dots of a file or of a sentence do not separate names.
    let has_module = name == test && !name.contains(' ');
    let name = if has_module { name.rsplit('.').next().unwrap_or(name) } else { name };
    let mut parts: Vec<Vec<&str>> = Vec::new();
    let mut left = 0;
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        let is_rule = !line.contains(char::is_alphanumeric);
        if names(line, name) {
            if left == 0 {
                parts.push(Vec::new());
            }
            left = LINES_AFTER + 1;
        } else if is_rule && line.starts_with("===") {
            left = 0;
        }
        if left > 0 {
            left -= 1;
            parts.last_mut().into_iter().for_each(|part| {
                if !is_rule {
                    part.push(line);
                }
            });
        }
    }
    let mut part = parts.into_iter().max_by_key(Vec::len).unwrap_or_default();
    part.truncate(LINES_ABOUT);
    part
}

/// Returns the lines of the output of a red check that a person sees: those about a test, or else the last ones.
pub(super) fn about_or_last<'a>(output: &'a str, test: Option<&str>) -> Vec<&'a str> {
    let about = test.map(|test| lines_about(output, test)).unwrap_or_default();
    if about.is_empty() { last_lines(output, LINES_SHOWN) } else { about }
}

/// Maximum names of tests in one message.
const MAX_NAMES: usize = 20;

/// Returns why a suite is red: tests that fail now, and tests that did not run. Each list names a few.
pub(super) fn new_failures_text(failed: &[String], lost: &[String]) -> String {
    let texts = [("tests that did not fail before fail now", failed), ("tests are missing or skipped now", lost)];
    let texts = texts.into_iter().filter(|(_, tests)| !tests.is_empty());
    texts.map(|(text, tests)| format!("{text}: {}", first_names(tests, MAX_NAMES))).collect::<Vec<_>>().join("; ")
}

/// Joins names up to a count, and counts the others.
pub(super) fn first_names(names: &[String], count: usize) -> String {
    let shown = names[..names.len().min(count)].join(", ");
    let left = names.len().saturating_sub(count);
    if left == 0 { shown } else { format!("{shown} and {left} more") }
}

fn names(line: &str, name: &str) -> bool {
    let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    !name.is_empty()
        && line
            .match_indices(name)
            .any(|(at, _)| !is_part(line[..at].chars().next_back()) && !is_part(line[at + name.len()..].chars().next()))
}

/// Returns why a contract does not hold, `command` being the one that ran: a line with the reasons and the command, and the last lines of its output.
pub(super) fn contract_failure(id: &str, reasons: &[String], command: Option<&str>, output: &str) -> String {
    let mut text = format!("the contract `{id}` does not hold");
    let reasons: Vec<String> = reasons.iter().take(LINES_SHOWN).map(|reason| one_line(reason, MAX_LINE)).collect();
    if !reasons.is_empty() {
        let _ = write!(text, ": {}", reasons.join("; "));
    }
    if let Some(command) = command {
        let _ = write!(text, " (command: `{}`)", one_line(command, MAX_LINE));
        for line in last_lines(output, LINES_SHOWN) {
            let _ = write!(text, "\n    {}", one_line(line, MAX_LINE));
        }
    }
    text
}

/// Durations in the last lines of test runners, and folders of the local forge's CI.
static VARIABLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let parts = [
        // unittest
        r"(?P<a>(?m:^)Ran \d+ tests? in )[\d.]+s",
        // pytest, libtest
        r"(?P<b>(?:passed|failed|error|errors|warning|warnings|skipped|out;?|filtered out; finished) in )[\d.]+s",
        // go, jest, mocha
        r"(?P<c>\()[\d.]+ ?m?s\)",
        r"(?P<d>(?m:^)(?:ok|FAIL)\s+\S+\s+)[\d.]+s",
        r"(?P<e>(?m:^)Time:\s+)[\d.]+ ?m?s",
        r"(?P<f>duration_ms:? )[\d.]+",
        r"(?P<g>)/[^\s:'\x22]*/ci-[A-Za-z0-9]+/clone/?",
    ];
    Regex::new(&parts.join("|")).ok()
});

/// Removes from an output what is not the same in a fork: the path of the workspace, and the durations of test runners.
pub(super) fn neutral<'a>(output: &'a str, workspace: &Utf8Path) -> Cow<'a, str> {
    let output = relative(output, workspace);
    let Some(variable) = &*VARIABLE else { return output };
    let replaced = variable.replace_all(&output, |found: &regex::Captures<'_>| {
        let kept = ["a", "b", "c", "d", "e", "f"].iter().find_map(|name| found.name(name));
        match kept {
            Some(kept) if kept.as_str() == "(" => "(… s)".to_owned(),
            Some(kept) => format!("{}… s", kept.as_str()),
            None => String::new(),
        }
    });
    Cow::Owned(replaced.into_owned())
}

/// Makes paths of the workspace relative to it.
pub(super) fn relative<'a>(output: &'a str, workspace: &Utf8Path) -> Cow<'a, str> {
    if !output.contains(workspace.as_str()) {
        return Cow::Borrowed(output);
    }
    Cow::Owned(output.replace(&format!("{workspace}/"), "").replace(workspace.as_str(), "."))
}

/// Returns the end of a text between fences that do not occur in it.
fn fenced(text: &str) -> String {
    let text = end_of(text.trim_end(), MAX_OUTPUT);
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

fn end_of(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let end: String = text.chars().skip(count - limit).collect();
    format!("[{} characters removed]\n{end}", count - limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_cannot_end_its_fence() {
        assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
        assert_eq!(fenced("plain\n"), "```\nplain\n```");
    }

    #[test]
    fn the_failure_of_a_contract_has_its_reason_its_command_and_the_end_of_its_output() {
        let failure = |reasons: &[String], command, output: &str| contract_failure("a/b/1", reasons, command, output);
        let output = format!("first\n{}\n\nlast\n", "x\n".repeat(LINES_SHOWN));
        let text = failure(&["exit code 1".to_owned()], Some("make\ncheck"), &output);
        let (first, lines) = text.split_once('\n').unwrap();
        assert_eq!(first, "the contract `a/b/1` does not hold: exit code 1 (command: `make check`)");
        assert_eq!(lines, "    x\n    x\n    x\n    x\n    last");
        let text = failure(&["output: no number".to_owned()], None, "");
        assert_eq!(text, "the contract `a/b/1` does not hold: output: no number");
        let long = "y".repeat(1 << 20);
        assert!(
            failure(&vec![long.clone(); 100], Some(&long), &long).chars().count() < (LINES_SHOWN + 3) * (MAX_LINE + 20)
        );
    }

    #[test]
    fn a_red_suite_names_a_few_tests_and_counts_the_others() {
        let tests = |count: usize| (0..count).map(|it| format!("t{it}")).collect::<Vec<_>>();
        assert_eq!(new_failures_text(&tests(1), &[]), "tests that did not fail before fail now: t0");
        let text = new_failures_text(&tests(2), &tests(1000));
        assert!(
            text.starts_with("tests that did not fail before fail now: t0, t1; tests are missing or skipped now: t0, ")
        );
        assert!(text.ends_with(", t19 and 980 more"), "{text}");
        assert!(new_failures_text(&[], &tests(20)).ends_with(", t18, t19"));
    }

    #[test]
    fn the_end_of_a_compile_error_is_shown_without_a_failed_test() {
        let output = "   Compiling calc v0.1.0\nerror[E0308]: mismatched types\n --> src/lib.rs:2:5\n\nerror: could not compile `calc`\n";
        assert!(about_or_last(output, None).contains(&"error[E0308]: mismatched types"));
    }

    #[test]
    fn the_lines_about_a_test_have_its_failure() {
        let unittest = "test_add (test_calc.Calc.test_add) ... FAIL\ntest_z (test_calc.Calc.test_z) ... FAIL\n\n======\n\
            FAIL: test_add (test_calc.Calc.test_add)\n------\nTraceback (most recent call last):\n  \
            File \"test_calc.py\", line 4, in test_add\n    self.assertEqual(1, 2)\nAssertionError: 1 != 2\n\n======\n\
            FAIL: test_z (test_calc.Calc.test_z)\n------\nTraceback (most recent call last):\n\nFAILED (failures=2)\n";
        let about = lines_about(unittest, "test_calc.Calc.test_add");
        assert_eq!(about.first(), Some(&"FAIL: test_add (test_calc.Calc.test_add)"));
        assert_eq!((about.len(), about.last()), (5, Some(&"AssertionError: 1 != 2")));
        let libtest = "test a::adds ... FAILED\ntest a::adds_more ... ok\n\nfailures:\n\n---- a::adds stdout ----\n\
            thread 'a::adds' panicked at src/lib.rs:5:9:\nassertion `left == right` failed\n  left: 1\n right: 2\n\n\
            failures:\n    a::adds\n\ntest result: FAILED. 0 passed; 1 failed\n\nerror: test failed\n";
        assert!(lines_about(libtest, "a::adds").contains(&"assertion `left == right` failed"));
        let pytest = "____ test_x ____\n\n    def test_x():\n>       assert f() == 2\nE       assert 1 == 2\n\nt.py:4: AssertionError\n\
            FAILED tests/t.py::test_x - assert 1 == 2\n";
        assert!(lines_about(pytest, "tests/t.py::test_x").contains(&"E       assert 1 == 2"));
        assert_eq!(lines_about(pytest, "tests/t.py").len(), 2);
        assert_eq!(lines_about("Ran 3 tests\nOK\n", "test_calc.Calc.test_none"), Vec::<&str>::new());
    }

    #[test]
    fn an_output_has_no_duration_and_no_path_of_the_workspace() {
        let neutral = |text: &str| neutral(text, Utf8Path::new("/w/s/tree")).into_owned();
        let text = "File \"/w/s/tree/a.py\" in /w/s/tree\nRan 1 test in 0.001s\n";
        assert_eq!(neutral(text), "File \"a.py\" in .\nRan 1 test in … s\n");
        assert_eq!(neutral("===== 1 failed, 2 passed in 0.12s ====="), "===== 1 failed, 2 passed in … s =====");
        let libtest = "test result: ok. 1 passed; 0 failed; 3 filtered out; finished in 0.00s";
        assert_eq!(neutral(libtest), libtest.replace("0.00s", "… s"));
        assert_eq!(neutral("--- FAIL: TestA (0.00s)"), "--- FAIL: TestA (… s)");
        assert_eq!(neutral("ok  \texample.org/a\t0.004s"), "ok  \texample.org/a\t… s");
        assert_eq!(neutral("at /x/forge/ab/ci-K3/clone/a.js:3"), "at a.js:3");
        let assertion = "expected 5s, got 6.5s (limit 3)";
        assert_eq!(neutral(assertion), assertion);
    }

    #[test]
    fn of_a_long_output_the_end_is_kept() {
        let text = format!("{}END", "ä".repeat(MAX_OUTPUT));
        let cut = end_of(&text, MAX_OUTPUT);
        assert!(cut.starts_with("[3 characters removed]\nä") && cut.ends_with("END"), "{cut}");
    }
}
