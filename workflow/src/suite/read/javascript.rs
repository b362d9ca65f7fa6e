//! The reports of jest, vitest, mocha and `node --test` for people.
//!
//! Their tests are lines with a mark, in a tree of titles. Ids are the file, if the runner prints it, and the titles.

use std::sync::LazyLock;

use regex::Regex;

use super::lines::regex;
use super::{Found, MAX_ID_BYTES, MAX_TESTS, Tests};
use crate::suite::report::{Format, Problem, Verdict};

/// Maximum depth of titles.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Tree,
    /// `file > title > title`, as vitest prints it.
    Path,
    /// `- title`, which mocha prints for pending tests, and others in differences.
    Dash,
}

#[derive(Debug, Default)]
pub(super) struct JavaScript {
    tests: Vec<(Style, String, Verdict)>,
    titles: Vec<(usize, String)>,
    file: Option<String>,
    /// After the tree, where failures are explained.
    is_over: bool,
    format: Option<Format>,
    ran: Option<u64>,
    skipped: u64,
    problem: Option<Problem>,
}

impl JavaScript {
    pub(super) fn line(&mut self, line: &str) {
        static MARK: LazyLock<Regex> = LazyLock::new(|| regex(r"^( *)([✓✔√✕✖×✗○↓﹣✎]|\d+\)|-) (.+?)$"));
        static FILE: LazyLock<Regex> = LazyLock::new(|| {
            regex(r"^ ?(PASS|FAIL|RUNS) +(?:\./)?(\S+\.[cm]?[jt]sx?)(?: \([\d.]+ m?s\)| \[ .* \]| ((?:> .*)))?$")
        });
        let start = line.trim_start();
        let is_file = ["PASS", "FAIL", "RUNS"].iter().any(|word| start.starts_with(word));
        let is_mark = start.starts_with(|c: char| "✓✔√✕✖×✗○↓﹣✎-".contains(c) || c.is_ascii_digit());
        if let Some(file) = Some(line).filter(|_| is_file).and_then(|line| FILE.captures(line)) {
            self.file_line(&file);
        } else if let Some(title) = start.strip_prefix("● ") {
            self.jest_failure(title);
        } else if self.counts(line) || self.is_over {
        } else if let Some(mark) = Some(line).filter(|_| is_mark).and_then(|line| MARK.captures(line)) {
            self.mark(mark[1].len(), &mark[2], &mark[3]);
        } else {
            self.title(line);
        }
    }

    fn file_line(&mut self, line: &regex::Captures<'_>) {
        let file = line[2].to_owned();
        if let Some(titles) = line.get(3) {
            self.add(Style::Path, format!("{file} {}", titles.as_str()), Verdict::Failed);
        } else if line[0].ends_with(']') {
            self.broken(&file);
            self.add(Style::Path, file.clone(), Verdict::Failed);
        }
        self.titles.clear();
        self.is_over = false;
        self.file = Some(file);
    }

    fn jest_failure(&mut self, title: &str) {
        let Some(file) = self.file.clone() else { return };
        self.is_over = true;
        if title == "Test suite failed to run" {
            self.broken(&file);
            self.add(Style::Tree, file, Verdict::Failed);
        } else if !title.starts_with("Console") {
            self.add(Style::Tree, format!("{file} › {title}"), Verdict::Failed);
        }
    }

    fn mark(&mut self, indent: usize, mark: &str, text: &str) {
        static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r" (?:\([\d.]+ ?m?s\)|[\d.]+ ?m?s)$"));
        static DIRECTIVE: LazyLock<Regex> = LazyLock::new(|| regex(r" # (SKIP|TODO)\b.*$"));
        if mark == "✖" && text == "failing tests:" {
            self.is_over = true;
            return;
        }
        let directive = DIRECTIVE.find(text);
        let text = &text[..directive.map_or(text.len(), |it| it.start())];
        let text = TIME.replace(text, "");
        let (mut name, mut verdict) = match mark {
            "✓" | "✔" | "√" => (&*text, Verdict::Passed),
            "○" => (text.strip_prefix("skipped ").unwrap_or(&text), Verdict::Skipped),
            "✎" => (text.strip_prefix("todo ").unwrap_or(&text), Verdict::Skipped),
            "↓" | "﹣" | "-" => (&*text, Verdict::Skipped),
            _ => (&*text, Verdict::Failed),
        };
        if directive.is_some() {
            verdict = Verdict::Skipped;
        }
        let is_end = self.titles.iter().any(|(at, title)| *at == indent && title == name);
        self.titles.retain(|(at, _)| *at < indent);
        if is_end {
            return;
        }
        name = name.trim();
        if name.split_once(" > ").is_some_and(|(file, _)| file.contains('.')) {
            return self.add(Style::Path, name.to_owned(), verdict);
        }
        let titles = self.titles.iter().map(|(_, title)| title.as_str());
        let path: Vec<&str> = self.file.as_deref().into_iter().chain(titles).chain([name]).collect();
        self.add(if mark == "-" { Style::Dash } else { Style::Tree }, path.join(" › "), verdict);
    }

    /// Takes a line as the title of a group. Output of tests usually begins at the start of the line.
    fn title(&mut self, line: &str) {
        let title = line.trim_start();
        let indent = line.len() - title.len();
        let (title, is_group) = title.strip_prefix("▶ ").map_or((title, false), |title| (title, true));
        if title.is_empty() || title.len() > MAX_ID_BYTES || !(is_group || (indent >= 2 && indent.is_multiple_of(2))) {
            // A new script of npm: the tree of another runner follows.
            if line.starts_with("> ") {
                *self = Self { titles: Vec::new(), file: None, is_over: false, ..std::mem::take(self) };
            }
            return;
        }
        self.titles.retain(|(at, _)| *at < indent);
        if self.titles.len() < MAX_DEPTH {
            self.titles.push((indent, title.to_owned()));
        }
    }

    /// Reads a line of a summary. Returns false if it is another line.
    fn counts(&mut self, line: &str) -> bool {
        static JEST: LazyLock<Regex> = LazyLock::new(|| regex(r"^Tests: +((?:\d+ \w+, )*)(\d+) total$"));
        static VITEST: LazyLock<Regex> = LazyLock::new(|| regex(r"^ +Tests +(.*?)\((\d+)\)$"));
        static MOCHA: LazyLock<Regex> = LazyLock::new(|| regex(r"^ +(\d+) (passing|failing|pending)(?: \(.*\))?$"));
        static NODE: LazyLock<Regex> = LazyLock::new(|| regex(r"^ℹ (tests|skipped|todo) (\d+)$"));
        let start = line.trim_start();
        if !(start.starts_with("Tests") || start.starts_with('ℹ') || start.starts_with(|c: char| c.is_ascii_digit()))
        {
            return self.missing(start);
        }
        let (format, ran, skipped) = if let Some(counts) = JEST.captures(line) {
            (Format::Jest, number(&counts[2]), named(&counts[1], "skipped") + named(&counts[1], "todo"))
        } else if let Some(counts) = VITEST.captures(line) {
            (Format::Vitest, number(&counts[2]), named(&counts[1], "skipped") + named(&counts[1], "todo"))
        } else if let Some(counts) = MOCHA.captures(line) {
            let count = number(&counts[1]);
            (Format::Mocha, count, if &counts[2] == "pending" { count } else { 0 })
        } else if let Some(counts) = NODE.captures(line) {
            let count = number(&counts[2]);
            if &counts[1] == "tests" { (Format::NodeTest, count, 0) } else { (Format::NodeTest, 0, count) }
        } else {
            return self.missing(start);
        };
        self.is_over = true;
        self.format = self.format.or(Some(format));
        self.ran = Some(self.ran.unwrap_or(0).saturating_add(ran));
        self.skipped = self.skipped.saturating_add(skipped);
        true
    }

    fn missing(&mut self, line: &str) -> bool {
        if !["No test", "Error: No test", "Could not find"].iter().any(|start| line.starts_with(start)) {
            return false;
        }
        let (format, is_missing) = match line.trim() {
            text if text.starts_with("No tests found, exiting with code") => (Format::Jest, true),
            text if text.starts_with("No test files found, exiting with code") => (Format::Vitest, true),
            text if text.starts_with("Error: No test files found: ") => (Format::Mocha, true),
            text => (Format::NodeTest, text.starts_with("Could not find '") && text.ends_with('\'')),
        };
        if is_missing {
            self.format = self.format.or(Some(format));
            self.problem.get_or_insert_with(|| Problem::NotFound(line.trim().to_owned()));
        }
        is_missing
    }

    fn add(&mut self, style: Style, id: String, verdict: Verdict) {
        if self.tests.len() < MAX_TESTS && id.len() <= MAX_ID_BYTES {
            self.tests.push((style, id, verdict));
        }
    }

    fn broken(&mut self, file: &str) {
        if !matches!(self.problem, Some(Problem::Broken(_))) {
            self.problem = Some(Problem::Broken(format!("{file} failed to run")));
        }
    }

    pub(super) fn finish(self, found: &mut Found) {
        let Some(format) = self.format else { return };
        found.format(format);
        let mut tests = Tests::default();
        for (style, id, verdict) in self.tests {
            let is_of_format = match style {
                Style::Path => format == Format::Vitest,
                Style::Tree => format != Format::Vitest,
                Style::Dash => format == Format::Mocha,
            };
            if is_of_format {
                tests.add(&id, verdict);
            }
        }
        found.tests.append(tests);
        found.count(self.ran, self.skipped);
        found.problem(self.problem);
    }
}

fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(0)
}

/// Returns the number before a word of a summary.
fn named(counts: &str, word: &str) -> u64 {
    let parts = counts.split([',', '|']).filter_map(|part| part.trim().split_once(' '));
    parts.filter(|(_, name)| name.trim() == word).map(|(count, _)| number(count)).sum()
}
